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
