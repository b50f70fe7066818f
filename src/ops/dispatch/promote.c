/* ops/dispatch/promote.c - see promote.h. The rules are those of torch.result_type. */
#include "ops/dispatch/promote.h"

#include "tensor/liveness.h"

static int category(kn_dtype dtype) { return kn_dtype_is_floating(dtype) ? 2 : dtype == KN_BOOL ? 0 : 1; }

kn_dtype kn_result_type(const kn_tensor *a, const kn_tensor *b)
{
    if (a->ndim > 0 && b->ndim == 0 && category(a->dtype) >= category(b->dtype))
        return a->dtype;
    if (b->ndim > 0 && a->ndim == 0 && category(b->dtype) >= category(a->dtype))
        return b->dtype;
    return kn_promote_types(a->dtype, b->dtype);
}

kn_dtype kn_result_type_of(kn_tensor *const *tensors, int count)
{
    kn_dtype result[2] = {KN_BOOL, KN_BOOL}; /* of those with dimensions, and of those without */
    bool seen[2] = {false, false};
    for (int i = 0; i < count; i++) {
        const int kind = tensors[i]->ndim == 0;
        result[kind] = kn_promote_types(result[kind], tensors[i]->dtype);
        seen[kind] = true;
    }
    if (!seen[0] || !seen[1])
        return result[seen[1]];
    return category(result[1]) > category(result[0]) ? kn_promote_types(result[0], result[1]) : result[0];
}

kn_dtype kn_result_type_scalar(kn_dtype dtype, kn_scalar number)
{
    if (kn_dtype_is_floating(dtype))
        return dtype;
    if (!number.is_whole)
        return KN_F32;
    return dtype == KN_BOOL ? KN_I64 : dtype;
}

kn_dtype kn_compute_type(kn_dtype dtype) { return dtype == KN_F16 ? KN_F32 : dtype; }

kn_dtype kn_real_type(kn_dtype dtype) { return kn_dtype_is_floating(dtype) ? dtype : KN_F32; }

kn_tensor *kn_apply_as(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params, kn_dtype compute,
                       kn_dtype result)
{
    kn_tensor *converted[KN_OP_MAX_INPUTS];
    kn_tensor *output;
    bool same = compute == result;
    int depth;

    for (int i = 0; i < num_inputs; i++)
        same = same && (!inputs[i] || inputs[i]->dtype == compute);
    if (same)
        return kn_op_apply(op, inputs, num_inputs, params, NULL);

    depth = kn_scope_begin();
    if (depth == 0)
        return kn_stick();
    for (int i = 0; i < num_inputs; i++) {
        converted[i] = inputs[i] ? kn_to_dtype(inputs[i], compute) : NULL;
        if (inputs[i] && !converted[i])
            return kn_scope_return(depth, NULL);
    }
    output = kn_op_apply(op, converted, num_inputs, params, NULL);
    if (output)
        output = kn_to_dtype(output, result);
    return kn_scope_return(depth, output);
}

kn_tensor *kn_operand_as(kn_tensor *operand, kn_dtype joint)
{
    operand = kn_to_dtype(operand, joint);
    return operand ? kn_to_dtype(operand, kn_compute_type(joint)) : NULL;
}

kn_tensor *kn_apply_jointly(const kn_op *op, kn_tensor *const *operands, int num_operands, const void *params,
                            kn_dtype joint, kn_dtype result)
{
    const kn_dtype compute = kn_compute_type(joint);
    kn_tensor *rounded[KN_OP_MAX_INPUTS];
    int depth;

    if (compute == joint)
        return kn_apply_as(op, operands, num_operands, params, compute, result);
    depth = kn_scope_begin();
    if (depth == 0)
        return kn_stick();
    for (int i = 0; i < num_operands; i++) {
        rounded[i] = kn_operand_as(operands[i], joint);
        if (!rounded[i])
            return kn_scope_return(depth, NULL);
    }
    return kn_scope_return(depth, kn_apply_as(op, rounded, num_operands, params, compute, result));
}

bool kn_argument_given(const char *function, const char *name, const kn_tensor *tensor)
{
    if (kn_tensor_given(function, name, tensor) == KN_OK)
        return true;
    kn_stick();
    return false;
}
