/* ops/reduce/reduce.c - which dimensions a reduction goes over. See reduce.h. */
#include "ops/reduce/reduce.h"

#include <koine/ops.h>

#include "ops/shape/views.h"

/* --- which dimensions -------------------------------------------------------------------------------------------- */

bool kn_reduce_dims(kn_reduce_params *params, const char *function, int ndim, const int *dims, int num_dims,
                    bool keepdim)
{
    *params = (kn_reduce_params){.keepdim = keepdim};
    if (num_dims > 0 && !dims) {
        kn_fail_argument_null(function, "dims");
        kn_stick();
        return false;
    }
    for (int i = 0; i < ndim && num_dims <= 0; i++)
        params->over[i] = true;
    for (int i = 0; i < num_dims; i++) {
        const int dim = kn_wrap_dim(function, dims[i], ndim);
        if (dim < 0)
            return false;
        if (params->over[dim]) {
            kn_fail_null(KN_ERR_ARGUMENT, "%s: dimension %d is named twice", function, dim);
            return false;
        }
        params->over[dim] = true;
    }
    return true;
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
