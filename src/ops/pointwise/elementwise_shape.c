/* ops/pointwise/elementwise_shape.c - which dtypes and shapes elementwise operators take, and which they return. */
#include <math.h>
#include <string.h>

#include "ops/dispatch/promote.h"
#include "ops/pointwise/elementwise.h"
#include "ops/shape/broadcast.h"

/* Can the integer dtype not hold the integer? A comparison with it is right nevertheless. */
static bool is_beyond(kn_dtype dtype, kn_scalar number)
{
    return number.is_whole && !kn_dtype_is_floating(dtype) &&
           (number.whole < kn_dtype_lowest(dtype) || number.whole > kn_dtype_highest(dtype));
}

kn_dtype kn_elementwise_joint_dtype(const kn_elementwise *e, kn_tensor *const *operands, int count,
                                    const kn_scalar_args *params)
{
    kn_dtype joint = kn_result_type_of(operands + e->conditions, count - e->conditions);
    for (int i = 0; i < kn_elementwise_count_numbers(e); i++)
        if (!e->bounds || !isinf(params->values[i].real))
            joint = e->rule == KN_COMPARES && is_beyond(joint, params->values[i])
                        ? KN_I64
                        : kn_result_type_scalar(joint, params->values[i]);
    return e->rule == KN_REAL || e->rule == KN_REAL_COMPARES ? kn_real_type(joint) : joint;
}

static kn_dtype result_dtype(const kn_elementwise *e, kn_dtype joint)
{
    return e->rule == KN_COMPARES || e->rule == KN_REAL_COMPARES ? KN_BOOL : joint;
}

static kn_status check_rule(const kn_elementwise *e, kn_dtype joint, const kn_call *call)
{
    const bool is_floating = kn_dtype_is_floating(joint), /* perhaps only because a number is real */
        has_floats = kn_dtype_is_floating(kn_result_type_of(call->inputs, call->num_inputs));
    for (int i = 0; e->rule == KN_NUMBERS && i < call->num_inputs; i++)
        if (call->inputs[i]->dtype == KN_BOOL)
            return kn_fail(KN_ERR_DTYPE, "not defined for bool tensors; convert with kn_to_dtype first");
    if ((e->rule == KN_FLOATS && !has_floats) || ((e->rule == KN_WHOLES || e->rule == KN_INTS) && is_floating) ||
        ((e->rule == KN_JOINT_NUMBERS || e->rule == KN_INTS) && joint == KN_BOOL))
        return kn_fail(KN_ERR_DTYPE, "not defined for %s tensors; convert with kn_to_dtype first",
                       kn_dtype_name(has_floats ? joint : call->inputs[0]->dtype));
    return KN_OK;
}

static kn_status check(const kn_call *call, kn_dtype joint)
{
    const kn_elementwise *e = call->op->detail;
    KN_TRY(check_rule(e, joint, call));
    if (joint == KN_F64 && !kn_tensor_limits(call->inputs[0])->has_f64)
        return kn_fail(KN_ERR_DTYPE, "%s has no double arithmetic: convert the inputs to float32",
                       kn_device_string(call->inputs[0]->storage->device));
    return e->check ? e->check(call) : KN_OK;
}

kn_status kn_elementwise_shape(kn_call *call)
{
    const kn_elementwise *e = call->op->detail;
    const kn_dtype joint = kn_elementwise_joint_dtype(e, call->inputs, call->num_inputs, call->params);
    int64_t shape[KN_MAX_DIMS];
    int ndim;

    KN_TRY(check(call, joint));
    KN_TRY(kn_broadcast_all(&ndim, shape, call->inputs, call->num_inputs));
    return kn_call_output(call, result_dtype(e, joint), ndim, shape);
}

/* As in PyTorch, a change in place is computed in the joint dtype and rounded to that of operand 0, but not from
 * floating to integer or from integer to bool. */
static kn_status check_result(const kn_call *call, kn_dtype result)
{
    const kn_dtype own = call->inputs[0]->dtype;
    if ((kn_dtype_is_floating(result) && !kn_dtype_is_floating(own)) || (own == KN_BOOL && result != KN_BOOL))
        return kn_fail(KN_ERR_DTYPE, "a result of dtype %s cannot be stored in place in a %s tensor",
                       kn_dtype_name(result), kn_dtype_name(own));
    return KN_OK;
}

kn_status kn_elementwise_shape_in_place(kn_call *call)
{
    const kn_elementwise *e = call->op->detail;
    const kn_dtype joint = kn_elementwise_joint_dtype(e, call->inputs, call->num_inputs, call->params);
    const kn_tensor *a = call->inputs[0];
    char text[KN_DESCRIBE], other[KN_DESCRIBE];
    int64_t shape[KN_MAX_DIMS];
    int ndim;

    KN_TRY(check(call, joint));
    KN_TRY(check_result(call, result_dtype(e, joint)));
    KN_TRY(kn_tensor_check_no_overlap(a));
    for (int i = 1; i < call->num_inputs; i++) {
        KN_TRY(kn_broadcast_shapes(&ndim, shape, a, call->inputs[i]));
        if (ndim != a->ndim || memcmp(shape, a->shape, (size_t)ndim * sizeof *shape) != 0)
            return kn_fail(KN_ERR_SHAPE, "%s does not broadcast to %s, the shape of the tensor changed in place",
                           kn_tensor_describe(other, sizeof other, call->inputs[i]),
                           kn_tensor_describe(text, sizeof text, a));
    }
    return kn_call_output(call, a->dtype, a->ndim, a->shape);
}
