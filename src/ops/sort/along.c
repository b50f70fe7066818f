/* ops/sort/along.c - see along.h. */
#include "ops/sort/along.h"

#include <koine/create.h>
#include <string.h>

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

/* All elements of a row are one, repeated: its first k in order are the first k. */
static kn_status take_equal(kn_tensor *x, int dim, int64_t k, kn_tensor *values, kn_tensor *indices)
{
    int64_t shape[KN_MAX_DIMS], strides[KN_MAX_DIMS] = {0};
    kn_tensor *some = NULL, *places = NULL, *spread = NULL;
    kn_status status = KN_OK;

    memcpy(shape, x->shape, sizeof shape);
    shape[dim] = k;
    strides[dim] = 1;
    if (values)
        status = kn_tensor_view(&some, x, x->ndim, shape, x->strides, x->offset);
    if (values && status == KN_OK)
        status = kn_tensor_copy(values, some);
    kn_release(some);
    if (!indices || status != KN_OK)
        return status;
    const int depth = kn_scope_begin();
    if (depth == 0)
        return kn_error_status();
    places = kn_arange_with(0, (double)k, 1, &(kn_tensor_options){.dtype = KN_I64, .device = kn_device_of(x)});
    status = places ? kn_tensor_view(&spread, places, x->ndim, shape, strides, 0) : kn_error_status();
    if (status == KN_OK)
        status = kn_tensor_copy(indices, spread);
    kn_release(spread);
    kn_scope_end(depth);
    return status;
}

kn_status kn_sort_along(kn_stream *stream, const char *operation, kn_tensor *x, int dim, int64_t k, bool descending,
                        kn_tensor *values, kn_tensor *indices)
{
    kn_sorted_rows rows;
    kn_sort_problem p = {.operation = operation, .k = k, .descending = descending};
    if (x->ndim > 0 && k > 0 && x->shape[dim] > 1 && x->strides[dim] == 0 && indices && indices->ndim == x->ndim)
        return take_equal(x, dim, k, values, indices);
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
