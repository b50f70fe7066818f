/* ops/loss/embedding.c - losses of the distances of embeddings: compositions. */
#include <koine/distance.h>
#include <koine/loss.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>

#include "ops/dispatch/promote.h"
#include "ops/loss/distance.h"

/* --- cosine ------------------------------------------------------------------------------------------------------- */

/* sum(x1 x2) / sqrt((sum x1^2 + e) (sum x2^2 + e)), PyTorch's formula. */
static kn_tensor *cosine(kn_tensor *x1, kn_tensor *x2)
{
    const int last = -1;
    const double eps = 1e-12;
    kn_tensor *products = kn_sum_dims(kn_mul(x1, x2), &last, 1, false);
    kn_tensor *squares1 = kn_add_scalar(kn_sum_dims(kn_square(x1), &last, 1, false), eps);
    kn_tensor *squares2 = kn_add_scalar(kn_sum_dims(kn_square(x2), &last, 1, false), eps);
    return kn_div(products, kn_sqrt(kn_mul(squares1, squares2)));
}

/* A number of x's dtype, on its device. */
static kn_tensor *number_like(const kn_tensor *x, double value)
{
    return x ? kn_full_with(0, NULL, kn_scalar_real(value),
                            &(kn_tensor_options){.dtype = x->dtype, .device = x->storage->device})
             : NULL;
}

static kn_status cosine_enter(kn_entry *entry)
{
    const kn_cosine_embedding_loss_params *params = entry->params;
    kn_tensor *x1 = entry->inputs[0], *x2 = entry->inputs[1], *target = entry->inputs[2];
    char a[KN_DESCRIBE], b[KN_DESCRIBE], c[KN_DESCRIBE];

    if (x1->ndim < 1 || x1->ndim > 2 || target->ndim != x1->ndim - 1 || x2->ndim != x1->ndim)
        return kn_fail(KN_ERR_SHAPE, "inputs %s and %s with target %s: inputs [N, D] need target [N], [D] one target",
                       kn_tensor_describe(a, sizeof a, x1), kn_tensor_describe(b, sizeof b, x2),
                       kn_tensor_describe(c, sizeof c, target));
    kn_tensor *cos = cosine(x1, x2), *zero = number_like(cos, 0);
    kn_tensor *one =
        kn_full_with(0, NULL, kn_scalar_int(1), &(kn_tensor_options){.dtype = KN_F32, .device = x1->storage->device});
    kn_tensor *alike = kn_where(kn_eq(target, one), kn_add_scalar(kn_neg(cos), 1), zero);
    kn_tensor *apart = kn_where(kn_eq(target, kn_neg(one)), kn_relu(kn_add_scalar(cos, -params->margin)), zero);
    return kn_composed_give(entry, kn_loss_reduced(kn_add(alike, apart), params->reduction));
}

static const kn_op_param cosine_rows[] = {KN_REDUCTION_ROW(kn_cosine_embedding_loss_params),
                                          KN_PARAM(kn_cosine_embedding_loss_params, margin)};
const kn_op kn_cosine_embedding_loss_op = {
    .name = "cosine_embedding_loss",
    .inputs = {"input1", "input2", "target"},
    .dtypes = {KN_DTYPES_FLOATING, KN_DTYPES_FLOATING, KN_DTYPES_ALL},
    .params = KN_PARAMS(kn_cosine_embedding_loss_params, cosine_rows, KN_COSINE_EMBEDDING_LOSS_DEFAULTS),
    .composes = true,
    .enter = cosine_enter};

kn_cosine_embedding_loss_params kn_cosine_embedding_loss_params_init(void)
{
    return (kn_cosine_embedding_loss_params){KN_COSINE_EMBEDDING_LOSS_DEFAULTS};
}

kn_tensor *kn_cosine_embedding_loss_with(kn_tensor *input1, kn_tensor *input2, kn_tensor *target,
                                         const kn_cosine_embedding_loss_params *params)
{
    return kn_invoke(&kn_cosine_embedding_loss_op, params, input1, input2, target);
}

/* --- triplets ----------------------------------------------------------------------------------------------------- */

static kn_status check_triplet(kn_tensor *const *in, double margin)
{
    char a[KN_DESCRIBE], b[KN_DESCRIBE], c[KN_DESCRIBE];
    if (!(margin > 0))
        return kn_fail(KN_ERR_ARGUMENT, "margin (%g) must be greater than 0", margin);
    if (in[0]->ndim == in[1]->ndim && in[1]->ndim == in[2]->ndim)
        return KN_OK;
    return kn_fail(KN_ERR_SHAPE, "anchor %s, positive %s and negative %s must have the same number of dimensions",
                   kn_tensor_describe(a, sizeof a, in[0]), kn_tensor_describe(b, sizeof b, in[1]),
                   kn_tensor_describe(c, sizeof c, in[2]));
}

/* Of anchor, positive and negative. */
static kn_tensor *triplet(kn_tensor *const *in, kn_distance_function distance, void *user, double margin, bool swap,
                          kn_reduction reduction)
{
    kn_tensor *positive = distance(in[0], in[1], user), *negative = distance(in[0], in[2], user);
    if (swap) {
        kn_tensor *other = distance(in[1], in[2], user);
        negative = kn_neg(kn_maximum(kn_neg(negative), kn_neg(other))); /* the minimum */
    }
    kn_tensor *loss = kn_relu(kn_add_scalar(kn_sub(positive, negative), margin));
    return kn_loss_reduced(loss, reduction);
}

static kn_tensor *distance_of(kn_tensor *x1, kn_tensor *x2, void *user)
{
    return kn_pairwise_distance_with(x1, x2, user);
}

static kn_status triplet_enter(kn_entry *entry)
{
    const kn_triplet_margin_loss_params *params = entry->params;
    kn_pairwise_distance_params norm = {.p = params->p, .eps = params->eps};
    KN_TRY(check_triplet(entry->inputs, params->margin));
    return kn_composed_give(
        entry, triplet(entry->inputs, distance_of, &norm, params->margin, params->swap, params->reduction));
}

static const kn_op_param triplet_rows[] = {
    KN_REDUCTION_ROW(kn_triplet_margin_loss_params), KN_PARAM(kn_triplet_margin_loss_params, margin, KN_POSITIVE),
    KN_PARAM(kn_triplet_margin_loss_params, p), KN_PARAM(kn_triplet_margin_loss_params, eps),
    KN_PARAM(kn_triplet_margin_loss_params, swap)};
const kn_op kn_triplet_margin_loss_op = {
    .name = "triplet_margin_loss",
    .inputs = {"anchor", "positive", "negative"},
    .dtypes = {KN_DTYPES_FLOATING},
    .params = KN_PARAMS(kn_triplet_margin_loss_params, triplet_rows, KN_TRIPLET_MARGIN_LOSS_DEFAULTS),
    .composes = true,
    .enter = triplet_enter};

kn_triplet_margin_loss_params kn_triplet_margin_loss_params_init(void)
{
    return (kn_triplet_margin_loss_params){KN_TRIPLET_MARGIN_LOSS_DEFAULTS};
}

kn_tensor *kn_triplet_margin_loss_with(kn_tensor *anchor, kn_tensor *positive, kn_tensor *negative,
                                       const kn_triplet_margin_loss_params *params)
{
    return kn_invoke(&kn_triplet_margin_loss_op, params, anchor, positive, negative);
}

kn_triplet_margin_with_distance_loss_params kn_triplet_margin_with_distance_loss_params_init(void)
{
    return (kn_triplet_margin_with_distance_loss_params){KN_TRIPLET_MARGIN_WITH_DISTANCE_LOSS_DEFAULTS};
}

/* Not an operator of the list, since a function is no parameter of one. */
kn_tensor *kn_triplet_margin_with_distance_loss_with(kn_tensor *anchor, kn_tensor *positive, kn_tensor *negative,
                                                     const kn_triplet_margin_with_distance_loss_params *params)
{
    static const char name[] = "triplet_margin_with_distance_loss";
    params =
        params ? params : &(kn_triplet_margin_with_distance_loss_params){KN_TRIPLET_MARGIN_WITH_DISTANCE_LOSS_DEFAULTS};
    kn_tensor *const in[] = {anchor, positive, negative};
    if (!kn_check_argument(name, "anchor", anchor) || !kn_check_argument(name, "positive", positive) ||
        !kn_check_argument(name, "negative", negative))
        return NULL;
    if (check_triplet(in, params->margin) != KN_OK) {
        kn_error_prefix("%s", name);
        return kn_error_make_sticky();
    }
    kn_pairwise_distance_params norm = {KN_PAIRWISE_DISTANCE_DEFAULTS};
    return triplet(in, params->distance_function ? params->distance_function : distance_of,
                   params->distance_function ? params->user : &norm, params->margin, params->swap, params->reduction);
}
