/* ops/index/keys.c - the list of indices of x[a, :, b] as one index: see index.h. */
#include <koine/autograd.h>
#include <koine/index.h>
#include <koine/shape.h>
#include <stdio.h>

#include "base/integer.h"
#include "loops/work_size.h"
#include "ops/index/index.h"
#include "ops/shape/broadcast.h"
#include "tensor/strides.h"

/* The indices. Each is along dimension `dim` of x, one that was a mask along several dimensions, the last of which is
 * `dim`, as if they were one of `size`. */
typedef struct index_list {
    int count, num_dims;
    kn_tensor *index[KN_MAX_DIMS];
    int dim[KN_MAX_DIMS];
    int64_t size[KN_MAX_DIMS];
    bool used[KN_MAX_DIMS];
} index_list;

static kn_status use_dimensions(index_list *list, const kn_tensor *x, int first, int count)
{
    char text[KN_DESCRIBE];

    list->size[list->count] = 1;
    for (int dim = first; dim < first + count; dim++) {
        if (dim >= x->ndim)
            return kn_fail(KN_ERR_ARGUMENT, "there are more indices than dimensions of %s",
                           kn_tensor_describe(text, sizeof text, x));
        if (list->used[dim])
            return kn_fail(KN_ERR_ARGUMENT, "dimension %d is indexed twice", dim);
        list->used[dim] = true;
        list->dim[list->count] = dim;
        list->size[list->count] *= x->shape[dim];
    }
    list->num_dims += count;
    return KN_OK;
}

static kn_status add_index(index_list *list, const kn_tensor *x, int dim, kn_tensor *index)
{
    KN_TRY(use_dimensions(list, x, dim, 1));
    list->index[list->count++] = index;
    return KN_OK;
}

/* A mask is the index of its true elements' places. */
static kn_status add_mask(index_list *list, const kn_tensor *x, int dim, kn_tensor *mask)
{
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    bool fits = mask->ndim > 0 && dim + mask->ndim <= x->ndim;

    for (int d = 0; d < mask->ndim && fits; d++)
        fits = mask->shape[d] == x->shape[dim + d];
    if (!fits)
        return kn_fail(KN_ERR_SHAPE, "the mask %s does not fit dimension %d of %s",
                       kn_tensor_describe(a, sizeof a, mask), dim, kn_tensor_describe(b, sizeof b, x));
    KN_TRY(use_dimensions(list, x, dim, mask->ndim));
    KN_NO_GRAD;
    kn_tensor *places = list->index[list->count++] = kn_index_places(mask);
    return places ? KN_OK : kn_error_status();
}

static kn_status list_indices(index_list *list, const kn_tensor *x, kn_tensor *const *indices, int count,
                              const kn_ints *dims)
{
    int next = 0;

    *list = (index_list){0};
    if (dims->count > 0 && dims->count != count)
        return kn_fail(KN_ERR_ARGUMENT, "there are %d indices, but %d dims", count, dims->count);
    for (int i = 0; i < count; i++) {
        int dim = next;
        if (dims->count > 0)
            KN_TRY(kn_dim_from_front(&dim, dims->values[i], x->ndim));
        if (indices[i]->dtype != KN_BOOL)
            KN_TRY(kn_index_check_dtype(indices[i]));
        KN_TRY((indices[i]->dtype == KN_BOOL ? add_mask : add_index)(list, x, dim, indices[i]));
        next = list->dim[list->count - 1] + 1;
    }
    return KN_OK;
}

static void add_dimension(kn_index_map *map, int64_t size, int own, int along)
{
    map->shape[map->ndim] = size;
    map->own[map->ndim] = own;
    map->along[map->ndim++] = along;
}

/* The space: the index's dimensions where those indexed are, if they are neighbours, else in front. */
static kn_status set_space(kn_index_map *map, const index_list *list, const kn_tensor *x, int ndim,
                           const int64_t *shape)
{
    int first = KN_MAX_DIMS, last = -1;

    for (int d = 0; d < x->ndim; d++)
        if (list->used[d]) {
            first = d < first ? d : first;
            last = d;
        }
    if (x->ndim - list->num_dims + ndim > KN_MAX_DIMS)
        return kn_fail(KN_ERR_SHAPE, "the result has %d dimensions, more than %d", x->ndim - list->num_dims + ndim,
                       KN_MAX_DIMS);
    const int start = last - first + 1 == list->num_dims ? first : 0;
    bool placed = false;
    map->ndim = 0;
    for (int d = 0; d <= x->ndim; d++) {
        for (int k = 0; map->ndim == start + k && !placed && k < ndim; k++)
            add_dimension(map, shape[k], -1, k);
        placed = placed || map->ndim >= start;
        if (d < x->ndim && !list->used[d])
            add_dimension(map, x->shape[d], d, -1);
    }
    return KN_OK;
}

/* One index is taken as it is. */
static kn_status use_one(kn_index_map *map, kn_tensor **key, const kn_tensor *x, const index_list *list)
{
    int64_t strides[KN_MAX_DIMS];

    kn_strides_contiguous(strides, x->ndim, x->shape);
    map->dim = list->num_dims == 1 ? list->dim[0] : -1;
    map->unit = map->dim >= 0 ? 1 : kn_max_i64(strides[list->dim[0]], 1);
    map->size = list->size[0];
    map->wraps = map->dim >= 0;
    *key = list->index[0];
    return KN_OK;
}

static kn_status add_to_key(kn_tensor *key, kn_tensor *index, int64_t size, int64_t factor, bool first)
{
    kn_tensor *own = NULL;
    char options[32];
    const kn_work_size work = kn_work_for(kn_tensor_limits(key), kn_numel(key));

    snprintf(options, sizeof options, "-DINDEX=%s", kn_dtype_cl(index->dtype));
    KN_TRY(kn_tensor_contiguous(&own, index));
    const kn_status status =
        kn_run(kn_tensor_stream(key), .source = "index/keys.cl", .options = options, .kernel = "index_key",
               .operation = "index", .dims = 1, .global = {work.global}, .local = {work.local},
               KN_ARGS(kn_arg_tensor(own), kn_arg_tensor(key), kn_arg_i64(kn_numel(key)), kn_arg_i64(size),
                       kn_arg_i64(factor), kn_arg_i32(first), kn_arg_fault()));
    kn_release(own);
    return status;
}

/* Several are one that counts in units of the innermost indexed dimension's stride, in x as if it were contiguous. */
static kn_status join(kn_index_map *map, kn_tensor **key, const kn_tensor *x, const index_list *list, int ndim,
                      const int64_t *shape)
{
    int64_t strides[KN_MAX_DIMS];

    kn_strides_contiguous(strides, x->ndim, x->shape);
    map->dim = -1;
    map->unit = INT64_MAX;
    for (int i = 0; i < list->count; i++)
        map->unit = strides[list->dim[i]] < map->unit ? strides[list->dim[i]] : map->unit;
    map->unit = map->unit > 0 ? map->unit : 1; /* x is empty */
    map->size = 1;
    *key = kn_empty_with(ndim, shape, &(kn_tensor_options){.dtype = KN_I64, .device = kn_device_of(x)});
    for (int i = 0; i < list->count && *key && kn_numel(*key) > 0; i++) {
        const int64_t size = list->size[i], factor = strides[list->dim[i]] / map->unit;
        kn_tensor *expanded = kn_expand(list->index[i], ndim, shape);
        if (!expanded)
            return kn_error_status();
        map->size = size == 0 || map->size == 0 ? 0 : map->size + (size - 1) * factor;
        KN_TRY(add_to_key(*key, expanded, size, factor, i == 0));
    }
    return *key ? KN_OK : kn_error_status();
}

kn_status kn_index_join(kn_index_map *map, kn_tensor **key, const kn_tensor *x, kn_tensor *const *indices, int count,
                        const kn_ints *dims)
{
    int64_t shape[KN_MAX_DIMS];
    index_list list;
    int ndim;

    KN_TRY(list_indices(&list, x, indices, count, dims));
    KN_TRY(kn_broadcast_all(&ndim, shape, list.index, list.count));
    KN_TRY(set_space(map, &list, x, ndim, shape));
    return list.count == 1 ? use_one(map, key, x, &list) : join(map, key, x, &list, ndim, shape);
}
