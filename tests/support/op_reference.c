/* op_reference.c - compares every applied operation with its plain C reference in double precision.
 *
 * The observer of autograd/op.h is called before and after each forward. Inputs are read back from the device, widened
 * to f64 or int64 host tensors, and passed to the descriptor's reference; its results are compared with the
 * device's. */
#include <stdlib.h>
#include <string.h>

#include "ops/dispatch/operators.h"
#include "support/op_run.h"

#define MAX_OPS 1000
#define MAX_NESTED 8

static struct {
    op_run *run;
    kn_tensor *before[MAX_NESTED]; /* input 0 of active in-place operations, before the change */
    int nested;
} observing;

static struct {
    const char *name;
    bool has_reference;
} seen[MAX_OPS];
static int num_seen;

static void note_seen(const kn_op *op)
{
    for (int i = 0; i < num_seen; i++)
        if (strcmp(seen[i].name, op->name) == 0)
            return;
    if (num_seen < MAX_OPS) {
        seen[num_seen].name = op->name;
        seen[num_seen++].has_reference = op->reference != NULL || op->is_view;
    }
}

void op_print_coverage(FILE *file)
{
    int without = 0;
    for (int i = 0; i < num_seen; i++)
        without += !seen[i].has_reference;
    fprintf(file, "%d operations seen, %d of them compared with a reference", num_seen, num_seen - without);
    const char *separator = without > 0 ? "; only moving data: " : "";
    for (int i = 0; i < num_seen; i++)
        if (!seen[i].has_reference) {
            fprintf(file, "%s%s", separator, seen[i].name);
            separator = ", ";
        }
    fprintf(file, "\n");
}

static bool was_seen(const char *name)
{
    for (int i = 0; i < num_seen; i++)
        if (strcmp(seen[i].name, name) == 0)
            return true;
    return false;
}

/* A part of a function that is no operator itself. */
static bool is_part(const char *name) { return strcmp(name, "trapezoid") == 0; }

bool op_all_seen(FILE *file)
{
    bool all = true;
    for (int i = 0; i < kn_op_count(); i++) {
        const char *name = kn_op_at(i)->name;
        if (kn_op_at(i)->backward_of || kn_op_is_composition(kn_op_at(i))) /* others are applied instead */
            continue;
        if (!was_seen(name))
            fprintf(file, "FAIL no row applies the operator %s (src/ops/dispatch/operators.h)\n", name);
        all = all && was_seen(name);
    }
    for (int i = 0; i < num_seen; i++) {
        const bool known = kn_op_find(seen[i].name) || is_part(seen[i].name);
        if (!known)
            fprintf(file, "FAIL the operator %s is not in the list (src/ops/dispatch/operators.h)\n", seen[i].name);
        all = all && known;
    }
    return all;
}

/* A contiguous host tensor, f64 or int64, with the values of `tensor`; owned. */
static kn_tensor *widened(const kn_tensor *tensor)
{
    bool floating = kn_dtype_is_floating(tensor->dtype);
    kn_tensor *host = NULL;
    if (kn_tensor_new(&host, floating ? KN_F64 : KN_I64, tensor->ndim, tensor->shape, kn_device_host()) != KN_OK)
        return NULL;
    void *values = floating ? (void *)read_doubles(tensor) : (void *)read_integers(tensor);
    if (values)
        memcpy(kn_data(host), values, (size_t)kn_numel(tensor) * 8);
    free(values);
    return host;
}

static kn_tensor *zeros_of_spec(const kn_call *call, int index)
{
    kn_dtype dtype = kn_dtype_is_floating(call->spec[index].dtype) ? KN_F64 : KN_I64;
    kn_tensor *host = NULL;
    if (kn_tensor_new(&host, dtype, call->spec[index].ndim, call->spec[index].shape, kn_device_host()) == KN_OK)
        memset(kn_data(host), 0, (size_t)kn_numel(host) * 8);
    return host;
}

/* The maximum number of terms in a sum of an output element. */
static int64_t guess_reduction(const op_run *run, const kn_call *call)
{
    int64_t largest = 1, outputs = kn_numel(call->outputs[0]);
    for (int i = 0; i < call->num_inputs; i++)
        if (call->inputs[i] && kn_numel(call->inputs[i]) > largest)
            largest = kn_numel(call->inputs[i]);
    int64_t guess = largest / (outputs > 0 ? outputs : 1);
    return guess > run->row->reduction ? guess : run->row->reduction;
}

static void compare_output(op_run *run, const kn_call *call, const kn_tensor *expected, int index)
{
    const kn_tensor *actual = call->outputs[index];
    char message[400];
    int64_t count = kn_numel(actual);
    if (kn_dtype_is_floating(actual->dtype)) {
        double *values = read_doubles(actual);
        if (!values)
            op_fail(run, "reference", "%s: %s", call->op->name, kn_error_message());
        else if (!values_close(values, kn_data((kn_tensor *)expected), count,
                               closeness_of(actual->dtype, guess_reduction(run, call)), message, sizeof message))
            op_fail(run, "reference", "%s, output %d: %s", call->op->name, index, message);
        free(values);
        return;
    }
    int64_t *values = read_integers(actual);
    const int64_t *right = kn_data((kn_tensor *)expected);
    for (int64_t i = 0; values && i < count; i++)
        if (values[i] != right[i]) {
            op_fail(run, "reference", "%s, output %d: element %lld of %lld is %lld, should be %lld", call->op->name,
                    index, (long long)i, (long long)count, (long long)values[i], (long long)right[i]);
            break;
        }
    free(values);
}

static bool prepare_reference(const kn_call *call, kn_call *host)
{
    *host = *call;
    host->stream = NULL;
    host->needs_grad = false;
    host->num_saved = 0;
    memset(host->outputs, 0, sizeof host->outputs);
    kn_tensor **inputs = calloc((size_t)call->num_inputs + 1, sizeof *inputs);
    host->inputs = inputs;
    bool fine = inputs != NULL;
    for (int i = 0; i < call->num_inputs && fine; i++) {
        bool changed = i == 0 && call->op->in_place && observing.nested > 0;
        if (call->inputs[i])
            inputs[i] = changed ? kn_retain(observing.before[observing.nested - 1]) : widened(call->inputs[i]);
        fine &= !call->inputs[i] || inputs[i];
    }
    for (int i = 0; i < call->num_outputs; i++) {
        host->outputs[i] = zeros_of_spec(call, i);
        fine &= host->outputs[i] != NULL;
        if (i == 0 && call->op->in_place && fine)
            memcpy(kn_data(host->outputs[0]), kn_data(host->inputs[0]), (size_t)kn_numel(host->inputs[0]) * 8);
    }
    return fine;
}

static void check_call(op_run *run, kn_call *call)
{
    kn_call host;
    if (!prepare_reference(call, &host))
        op_fail(run, "reference", "%s: inputs cannot be read: %s", call->op->name, kn_error_message());
    else if (call->op->reference(&host) != KN_OK)
        op_fail(run, "reference", "%s: the reference fails: %s", call->op->name, kn_error_message());
    else
        for (int i = 0; i < call->num_outputs; i++)
            if (call->outputs[i])
                compare_output(run, call, host.outputs[i], i);
    for (int i = 0; i < call->num_inputs && host.inputs; i++)
        kn_release(host.inputs[i]);
    free((void *)(uintptr_t)host.inputs);
    for (int i = 0; i < call->num_outputs; i++)
        kn_release(host.outputs[i]);
}

static kn_status observe(kn_call *call, bool after, void *user)
{
    note_seen(call->op);
    if (!call->op->reference)
        return KN_OK;
    kn_op_set_observer(NULL, NULL); /* reading back applies operations too */
    if (!after && call->op->in_place && observing.nested < MAX_NESTED)
        observing.before[observing.nested++] = widened(call->inputs[0]);
    if (after) {
        check_call(user, call);
        if (call->op->in_place && observing.nested > 0)
            kn_release(observing.before[--observing.nested]);
    }
    kn_op_set_observer(observe, user);
    return KN_OK;
}

void op_observe_begin(op_run *run)
{
    observing.run = run;
    kn_op_set_observer(observe, run);
}

void op_observe_end(void)
{
    kn_op_set_observer(NULL, NULL);
    while (observing.nested > 0)
        kn_release(observing.before[--observing.nested]);
}
