/* ops/sort/along.c - see along.h. */
#include "ops/sort/along.h"

#include <koine/pointwise.h>
#include <koine/shape.h>
#include <stdio.h>

#include "loops/work_size.h"
#include "ops/dispatch/operators.h"

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* A view of x with dimension `dim` moved last, or, `back`, with the last dimension moved to `dim`. */
static kn_status moved(kn_tensor **view, kn_tensor *x, int dim, bool back)
{
    int64_t shape[KN_MAX_DIMS], strides[KN_MAX_DIMS];
    const int last = x->ndim - 1;
    for (int d = 0; d < x->ndim; d++) {
        const int from = back ? (d < dim ? d : d == dim ? last : d - 1) : (d < dim ? d : d == last ? dim : d + 1);
        shape[d] = x->shape[from];
        strides[d] = x->strides[from];
    }
    return kn_tensor_view(view, x, x->ndim, shape, strides, x->offset);
}

kn_status kn_sorted_rows_of(kn_sorted_rows *rows, kn_tensor *x, int dim)
{
    kn_tensor *view;
    rows->n = x->ndim ? x->shape[dim] : 1;
    rows->rows = rows->n ? kn_numel(x) / rows->n : 0;
    if (x->ndim == 0)
        return kn_tensor_contiguous(&rows->x, x);
    KN_TRY(moved(&view, x, dim, false));
    const kn_status status = kn_tensor_contiguous(&rows->x, view);
    kn_release(view);
    return status;
}

/* Memory for an output's rows: the output's own if the dimension is last or gone. */
static kn_status open_output(kn_tensor **rows, kn_tensor *output, int dim, int ndim)
{
    int64_t shape[KN_MAX_DIMS];
    *rows = NULL;
    if (!output)
        return KN_OK;
    if (output->ndim < ndim || dim >= ndim - 1 || output->shape[dim] == 1) {
        *rows = kn_retain(output);
        return KN_OK;
    }
    for (int d = 0; d < ndim; d++)
        shape[d] = output->shape[d < dim ? d : d == ndim - 1 ? dim : d + 1];
    return kn_tensor_new(rows, output->dtype, ndim, shape, output->storage->device);
}

static kn_status close_output(kn_tensor *rows, kn_tensor *output, int dim, kn_status status)
{
    if (status == KN_OK && rows && rows != output) {
        kn_tensor *view;
        status = moved(&view, rows, dim, true);
        if (status == KN_OK) {
            status = kn_tensor_copy(output, view);
            kn_release(view);
        }
    }
    kn_release(rows);
    return status;
}

kn_status kn_sort_along(kn_stream *stream, const char *operation, kn_tensor *x, int dim, int64_t k, bool descending,
                        kn_tensor *values, kn_tensor *indices)
{
    kn_sorted_rows rows;
    kn_sort_problem p = {.operation = operation, .k = k, .descending = descending};
    KN_TRY(kn_sorted_rows_of(&rows, x, dim));
    kn_status status = open_output(&p.values, values, dim, x->ndim);
    if (status == KN_OK)
        status = open_output(&p.indices, indices, dim, x->ndim);
    p.x = rows.x;
    p.rows = rows.rows;
    p.n = rows.n;
    if (status == KN_OK)
        status = kn_sort_run(stream, &p);
    status = close_output(p.values, values, dim, status);
    status = close_output(p.indices, indices, dim, status);
    kn_release(rows.x);
    return status;
}

/* --- gradients ---------------------------------------------------------------------------------------------------- */

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
    return kn_run(grad->stream, .source = "sort/place.cl", .options = options, .kernel = "sort_place",
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
    kn_tensor *row = kn_mul_scalar(kn_arange_with(0, (double)l.outer, 1, &options), (double)(l.n * l.inner));
    kn_tensor *column = kn_arange_with(0, (double)l.inner, 1, &options);
    kn_tensor *along = kn_mul_scalar(kn_reshape(indices, 3, shape), (double)l.inner);
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
