/* ops/shape/reduce.c - resolves the dimensions of a reduction. See reduce.h. */
#include "ops/shape/reduce.h"

#include <koine/shape.h>

/* --- dimensions -------------------------------------------------------------------------------------------------- */

bool kn_reduce_named(kn_ints *list, const char *function, const int *dims, int num_dims)
{
    *list = (kn_ints){.count = num_dims > 0 ? num_dims : 0};
    if (num_dims > 0 && !dims) {
        kn_fail_argument_null(function, "dims");
        kn_error_make_sticky();
        return false;
    }
    if (num_dims > KN_MAX_DIMS) {
        kn_fail_null(KN_ERR_ARGUMENT, "%s: %d dimensions given, but a tensor has at most %d", function, num_dims,
                     KN_MAX_DIMS);
        return false;
    }
    for (int i = 0; i < num_dims; i++)
        list->values[i] = dims[i];
    return true;
}

kn_status kn_reduce_enter(kn_reduce_params *params, const kn_ints *dims, bool keepdim, int ndim)
{
    *params = (kn_reduce_params){.keepdim = keepdim};
    for (int i = 0; i < ndim && dims->count == 0; i++)
        params->over[i] = true;
    for (int i = 0; i < dims->count; i++) {
        int dim;
        KN_TRY(kn_dim_from_front(&dim, dims->values[i], ndim));
        if (params->over[dim])
            return kn_fail(KN_ERR_ARGUMENT, "dimension %d is given twice", dim);
        params->over[dim] = true;
    }
    return KN_OK;
}

kn_status kn_reduce_output(kn_call *call, const kn_reduce_params *params, kn_dtype dtype)
{
    const kn_tensor *x = call->inputs[0];
    int64_t shape[KN_MAX_DIMS];
    int ndim = 0;

    for (int d = 0; d < x->ndim; d++)
        if (!params->over[d] || params->keepdim)
            shape[ndim++] = params->over[d] ? 1 : x->shape[d];
    return kn_call_output(call, dtype, ndim, shape);
}

int64_t kn_reduce_count(const kn_reduce_params *params, int ndim, const int64_t *shape)
{
    int64_t count = 1;
    for (int d = 0; d < ndim; d++)
        count *= params->over[d] ? shape[d] : 1;
    return count;
}

/* --- rows in any layout ------------------------------------------------------------------------------------------- */

typedef struct strided_dim {
    int64_t size, stride;
} strided_dim;

/* Appends a dimension, as part of the last one if it continues that. */
static void append_dim(strided_dim *dims, int *count, strided_dim next)
{
    strided_dim *last = *count > 0 ? &dims[*count - 1] : NULL;
    if (last && last->stride == next.stride * next.size)
        *last = (strided_dim){last->size * next.size, next.stride};
    else
        dims[(*count)++] = next;
}

/* The dimensions that are kept or that are reduced, in order or, `by_stride`, from the largest stride to the least. */
static int list_dims(strided_dim *dims, const kn_tensor *x, const bool *over, bool is_over, bool by_stride)
{
    strided_dim all[KN_MAX_DIMS];
    int count = 0, merged = 0;
    for (int d = 0; d < x->ndim; d++) {
        int at = count;
        if (over[d] != is_over || x->shape[d] == 1)
            continue;
        for (; by_stride && at > 0 && all[at - 1].stride < x->strides[d]; at--)
            all[at] = all[at - 1];
        all[at] = (strided_dim){x->shape[d], x->strides[d]};
        count++;
    }
    for (int i = 0; i < count; i++)
        append_dim(dims, &merged, all[i]);
    return merged;
}

bool kn_reduce_in_place(kn_reduce_rows *rows, kn_tensor *x, const bool *over)
{
    strided_dim kept[KN_MAX_DIMS], row[KN_MAX_DIMS];
    const int num_kept = list_dims(kept, x, over, false, false);
    if (num_kept > 2 || list_dims(row, x, over, true, true) != 1)
        return false;
    *rows = (kn_reduce_rows){.x = x, .outer = 1, .n = row[0].size, .inner = 1, .step = row[0].stride};
    const strided_dim *last = num_kept > 0 ? &kept[num_kept - 1] : NULL;
    const bool is_inner = last && last->stride == 1 && (num_kept > 1 || rows->step != 1);
    if (is_inner)
        rows->inner = last->size;
    if (num_kept > is_inner) {
        rows->outer = kept[0].size;
        rows->pitch = kept[0].stride;
    }
    if ((!is_inner && rows->step != 1) || num_kept > 1 + is_inner)
        return false;
    kn_retain(x);
    return true;
}

static kn_status permute_last(kn_tensor **x, kn_tensor *input, const bool *over)
{
    int64_t shape[KN_MAX_DIMS], strides[KN_MAX_DIMS];
    kn_tensor *view;
    int at = 0;
    for (int is_over = 0; is_over < 2; is_over++)
        for (int d = 0; d < input->ndim; d++)
            if (over[d] == (is_over == 1)) {
                shape[at] = input->shape[d];
                strides[at++] = input->strides[d];
            }
    KN_TRY(kn_tensor_view(&view, input, input->ndim, shape, strides, input->offset));
    const kn_status status = kn_tensor_contiguous(x, view);
    kn_release(view);
    return status;
}

kn_status kn_reduce_copy(kn_reduce_rows *rows, kn_tensor *input, const bool *over)
{
    int first = input->ndim, last = -1;
    for (int d = input->ndim - 1; d >= 0; d--)
        if (over[d] && input->shape[d] != 1) {
            first = d;
            last = last < 0 ? d : last;
        }
    *rows = (kn_reduce_rows){.outer = 1, .n = 1, .inner = 1};
    bool are_neighbours = true;
    for (int d = 0; d < input->ndim; d++) {
        const bool goes = over[d] || input->shape[d] == 1;
        are_neighbours = are_neighbours && (goes || d < first || d > last);
        *(over[d] ? &rows->n : d < first || last < 0 ? &rows->outer : &rows->inner) *= input->shape[d];
    }
    if (!are_neighbours) {
        rows->outer *= rows->inner;
        rows->inner = 1;
    }
    rows->pitch = rows->n * rows->inner;
    rows->step = rows->inner;
    return are_neighbours ? kn_tensor_contiguous(&rows->x, input) : permute_last(&rows->x, input, over);
}

kn_tensor *kn_reduce_spread(kn_tensor *gradient, const kn_reduce_params *params, int ndim, const int64_t *shape)
{
    int64_t kept[KN_MAX_DIMS];

    for (int d = 0; d < ndim; d++)
        kept[d] = params->over[d] ? 1 : shape[d];
    return kn_expand(kn_reshape(gradient, ndim, kept), ndim, shape);
}

kn_along kn_along_dim(int ndim, const int64_t *shape, int dim)
{
    if (ndim == 0)
        return (kn_along){1, 1, 1};
    return (kn_along){kn_shape_numel(dim, shape), shape[dim], kn_shape_numel(ndim - dim - 1, shape + dim + 1)};
}
