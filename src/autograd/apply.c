/* autograd/apply.c - applying an op: check, shape, allocate, run, record. */
#include <stdio.h>
#include <string.h>

#include "autograd/autocast.h"
#include "autograd/tape.h"
#include "autograd/work.h"
#include "base/flags.h"
#include "base/text.h"
#include "tensor/liveness.h"

static _Thread_local kn_op_observation observer;

kn_op_observation kn_op_set_observer(kn_op_observer function, void *user)
{
    kn_op_observation before = observer;
    observer = (kn_op_observation){.function = function, .user = user};
    return before;
}

static kn_status observe(kn_call *call, bool after)
{
    return observer.function ? observer.function(call, after, observer.user) : KN_OK;
}

static _Thread_local bool dry_run;

bool kn_op_set_dry_run(bool on)
{
    bool before = dry_run;
    dry_run = on;
    return before;
}

bool kn_op_is_dry_run(void) { return dry_run; }

/* --- checks ----------------------------------------------------------------------------------- */

static kn_status check_devices(const kn_call *call)
{
    const kn_tensor *first = NULL;
    for (int i = 0; i < call->num_inputs; i++) {
        const kn_tensor *input = call->inputs[i];
        if (!input)
            continue;
        KN_TRY(kn_tensor_check_live_input(input, i));
        if (kn_device_is_host(input->storage->device))
            return kn_fail(
                KN_ERR_DEVICE,
                "input %d is on the host, which runs no operations: move it to a device with kn_to(tensor, device)", i);
        if (!call->op->is_view)
            KN_TRY(kn_tensor_check_memory(input));
        if (first && first->storage->device != input->storage->device)
            return kn_fail(KN_ERR_DEVICE,
                           "the inputs are on two devices, %s and %s: move one with kn_to(tensor, device)",
                           kn_device_string(first->storage->device), kn_device_string(input->storage->device));
        first = first ? first : input;
    }
    return KN_OK;
}

static bool wants_record(const kn_call *call)
{
    if (!kn_grad_enabled() || !call->op->backward)
        return false;
    for (int i = 0; i < call->num_inputs; i++)
        if (kn_autograd_wants(call->inputs[i]))
            return true;
    return call->op->in_place && kn_change_wants_record(call->inputs[0]);
}

/* --- outputs ---------------------------------------------------------------------------------------------------- */

/* Checks a tensor that the caller passed to receive output `index` of that dtype and shape. */
static kn_status check_wanted(const kn_tensor *wanted, int index, kn_device *device, kn_dtype dtype, int ndim,
                              const int64_t *shape)
{
    char has[KN_DESCRIBE], takes[KN_DESCRIBE];
    KN_TRY(kn_tensor_check_live(wanted, "the output given"));
    KN_TRY(kn_tensor_check_memory(wanted));
    if (wanted->storage->device != device)
        return kn_fail(KN_ERR_DEVICE, "the given output is on %s, but the inputs are on %s: create it there",
                       kn_device_string(wanted->storage->device), kn_device_string(device));
    if (wanted->dtype == dtype && wanted->ndim == ndim &&
        memcmp(wanted->shape, shape, (size_t)ndim * sizeof *shape) == 0)
        return kn_tensor_check_no_overlap(wanted);
    return kn_fail(wanted->dtype == dtype ? KN_ERR_SHAPE : KN_ERR_DTYPE,
                   "the given output %d is %s, but the result is %s %s", index,
                   kn_tensor_describe(has, sizeof has, wanted), kn_dtype_name(dtype),
                   kn_format_shape(takes, sizeof takes, ndim, shape));
}

/* Can forward write there directly? Not if it overlaps an input, unless element by element. */
static bool can_write_to(const kn_call *call, const kn_tensor *wanted)
{
    if (!call->op->strided_outputs && !kn_is_contiguous(wanted))
        return false;
    for (int i = 0; i < call->num_inputs; i++)
        if (call->inputs[i] && call->inputs[i]->storage == wanted->storage &&
            !(call->op->elementwise && kn_tensor_same_place(call->inputs[i], wanted)))
            return false;
    return true;
}

static kn_status make_output(kn_call *call, int i, kn_device *device)
{
    KN_TRY(kn_tensor_new(&call->outputs[i], call->spec[i].dtype, call->spec[i].ndim, call->spec[i].shape, device));
    if (call->op->arrange && i == 0)
        call->op->arrange(call, call->outputs[0]);
    return KN_OK;
}

static kn_status make_outputs(kn_call *call, kn_tensor *const *wanted, int num_wanted)
{
    kn_device *device = kn_stream_device(call->stream);
    for (int i = 0; i < num_wanted && i < call->num_outputs; i++)
        if (wanted[i])
            KN_TRY(check_wanted(wanted[i], i, device, call->spec[i].dtype, call->spec[i].ndim, call->spec[i].shape));
    if (call->op->in_place) {
        call->outputs[0] = kn_retain(call->inputs[0]);
        call->num_outputs = 1;
        return KN_OK;
    }
    if (call->op->is_view)
        return KN_OK;
    for (int i = 0; i < call->num_outputs; i++) {
        if (call->op->skips_outputs && i >= call->op->first_statistic && call->skipped >> i & 1)
            continue;
        if (i < num_wanted && wanted[i] && can_write_to(call, wanted[i]))
            call->outputs[i] = kn_retain(wanted[i]);
        else
            KN_TRY(make_output(call, i, device));
    }
    return KN_OK;
}

/* Copies results that forward could not write to the caller's tensors directly. */
static kn_status copy_to_wanted(kn_call *call, kn_tensor *const *wanted, int num_wanted)
{
    for (int i = 0; i < num_wanted && i < call->num_outputs; i++) {
        if (!wanted[i])
            continue;
        if (call->outputs[i] != wanted[i])
            KN_TRY(kn_tensor_copy(wanted[i], call->outputs[i]));
        kn_tensor_bump_version(wanted[i]);
    }
    return KN_OK;
}

/* --- running ---------------------------------------------------------------------------------- */

/* Zeros, so that nothing depends on uninitialised memory. Inputs of in-place ops are left alone. */
static kn_status fill_outputs(kn_call *call)
{
    for (int i = 0; !call->op->in_place && i < call->num_outputs; i++)
        if (call->outputs[i])
            KN_TRY(kn_tensor_clear(call->outputs[i]));
    return KN_OK;
}

/* Ops that make their own outputs, such as views, run in a dry run too. */
static kn_status perform(kn_call *call)
{
    const kn_op *op = call->op;
    if (dry_run && (call->outputs[0] || op->skips_outputs))
        return fill_outputs(call);
    KN_TRY(op->forward(call));
    if (op->in_place)
        kn_tensor_bump_version(call->outputs[0]);
    if (op->is_view && op->backward)
        KN_TRY(kn_view_track(call->outputs[0], call->inputs[0],
                             kn_grad_enabled() ? KN_VIEW_ORDINARY : KN_VIEW_WITHOUT_GRAD));
    return KN_OK;
}

static kn_status run_forward(kn_call *call)
{
    KN_TRY(observe(call, false));
    const kn_dtype autocast = kn_autocast_pause();
    const kn_status status = perform(call);
    kn_autocast_resume(autocast);
    return status == KN_OK ? observe(call, true) : status;
}

static kn_status check_unrecorded(const kn_tensor *wanted, bool needs_grad)
{
    if (!needs_grad && !(kn_grad_enabled() && kn_autograd_wants(wanted)))
        return KN_OK;
    return kn_fail(KN_ERR_STATE, "writing into a given output is not recorded, but it or an input requires gradients: "
                                 "do it inside KN_NO_GRAD");
}

/* A change in place that cannot be recorded would give wrong gradients. */
static kn_status check_change(const kn_call *call)
{
    if (call->needs_grad)
        return kn_change_check(call->inputs[0]);
    if (!kn_grad_enabled() || !kn_change_wants_record(call->inputs[0]))
        return KN_OK;
    return kn_fail(KN_ERR_STATE,
                   "not differentiable, so it cannot change a tensor that requires gradients: do it inside "
                   "KN_NO_GRAD, or on a kn_detach of it");
}

/* `wanted`: the caller's output tensors, NULL for those to be made. */
static kn_status run(kn_call *call, kn_tensor *const *wanted, int num_wanted)
{
    const kn_op *op = call->op;
    KN_TRY(check_devices(call));
    call->needs_grad = wants_record(call);
    for (int i = 0; i < num_wanted; i++)
        if (wanted[i])
            KN_TRY(check_unrecorded(wanted[i], call->needs_grad));
    if (op->in_place && (call->needs_grad || !op->backward))
        KN_TRY(check_change(call));
    call->stream = kn_tensor_stream(call->inputs[0]);
    if (!call->stream)
        return kn_error_status();
    if (op->nondeterministic)
        KN_TRY(kn_check_nondeterministic(op->name));
    if (op->shape)
        KN_TRY(op->shape(call));
    KN_TRY(make_outputs(call, wanted, num_wanted));
    if (!call->needs_grad) {
        KN_TRY(run_forward(call));
        return copy_to_wanted(call, wanted, num_wanted);
    }
    kn_node *node;
    kn_record record = kn_record_of(call);
    KN_TRY(kn_tape_begin(&node, &record));
    kn_status status = run_forward(call);
    record = kn_record_of(call);
    if (status == KN_OK)
        status = kn_tape_end(node, &record);
    kn_node_release(node);
    return status;
}

static kn_status check_list(const kn_op *op, const char *list, kn_tensor *const *inputs, int first, int num_inputs)
{
    char name[64];
    if (num_inputs <= first)
        return kn_fail(KN_ERR_ARGUMENT, "%s: the list `%s` is empty; it needs at least one tensor", op->name, list);
    for (int i = first; i < num_inputs; i++) {
        if (inputs[i])
            continue;
        snprintf(name, sizeof name, "%s[%d]", list, i - first);
        return kn_fail_argument_null(op->name, name);
    }
    return KN_OK;
}

kn_status kn_op_check_given(const kn_op *op, kn_tensor *const *inputs, int num_inputs)
{
    for (int i = 0; i < KN_OP_MAX_INPUTS && op->inputs[i]; i++) {
        const char *name = op->inputs[i];
        if (name[0] == '*')
            return check_list(op, name + 1, inputs, i, num_inputs);
        if (name[0] != '?' && (i >= num_inputs || !inputs[i]))
            return kn_fail_argument_null(op->name, name);
    }
    return KN_OK;
}

/* Removes the KN_SKIP_OUTPUT marks from the caller's array. */
static void note_skipped(kn_call *call, kn_tensor **outputs, int num_outputs)
{
    for (int i = 0; i < KN_OP_MAX_OUTPUTS; i++)
        if (i >= num_outputs || outputs[i] == KN_SKIP_OUTPUT) {
            call->skipped |= 1u << i;
            if (i < num_outputs)
                outputs[i] = NULL;
        }
}

/* Hands the results to the caller: owned by the scope, or the caller's own tensors. */
static void return_outputs(kn_call *call, kn_tensor **outputs, int num_outputs)
{
    for (int i = 0; i < call->num_outputs; i++) {
        if (i >= num_outputs || outputs[i] || call->skipped >> i & 1)
            kn_release(call->outputs[i]);
        else if (call->op->in_place) { /* the caller's own tensor: no extra reference */
            kn_release(call->outputs[i]);
            outputs[i] = call->inputs[i];
        } else
            outputs[i] = kn_scope_adopt(call->outputs[i]);
    }
}

/* Leaves the other arrays uninitialised: clearing a kilobyte for each operation would take too long. */
static void begin(kn_call *call, const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params)
{
    call->op = op;
    call->params = params;
    call->stream = NULL;
    call->inputs = inputs;
    call->num_inputs = num_inputs;
    call->num_outputs = call->num_saved = 0;
    call->skipped = 0;
    call->needs_grad = call->is_repeated = false;
    memset(call->outputs, 0, sizeof call->outputs);
}

kn_status kn_op_apply_to(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params,
                         kn_tensor **outputs, int num_outputs)
{
    kn_call call;
    begin(&call, op, inputs, num_inputs, params);
    note_skipped(&call, outputs, num_outputs);
    kn_span span = kn_call_span(&call);
    kn_status status = run(&call, outputs, num_outputs);
    kn_call_span_end(span, &call);
    for (int i = 0; i < call.num_saved; i++)
        kn_release(call.saved[i]);
    if (status != KN_OK) {
        for (int i = 0; i < KN_OP_MAX_OUTPUTS; i++)
            kn_release(call.outputs[i]);
        kn_error_prefix("%s", op->name);
        return status;
    }
    return_outputs(&call, outputs, num_outputs);
    return KN_OK;
}

kn_tensor *kn_op_apply(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params, kn_tensor **more)
{
    kn_tensor *outputs[KN_OP_MAX_OUTPUTS] = {NULL};
    if (kn_op_check_given(op, inputs, num_inputs) != KN_OK ||
        kn_op_apply_to(op, inputs, num_inputs, params, outputs, more ? KN_OP_MAX_OUTPUTS : 1) != KN_OK)
        return kn_error_make_sticky();
    for (int i = 1; more && i < KN_OP_MAX_OUTPUTS && outputs[i]; i++)
        more[i - 1] = outputs[i];
    return outputs[0];
}

static kn_status deliver(int index, kn_tensor *wanted, kn_tensor *result)
{
    KN_TRY(check_unrecorded(wanted, kn_grad_enabled() && kn_autograd_wants(result)));
    KN_TRY(check_wanted(wanted, index, result->storage->device, result->dtype, result->ndim, result->shape));
    KN_TRY(kn_tensor_copy(wanted, result));
    kn_tensor_bump_version(wanted);
    return KN_OK;
}

kn_status kn_op_deliver(const kn_op *op, int index, kn_tensor *wanted, kn_tensor *result)
{
    const kn_status status = deliver(index, wanted, result);
    if (status != KN_OK)
        kn_error_prefix("%s", op->name);
    return status;
}
