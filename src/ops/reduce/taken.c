/* ops/reduce/taken.c - see taken.h. */
#include "ops/reduce/taken.h"

#include <koine/pointwise.h>
#include <koine/shape.h>
#include <stdio.h>

#include "loops/work_size.h"
#include "ops/dispatch/operators.h"

kn_status kn_taken_backward(kn_grad_call *grad, kn_tensor *gradient, kn_tensor *indices, int dim)
{
    const kn_input_spec *input = &grad->input[0];
    const kn_along l = kn_along_dim(input->ndim, input->shape, dim);
    kn_tensor *out;
    char options[64];

    if (!gradient)
        return KN_OK;
    out = kn_grad_new(grad, 0);
    if (!out)
        return kn_error_status();
    const int64_t taken = kn_numel(gradient), k = l.outer * l.inner > 0 ? taken / (l.outer * l.inner) : 0;
    if (k < l.n)
        KN_TRY(kn_tensor_fill(out, 0));
    if (taken == 0)
        return KN_OK;
    indices = kn_contiguous(indices);
    if (!indices)
        return kn_error_status();
    snprintf(options, sizeof options, "-DBITS=%s",
             kn_dtype_size(out->dtype) == 2   ? "ushort"
             : kn_dtype_size(out->dtype) == 4 ? "uint"
                                              : "ulong");
    const kn_work_size work = kn_work_for(kn_tensor_limits(out), taken);
    return kn_run(grad->stream, .source = "reduce/taken.cl", .options = options, .kernel = "place_taken",
                  .operation = grad->op->name, .dims = 1, .global = {work.global}, .local = {work.local},
                  KN_ARGS(kn_arg_tensor(gradient), kn_arg_tensor(indices), kn_arg_tensor(out), kn_arg_i64(taken),
                          kn_arg_i64(k), kn_arg_i64(l.n), kn_arg_i64(l.inner), kn_arg_fault()));
}

/* Indices into all of input 0 in memory order, from those along a dimension. */
static kn_tensor *flat_places(const kn_grad_call *grad, kn_tensor *indices, int dim)
{
    const kn_input_spec *input = &grad->input[0];
    const kn_along l = kn_along_dim(input->ndim, input->shape, dim);
    const kn_tensor_options options = {.dtype = KN_I64, .device = input->device};
    const int64_t k = l.outer * l.inner > 0 ? kn_numel(indices) / (l.outer * l.inner) : 0;
    const int64_t outer[] = {l.outer, 1, 1}, inner[] = {1, 1, l.inner}, shape[] = {l.outer, k, l.inner};
    kn_tensor *row = kn_mul_scalar(kn_arange_with(0, (double)l.outer, 1, &options), l.n * l.inner);
    kn_tensor *column = kn_arange_with(0, (double)l.inner, 1, &options);
    kn_tensor *along = kn_mul_scalar(kn_reshape(indices, 3, shape), l.inner);
    kn_tensor *places = kn_add(kn_add(along, kn_reshape(row, 3, outer)), kn_reshape(column, 3, inner));
    return kn_reshape(places, 1, (const int64_t[]){kn_numel(indices)});
}

kn_status kn_taken_backward_recorded(kn_grad_call *grad, kn_tensor *gradient, kn_tensor *indices, int dim)
{
    const kn_input_spec *input = &grad->input[0];
    const int64_t all[] = {kn_shape_numel(input->ndim, input->shape)};
    const kn_tensor_options options = {.dtype = input->dtype, .device = input->device};

    if (!gradient)
        return KN_OK;
    kn_tensor *places = flat_places(grad, indices, dim), *zeros = kn_zeros_with(1, all, &options);
    kn_tensor *flat = kn_reshape(gradient, 1, (const int64_t[]){kn_numel(gradient)});
    kn_tensor *out = zeros && places && flat
                         ? kn_invoke(&kn_index_select_backward_op, &(kn_dim_args){0}, flat, zeros, places)
                         : NULL;
    grad->grad_inputs[0] = out ? kn_reshape(out, input->ndim, input->shape) : NULL;
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
