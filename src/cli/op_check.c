/* cli/op_check.c - an observer that repeats each operation with its host reference and compares the results.
 *
 * Inputs are copied before forward runs, since in-place ops overwrite theirs. f32 results may differ from the f64
 * reference by rounding and summation order; the tolerances allow for that and are far too tight for a wrong kernel. */
#include "cli/op_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

typedef struct tolerance {
    double absolute, relative;
} tolerance;

static tolerance tolerance_of(kn_dtype dtype)
{
    switch (dtype) {
    case KN_F64:
        return (tolerance){1e-10, 1e-9};
    case KN_F32:
        return (tolerance){1e-4, 2e-4};
    case KN_F16:
        return (tolerance){2e-3, 2e-3};
    case KN_BF16:
        return (tolerance){1.6e-2, 1.6e-2};
    default:
        return (tolerance){0, 0};
    }
}

static kn_dtype reference_dtype(kn_dtype dtype) { return kn_dtype_is_floating(dtype) ? KN_F64 : KN_I64; }

static void release_all(kn_tensor **tensors, int count)
{
    for (int i = 0; i < count; i++) {
        kn_release(tensors[i]);
        tensors[i] = NULL;
    }
}

static kn_status to_host(kn_tensor **copy, kn_tensor *tensor)
{
    return kn_tensor_cast(copy, tensor, reference_dtype(tensor->dtype), kn_device_host());
}

static const unsigned char *bytes_of(const kn_tensor *tensor)
{
    return (const unsigned char *)tensor->storage->host + tensor->offset * (int64_t)kn_dtype_size(tensor->dtype);
}

static double element(const kn_tensor *tensor, int64_t i)
{
    if (tensor->dtype == KN_F64) {
        double value;
        memcpy(&value, bytes_of(tensor) + i * 8, sizeof value);
        return value;
    }
    int64_t value;
    memcpy(&value, bytes_of(tensor) + i * 8, sizeof value);
    return (double)value;
}

static bool agrees(double actual, double expected, tolerance t)
{
    if (isnan(expected) || isinf(expected))
        return isnan(expected) ? isnan(actual) : actual == expected;
    return fabs(actual - expected) <= t.absolute + t.relative * fabs(expected);
}

static void compare(kn_op_check *check, const kn_call *call, const kn_tensor *actual, const kn_tensor *expected,
                    kn_dtype dtype)
{
    int64_t count = kn_shape_numel(expected->ndim, expected->shape);
    check->checked++;
    for (int64_t i = 0; i < count && !check->wrong[0]; i++) {
        double a = element(actual, i), e = element(expected, i);
        if (agrees(a, e, tolerance_of(dtype)))
            continue;
        snprintf(check->wrong, sizeof check->wrong, "%s", call->op->name);
        snprintf(check->difference, sizeof check->difference, "element %lld of %lld is %.9g, expected %.9g",
                 (long long)i, (long long)count, a, e);
    }
}

/* The reference's outputs, zeroed; the first output of an in-place op starts as a copy of its input. */
static kn_status make_expected(kn_call *reference, const struct kn_op_snapshot *snapshot)
{
    for (int i = 0; i < reference->num_outputs; i++) {
        kn_dtype dtype = reference_dtype(reference->spec[i].dtype);
        KN_TRY(kn_tensor_new(&reference->outputs[i], dtype, reference->spec[i].ndim, reference->spec[i].shape,
                             kn_device_host()));
        kn_tensor *output = reference->outputs[i];
        size_t bytes = (size_t)kn_shape_numel(output->ndim, output->shape) * kn_dtype_size(dtype);
        if (reference->op->in_place && i == 0)
            memcpy(output->storage->host, bytes_of(snapshot->inputs[0]), bytes);
        else
            memset(output->storage->host, 0, bytes);
    }
    return KN_OK;
}

static kn_status repeat_and_compare(kn_op_check *check, const kn_call *call, const struct kn_op_snapshot *snapshot)
{
    kn_call reference = *call;
    reference.inputs = snapshot->inputs;
    for (int i = 0; i < KN_OP_MAX_OUTPUTS; i++)
        reference.outputs[i] = NULL;
    kn_status status = make_expected(&reference, snapshot);
    if (status == KN_OK)
        status = call->op->reference(&reference);
    for (int i = 0; i < reference.num_outputs && status == KN_OK; i++) {
        kn_tensor *actual = NULL;
        if (!call->outputs[i])
            continue;
        status = to_host(&actual, call->outputs[i]);
        if (status == KN_OK)
            compare(check, call, actual, reference.outputs[i], call->outputs[i]->dtype);
        kn_release(actual);
    }
    release_all(reference.outputs, KN_OP_MAX_OUTPUTS);
    return status;
}

static kn_status take_snapshot(kn_op_check *check, kn_call *call)
{
    if (check->depth == (int)(sizeof check->stack / sizeof check->stack[0]))
        return KN_OK; /* nested deeper than any op: not checked */
    struct kn_op_snapshot *snapshot = &check->stack[check->depth++];
    *snapshot = (struct kn_op_snapshot){.call = call};
    if (!call->op->reference)
        return KN_OK;
    snapshot->inputs = kn_calloc((size_t)call->num_inputs, sizeof *snapshot->inputs);
    if (!snapshot->inputs)
        return KN_ERR_MEMORY;
    snapshot->num_inputs = call->num_inputs;
    for (int i = 0; i < call->num_inputs; i++)
        if (call->inputs[i])
            KN_TRY(to_host(&snapshot->inputs[i], call->inputs[i]));
    return KN_OK;
}

static void drop_snapshot(kn_op_check *check)
{
    struct kn_op_snapshot *snapshot = &check->stack[--check->depth];
    release_all(snapshot->inputs, snapshot->num_inputs);
    kn_free(snapshot->inputs);
}

static kn_status observe(kn_call *call, bool after, void *user)
{
    kn_op_check *check = user;
    kn_op_set_observer(NULL, NULL); /* operations run in here must not be observed */
    kn_status status = KN_OK;
    if (!after) {
        status = take_snapshot(check, call);
    } else {
        /* Ops that failed inside this one have left their snapshots on the stack: drop them too. */
        while (check->depth > 0 && check->stack[check->depth - 1].call != call)
            drop_snapshot(check);
        if (check->depth > 0) {
            struct kn_op_snapshot *snapshot = &check->stack[check->depth - 1];
            if (call->op->reference)
                status = repeat_and_compare(check, call, snapshot);
            drop_snapshot(check);
        }
    }
    kn_op_set_observer(observe, check);
    return status;
}

void kn_op_check_begin(kn_op_check *check) { kn_op_set_observer(observe, check); }

void kn_op_check_end(kn_op_check *check)
{
    kn_op_set_observer(NULL, NULL);
    while (check->depth > 0)
        drop_snapshot(check);
}
