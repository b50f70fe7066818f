/* ops/conv/halves.c - convolutions of float16 and bfloat16: in bfloat16 where that is faster (cpu/pairs.c), all others
 * in float32, to which operands are converted, also those that were saved as halves for the backward pass. */
#include <koine/reduce.h>

#include "autograd/op.h"
#include "ops/conv/common/conv.h"
#include "tensor/tensor.h"

bool kn_conv_is_bf16(const kn_op *op, kn_stream *stream, kn_dtype dtype, const kn_conv_shape *s)
{
    return dtype == KN_BF16 && !((const kn_conv_kind *)op->detail)->transposed && kn_conv_supports_pairs(stream, s);
}

kn_status kn_conv_operand_as(kn_tensor **operand, kn_tensor *given, kn_dtype dtype)
{
    if (!given)
        return KN_OK;
    return given->dtype == dtype ? kn_tensor_contiguous(operand, given)
                                 : kn_tensor_cast(operand, given, dtype, given->storage->device);
}

kn_status kn_conv_result_as(kn_tensor **result, kn_tensor *given, kn_dtype dtype)
{
    if (given->dtype != dtype)
        return kn_tensor_new(result, dtype, given->ndim, given->shape, given->storage->device);
    *result = kn_retain(given);
    return KN_OK;
}

kn_status kn_conv_deliver(kn_tensor *given, const kn_tensor *result)
{
    return result == given ? KN_OK : kn_tensor_copy(given, result);
}

kn_status kn_conv_bias_gradient_bf16(kn_grad_call *grad, kn_tensor *dy)
{
    const int channel = dy->ndim - 1 - ((const kn_conv_kind *)grad->op->detail)->dims;
    int summed[KN_MAX_DIMS], count = 0;
    for (int d = 0; d < dy->ndim; d++)
        if (d != channel)
            summed[count++] = d;
    grad->grad_inputs[2] = kn_sum_dims(dy, summed, count, false);
    return grad->grad_inputs[2] ? KN_OK : kn_error_status();
}
