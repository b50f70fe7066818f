/* ops/loss/distance.c - similarities and distances of rows of two tensors: compositions. */
#include <koine/autograd.h>
#include <koine/distance.h>
#include <koine/operators.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>

#include "ops/loss/distance.h"
#include "ops/pointwise/elementwise.h"
#include "ops/shape/broadcast.h"

enum { X1, X2 };

kn_status kn_composed_give(kn_entry *entry, kn_tensor *result)
{
    entry->result = result;
    return result ? KN_OK : kn_error_status();
}

/* x divided by its norm along `dim`. As in PyTorch, the gradient passes through the bound of the norm. */
static kn_tensor *unit(kn_tensor *x, int dim, double eps)
{
    kn_tensor *norm = kn_norm_dims(x, 2, &dim, 1, true), *missing = kn_detach(norm);
    missing = kn_sub(kn_clamp(missing, .min = eps), missing);
    return kn_div(x, kn_add(norm, missing));
}

static kn_status cosine_enter(kn_entry *entry)
{
    const kn_cosine_similarity_params *params = entry->params;
    kn_tensor *x1 = entry->inputs[X1], *x2 = entry->inputs[X2];
    int64_t shape[KN_MAX_DIMS];
    int ndim, dim;

    KN_TRY(kn_broadcast_shapes(&ndim, shape, x1, x2));
    KN_TRY(kn_dim_from_front(&dim, params->dim, ndim));
    if (!kn_same_shape(x1, x2)) {
        x1 = kn_expand(x1, ndim, shape);
        x2 = kn_expand(x2, ndim, shape);
    }
    return kn_composed_give(
        entry, kn_sum_dims(kn_mul(unit(x1, dim, params->eps), unit(x2, dim, params->eps)), &dim, 1, false));
}

static const kn_op_param cosine_rows[] = {KN_PARAM(kn_cosine_similarity_params, dim),
                                          KN_PARAM(kn_cosine_similarity_params, eps)};
const kn_op kn_cosine_similarity_op = {
    .name = "cosine_similarity",
    .inputs = {"x1", "x2"},
    .dtypes = {KN_DTYPES_FLOATING},
    .params = KN_PARAMS(kn_cosine_similarity_params, cosine_rows, KN_COSINE_SIMILARITY_DEFAULTS),
    .composes = true,
    .enter = cosine_enter};

kn_cosine_similarity_params kn_cosine_similarity_params_init(void)
{
    return (kn_cosine_similarity_params){KN_COSINE_SIMILARITY_DEFAULTS};
}

kn_tensor *kn_cosine_similarity_with(kn_tensor *x1, kn_tensor *x2, const kn_cosine_similarity_params *params)
{
    return kn_invoke(&kn_cosine_similarity_op, params, x1, x2);
}

/* --- of pairs of rows --------------------------------------------------------------------------------------------- */

static kn_status pairwise_enter(kn_entry *entry)
{
    const kn_pairwise_distance_params *params = entry->params;
    const int last = -1;
    kn_tensor *d = kn_add_scalar(kn_sub(entry->inputs[X1], entry->inputs[X2]), params->eps);
    return kn_composed_give(entry, kn_norm_dims(d, params->p, &last, 1, params->keepdim));
}

static const kn_op_param pairwise_rows[] = {KN_PARAM(kn_pairwise_distance_params, p),
                                            KN_PARAM(kn_pairwise_distance_params, eps),
                                            KN_PARAM(kn_pairwise_distance_params, keepdim)};
const kn_op kn_pairwise_distance_op = {
    .name = "pairwise_distance",
    .inputs = {"x1", "x2"},
    .dtypes = {KN_DTYPES_FLOATING},
    .params = KN_PARAMS(kn_pairwise_distance_params, pairwise_rows, KN_PAIRWISE_DISTANCE_DEFAULTS),
    .composes = true,
    .enter = pairwise_enter};

kn_pairwise_distance_params kn_pairwise_distance_params_init(void)
{
    return (kn_pairwise_distance_params){KN_PAIRWISE_DISTANCE_DEFAULTS};
}

kn_tensor *kn_pairwise_distance_with(kn_tensor *x1, kn_tensor *x2, const kn_pairwise_distance_params *params)
{
    return kn_invoke(&kn_pairwise_distance_op, params, x1, x2);
}
