/* ops/conv/halves.c - convolutions of bfloat16 that are computed as such (cpu/pairs.c): which, and the gradients that
 * these have otherwise. All others are converted to float32 (widens_halves in autograd/op.h). */
#include <koine/reduce.h>

#include "ops/conv/common/conv.h"
#include "ops/dispatch/invoke.h"

bool kn_conv_reads_halves(const kn_entry *entry)
{
    KN_PRESERVE_ERROR; /* of shapes that do not fit, which are reported later */
    const kn_conv_kind *kind = entry->op->detail;
    const kn_tensor *x = entry->inputs[0], *weight = entry->inputs[1];
    kn_conv_shape shape;
    if (x->dtype != KN_BF16 || kind->transposed || kn_device_is_host(x->storage->device))
        return false;
    return kn_conv_resolve(&shape, kind, entry->record, x->dtype, x->ndim, x->shape, weight->ndim, weight->shape) ==
               KN_OK &&
           kn_conv_supports_pairs(kn_stream_current(x->storage->device), &shape);
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

kn_status kn_conv_data_in_f32(kn_grad_call *grad, const kn_conv_problem *problem, kn_tensor *dy)
{
    enum { DY, WEIGHT, DX, COUNT };
    kn_tensor *const dx = grad->grad_inputs[0], *wide[COUNT] = {NULL};
    kn_conv_problem p = *problem;
    kn_status status = kn_tensor_cast(&wide[DY], dy, KN_F32, dy->storage->device);
    if (status == KN_OK)
        status = kn_tensor_cast(&wide[WEIGHT], grad->saved[1], KN_F32, dy->storage->device);
    if (status == KN_OK)
        status = kn_tensor_new(&wide[DX], KN_F32, dx->ndim, dx->shape, dx->storage->device);
    if (status == KN_OK) {
        p.bf16 = false;
        p.x = (kn_conv_operand){wide[DX]->storage->buffer, wide[DX]->offset};
        p.y = (kn_conv_operand){wide[DY]->storage->buffer, wide[DY]->offset};
        p.weight = (kn_conv_operand){wide[WEIGHT]->storage->buffer, wide[WEIGHT]->offset};
        status = kn_conv_run(grad->stream, &p);
    }
    if (status == KN_OK)
        status = kn_tensor_copy(dx, wide[DX]);
    for (int i = 0; i < COUNT; i++)
        kn_release(wide[i]);
    return status;
}
