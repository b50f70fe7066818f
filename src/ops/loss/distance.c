/* ops/loss/distance.c - similarities and distances of rows: compositions. */
#include <koine/autograd.h>
#include <koine/create.h>
#include <koine/distance.h>
#include <koine/index.h>
#include <koine/matmul.h>
#include <koine/operators.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <math.h>

#include "autograd/autocast.h"
#include "ops/loss/distance.h"
#include "ops/pointwise/elementwise.h"
#include "ops/shape/broadcast.h"

enum { X1, X2 };
enum { MANY_ROWS = 25 }; /* of either operand: Euclidean distances by a product, as torch.cdist by default */

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

/* --- of all pairs ------------------------------------------------------------------------------------------------- */

/* Of rows of `a` and `b`. Differences of halves are not rounded: that would make some equal. */
static kn_tensor *norms(const kn_entry *entry, kn_tensor *a, kn_tensor *b)
{
    const double p = ((const kn_distance_args *)entry->params)->p;
    if (!a || !b)
        return NULL;
    const kn_dtype dtype = kn_promote_types(a->dtype, b->dtype);
    return kn_to_dtype(kn_norm_dims(kn_sub(kn_widened(a), kn_widened(b)), p, (const int[]){-1}, 1, false), dtype);
}

/* Squares of rows' norms: [..., P, 1]. */
static kn_tensor *squares(kn_tensor *x) { return kn_sum_dims(kn_square(x), (const int[]){-1}, 1, true); }

/* sqrt(b - 2 a + c) of products a and squares b and c. Where rounding leaves nothing of it, the distance and its
 * gradients of any order are 0: even there they do not divide by 0. */
#define SQUARE "(b - 2 * a + c)"
#define SLOPE(g) "y == 0 ? (T)0 : " g " / (y == 0 ? (T)1 : y)"
KN_ELEMENTWISE_TABLE(distances, KN_FLOATS, "abc", NULL, KN_VECTORS, SQUARE " <= 0 ? (T)0 : sqrt(" SQUARE ")",
                     KN_GRADIENTS(SLOPE("-g"), SLOPE("g / 2"), SLOPE("g / 2")),
                     b - 2 * a + c <= 0 ? 0 : sqrt(b - 2 * a + c));
static const kn_op distances_op = KN_ELEMENTWISE_OP("cdist", false, true, &distances_table, KN_DTYPES_FLOATING,
                                                    KN_NO_PARAMS, "products", "squares1", "squares2");

/* Euclidean, of rows of matrices: without the differences in memory. */
static kn_tensor *by_products(kn_tensor *a, kn_tensor *b)
{
    const kn_dtype dtype = kn_promote_types(a->dtype, b->dtype);
    a = kn_widened(a), b = kn_widened(b);
    const kn_dtype autocast = kn_autocast_pause(); /* halves would lose what is left of the difference */
    kn_tensor *products = kn_matmul(a, kn_transpose(b, -2, -1));
    kn_autocast_resume(autocast);
    return kn_to_dtype(kn_invoke(&distances_op, NULL, products, squares(a), kn_transpose(squares(b), -2, -1)), dtype);
}

/* Do the dimensions before the last two broadcast? */
static bool batches_fit(const kn_tensor *a, const kn_tensor *b)
{
    for (int d = 3; d <= a->ndim && d <= b->ndim; d++) {
        const int64_t m = a->shape[a->ndim - d], n = b->shape[b->ndim - d];
        if (m != n && m != 1 && n != 1)
            return false;
    }
    return true;
}

static kn_status cdist_enter(kn_entry *entry)
{
    kn_tensor *x1 = entry->inputs[X1], *x2 = entry->inputs[X2];
    char a[KN_DESCRIBE], b[KN_DESCRIBE];

    if (x1->ndim < 2 || x2->ndim < 2 || x1->shape[x1->ndim - 1] != x2->shape[x2->ndim - 1])
        return kn_fail(KN_ERR_SHAPE, "x1 and x2 must be matrices with rows of one length, not %s and %s",
                       kn_tensor_describe(a, sizeof a, x1), kn_tensor_describe(b, sizeof b, x2));
    if (!batches_fit(x1, x2))
        return kn_fail(KN_ERR_SHAPE, "the batches of x1, %s, and x2, %s, do not broadcast",
                       kn_tensor_describe(a, sizeof a, x1), kn_tensor_describe(b, sizeof b, x2));
    const bool many = x1->shape[x1->ndim - 2] > MANY_ROWS || x2->shape[x2->ndim - 2] > MANY_ROWS;
    if (many && ((const kn_distance_args *)entry->params)->p == 2)
        return kn_composed_give(entry, by_products(x1, x2));
    return kn_composed_give(entry, norms(entry, kn_unsqueeze(x1, -2), kn_unsqueeze(x2, -3)));
}

static kn_status pdist_enter(kn_entry *entry)
{
    kn_tensor *x = entry->inputs[X1];
    char text[KN_DESCRIBE];

    if (x->ndim != 2)
        return kn_fail(KN_ERR_SHAPE, "x must be a matrix, not %s", kn_tensor_describe(text, sizeof text, x));
    kn_tensor *pairs = kn_triu_indices(x->shape[0], x->shape[0], 1, .device = kn_device_of(x));
    return kn_composed_give(entry, norms(entry, kn_index_select(x, 0, kn_select(pairs, 0, 0)),
                                         kn_index_select(x, 0, kn_select(pairs, 0, 1))));
}

static const kn_op_param distance_rows[] = {KN_PARAM(kn_distance_args, p, .min = 0, .max = (double)INFINITY)};
const kn_op kn_cdist_op = {.name = "cdist",
                           .inputs = {"x1", "x2"},
                           .dtypes = {KN_DTYPES_FLOATING},
                           .params = KN_PARAMS(kn_distance_args, distance_rows, .p = 2),
                           .composes = true,
                           .enter = cdist_enter};
const kn_op kn_pdist_op = {.name = "pdist",
                           .inputs = {"x"},
                           .dtypes = {KN_DTYPES_FLOATING},
                           .params = KN_PARAMS(kn_distance_args, distance_rows, .p = 2),
                           .composes = true,
                           .enter = pdist_enter};

kn_tensor *kn_cdist(kn_tensor *x1, kn_tensor *x2, double p)
{
    return kn_invoke(&kn_cdist_op, &(kn_distance_args){p}, x1, x2);
}

kn_tensor *kn_pdist(kn_tensor *x, double p) { return kn_invoke(&kn_pdist_op, &(kn_distance_args){p}, x); }
