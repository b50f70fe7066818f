/* ops/sort/taken.c - see taken.h. */
#include "ops/sort/taken.h"

#include <koine/index.h>
#include <koine/shape.h>

kn_status kn_taken_backward_recorded(kn_grad_call *grad, kn_tensor *gradient, kn_tensor *indices, int dim)
{
    const kn_input_spec *input = &grad->input[0];
    int64_t shape[KN_MAX_DIMS];

    if (!gradient)
        return KN_OK;
    kn_tensor *zeros =
        kn_zeros_with(input->ndim, input->shape, &(kn_tensor_options){.dtype = input->dtype, .device = input->device});
    if (kn_shape_numel(input->ndim, input->shape) == 0 || kn_numel(gradient) == 0) {
        grad->grad_inputs[0] = zeros;
        return zeros ? KN_OK : kn_error_status();
    }
    const int64_t all = kn_shape_numel(input->ndim, input->shape), n = input->ndim ? input->shape[dim] : 1;
    for (int d = 0; d < input->ndim; d++)
        shape[d] = d == dim ? kn_numel(gradient) / (all / n) : input->shape[d];
    grad->grad_inputs[0] =
        kn_scatter_add(zeros, dim, kn_reshape(indices, input->ndim, shape), kn_reshape(gradient, input->ndim, shape));
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

kn_tensor *kn_invoke_with_indices(const kn_op *op, kn_tensor *x, const void *params, kn_tensor **indices)
{
    kn_tensor *outputs[2] = {NULL, NULL};
    if (indices)
        *indices = NULL;
    if (kn_op_invoke_to(op, &x, 1, params, outputs, indices ? 2 : 1) != KN_OK)
        return kn_error_make_sticky();
    if (indices)
        *indices = outputs[1];
    return outputs[0];
}
