/* ops/shape/parts.c - views of a part: narrow, select, slice, diagonal, unfold. Gradients are zeros with the part in
 * its place. */
#include <koine/shape.h>
#include <string.h>

#include "ops/shape/views.h"
#include "tensor/strides.h"

/* --- narrow, select, slice ---------------------------------------------------------------------------------------- */

/* Every step-th element from `start` on. */
static kn_status part_backward(kn_grad_call *grad)
{
    const kn_view_params *view = grad->params;
    kn_tensor *g = grad->grad_outputs[0];
    kn_narrow_backward_args args = {.dim = view->dim, .start = view->start, .step = view->step};
    if (g->ndim < grad->input[0].ndim) /* select: the dimension is gone */
        g = kn_unsqueeze(g, view->dim);
    args.size = grad->input[0].shape[view->dim];
    return kn_view_give(grad, kn_invoke(&kn_narrow_backward_op, &args, g));
}

static kn_status part_of(kn_tensor **part, kn_tensor *whole, const void *params)
{
    const kn_view_params *view = params;
    kn_view_params in_whole = {.ndim = whole->ndim};
    memcpy(in_whole.strides, whole->strides, sizeof in_whole.strides);
    in_whole.strides[view->dim] *= view->step;
    if (view->ndim < whole->ndim) /* select */
        kn_view_drop(&in_whole, view->dim);
    const int64_t start = kn_shape_numel(view->ndim, view->shape) > 0 ? view->start * whole->strides[view->dim] : 0;
    return kn_tensor_view(part, whole, view->ndim, view->shape, in_whole.strides, whole->offset + start);
}

static void part_range(kn_range *range, const void *params)
{
    const kn_view_params *view = params;
    const int64_t count = view->length;
    *range = (kn_range){.dim = view->dim,
                        .start = view->start,
                        .end = view->start + (count > 0 ? (count - 1) * view->step + 1 : 0),
                        .has_holes = count > 1 && view->step > 1};
}

static kn_status begin(kn_view_params **view, kn_entry *entry, int dim)
{
    const kn_tensor *x = entry->inputs[0];

    *view = kn_view_enter(entry);
    (*view)->step = 1;
    if (x->ndim == 0)
        return kn_fail(KN_ERR_SHAPE, "a 0-dimensional tensor has no parts");
    return kn_dim_from_front(&(*view)->dim, dim, x->ndim);
}

static void set_part(kn_view_params *view, int64_t start, int64_t step, int64_t length)
{
    view->start = start;
    view->step = step;
    view->length = length;
    view->shape[view->dim] = length;
    view->offset += length > 0 ? start * view->strides[view->dim] : 0;
    view->strides[view->dim] *= step;
}

static kn_status narrow_enter(kn_entry *entry)
{
    const kn_narrow_args *params = entry->params;
    kn_view_params *view;

    KN_TRY(begin(&view, entry, params->dim));
    const int64_t size = view->shape[view->dim], start = params->start < 0 ? params->start + size : params->start;
    if (start < 0 || params->length < 0 || start > size - params->length)
        return kn_fail(KN_ERR_ARGUMENT, "start %lld and length %lld reach beyond size %lld of dimension %d",
                       (long long)start, (long long)params->length, (long long)size, view->dim);
    set_part(view, start, 1, params->length);
    return KN_OK;
}

static kn_status select_enter(kn_entry *entry)
{
    const kn_select_args *params = entry->params;
    kn_view_params *view;

    KN_TRY(begin(&view, entry, params->dim));
    const int64_t size = view->shape[view->dim];
    if (params->index < -size || params->index >= size)
        return kn_fail(KN_ERR_ARGUMENT, "index %lld is out of range for size %lld of dimension %d",
                       (long long)params->index, (long long)size, view->dim);
    set_part(view, params->index < 0 ? params->index + size : params->index, 1, 1);
    kn_view_drop(view, view->dim);
    return KN_OK;
}

/* A bound of a slice, as in Python: negative ones count from the end, and all are cut to the size. */
static int64_t bound(int64_t at, int64_t size)
{
    at += at < 0 ? size : 0;
    return at < 0 ? 0 : at > size ? size : at;
}

static kn_status slice_enter(kn_entry *entry)
{
    const kn_slice_args *params = entry->params;
    kn_view_params *view;

    KN_TRY(begin(&view, entry, params->dim));
    const int64_t size = view->shape[view->dim], start = bound(params->start, size), stop = bound(params->stop, size);
    set_part(view, start, params->step, stop > start ? (stop - start - 1) / params->step + 1 : 0);
    return KN_OK;
}

static const kn_op_param narrow_rows[] = {KN_PARAM(kn_narrow_args, dim), KN_PARAM(kn_narrow_args, start),
                                          KN_PARAM(kn_narrow_args, length)};
static const kn_op_param select_rows[] = {KN_PARAM(kn_select_args, dim), KN_PARAM(kn_select_args, index)};
static const kn_op_param slice_rows[] = {KN_PARAM(kn_slice_args, dim), KN_PARAM(kn_slice_args, start),
                                         KN_PARAM(kn_slice_args, stop),
                                         KN_PARAM(kn_slice_args, step, .min = 1, .max = 9e15)};
#define PART_OP(op_name, params_, enter_)                                                                              \
    {                                                                                                                  \
        KN_VIEW_FIELDS(op_name, enter_, part_backward), .params = params_, .part = part_of, .range = part_range        \
    }
const kn_op kn_narrow_op = PART_OP("narrow", KN_PARAMS(kn_narrow_args, narrow_rows), narrow_enter);
const kn_op kn_select_op = PART_OP("select", KN_PARAMS(kn_select_args, select_rows), select_enter);
const kn_op kn_slice_op =
    PART_OP("slice", KN_PARAMS(kn_slice_args, slice_rows, .stop = KN_SLICE_END, .step = 1), slice_enter);

kn_tensor *kn_narrow(kn_tensor *x, int dim, int64_t start, int64_t length)
{
    const kn_narrow_args params = {dim, start, length};
    return kn_invoke(&kn_narrow_op, &params, x);
}

kn_tensor *kn_select(kn_tensor *x, int dim, int64_t index)
{
    const kn_select_args params = {dim, index};
    return kn_invoke(&kn_select_op, &params, x);
}

kn_tensor *kn_slice(kn_tensor *x, int dim, int64_t start, int64_t stop, int64_t step)
{
    const kn_slice_args params = {dim, start, stop, step};
    return kn_invoke(&kn_slice_op, &params, x);
}

/* --- diagonal ----------------------------------------------------------------------------------------------------- */

/* The diagonal that starts `offset` columns to the right, or rows below if negative, becomes the last dimension. */
static kn_status set_diagonal(kn_view_params *view, int64_t offset, int dim1, int dim2)
{
    const int ndim = view->ndim;

    KN_TRY(kn_dim_from_front(&view->dim, dim1, ndim));
    KN_TRY(kn_dim_from_front(&view->other, dim2, ndim));
    if (ndim < 2 || view->dim == view->other)
        return kn_fail(KN_ERR_ARGUMENT, "a diagonal is along two dimensions, not %d and %d of %d", dim1, dim2, ndim);
    const int64_t down = offset < 0 ? -offset : 0, right = offset > 0 ? offset : 0;
    const int64_t rows = view->shape[view->dim] - down, columns = view->shape[view->other] - right;
    const int64_t length = rows < columns ? rows : columns,
                  step = view->strides[view->dim] + view->strides[view->other];
    view->start = offset;
    if (length > 0)
        view->offset += down * view->strides[view->dim] + right * view->strides[view->other];
    kn_view_drop(view, view->dim > view->other ? view->dim : view->other);
    kn_view_drop(view, view->dim > view->other ? view->other : view->dim);
    view->shape[view->ndim] = length > 0 ? length : 0;
    view->strides[view->ndim++] = step;
    return KN_OK;
}

static kn_status diagonal_enter(kn_entry *entry)
{
    const kn_diagonal_params *params = entry->params;
    return set_diagonal(kn_view_enter(entry), params->offset, params->dim1, params->dim2);
}

static kn_status diagonal_backward(kn_grad_call *grad)
{
    const kn_view_params *view = grad->params;
    kn_diagonal_backward_args args = {
        .shape.count = grad->input[0].ndim, .offset = view->start, .dim1 = view->dim, .dim2 = view->other};
    memcpy(args.shape.values, grad->input[0].shape, sizeof args.shape.values);
    return kn_view_give(grad, kn_invoke(&kn_diagonal_backward_op, &args, grad->grad_outputs[0]));
}

static const kn_op_param diagonal_rows[] = {KN_PARAM(kn_diagonal_params, offset), KN_PARAM(kn_diagonal_params, dim1),
                                            KN_PARAM(kn_diagonal_params, dim2)};
const kn_op kn_diagonal_op = KN_VIEW_OP("diagonal", KN_PARAMS(kn_diagonal_params, diagonal_rows, KN_DIAGONAL_DEFAULTS),
                                        diagonal_enter, diagonal_backward);

kn_tensor *kn_diagonal_with(kn_tensor *x, const kn_diagonal_params *params)
{
    return kn_invoke(&kn_diagonal_op, params, x);
}

kn_diagonal_params kn_diagonal_params_init(void) { return (kn_diagonal_params){KN_DIAGONAL_DEFAULTS}; }

kn_status kn_diagonal_of_whole(kn_tensor **part, kn_tensor *whole, const kn_diagonal_backward_args *args)
{
    kn_view_params view = {.ndim = whole->ndim, .offset = whole->offset};

    memcpy(view.shape, whole->shape, sizeof view.shape);
    memcpy(view.strides, whole->strides, sizeof view.strides);
    KN_TRY(set_diagonal(&view, args->offset, args->dim1, args->dim2));
    return kn_tensor_view(part, whole, view.ndim, view.shape, view.strides, view.offset);
}

/* --- unfold ------------------------------------------------------------------------------------------------------- */

static kn_status unfold_enter(kn_entry *entry)
{
    const kn_tensor_unfold_args *params = entry->params;
    const kn_tensor *x = entry->inputs[0];
    kn_view_params *view = kn_view_enter(entry);

    KN_TRY(kn_dim_from_front(&view->dim, params->dimension, x->ndim));
    if (x->ndim == KN_MAX_DIMS)
        return kn_fail(KN_ERR_SHAPE, "the tensor already has %d dimensions, the maximum", KN_MAX_DIMS);
    const int64_t size = x->ndim > 0 ? x->shape[view->dim] : 1, stride = x->ndim > 0 ? x->strides[view->dim] : 1;
    if (params->size > size)
        return kn_fail(KN_ERR_ARGUMENT, "windows of size %lld are larger than size %lld of dimension %d",
                       (long long)params->size, (long long)size, view->dim);
    view->step = params->step;
    view->shape[x->ndim] = params->size;
    view->strides[x->ndim] = stride;
    view->ndim++;
    if (x->ndim > 0) {
        view->shape[view->dim] = (size - params->size) / params->step + 1;
        view->strides[view->dim] *= params->step;
    }
    return KN_OK;
}

/* The windows are added to zeros. */
static kn_status unfold_backward(kn_grad_call *grad)
{
    const kn_view_params *view = grad->params;
    const kn_input_spec *x = &grad->input[0];
    kn_as_strided_backward_args args = {.size = kn_shape_numel(x->ndim, x->shape), .strides.count = x->ndim + 1};

    kn_strides_contiguous(args.strides.values, x->ndim, x->shape);
    args.strides.values[x->ndim] = x->ndim > 0 ? args.strides.values[view->dim] : 1;
    if (x->ndim > 0)
        args.strides.values[view->dim] *= view->step;
    kn_tensor *whole = kn_invoke(&kn_as_strided_backward_op, &args, grad->grad_outputs[0]);
    return kn_view_give(grad, kn_reshape(whole, x->ndim, x->shape));
}

static const kn_op_param unfold_rows[] = {KN_PARAM(kn_tensor_unfold_args, dimension),
                                          KN_PARAM(kn_tensor_unfold_args, size, .max = 9e15),
                                          KN_PARAM(kn_tensor_unfold_args, step, .min = 1, .max = 9e15)};
const kn_op kn_tensor_unfold_op =
    KN_VIEW_OP("tensor_unfold", KN_PARAMS(kn_tensor_unfold_args, unfold_rows, .size = 1, .step = 1), unfold_enter,
               unfold_backward);

kn_tensor *kn_tensor_unfold(kn_tensor *x, int dimension, int64_t size, int64_t step)
{
    const kn_tensor_unfold_args params = {dimension, size, step};
    return kn_invoke(&kn_tensor_unfold_op, &params, x);
}
