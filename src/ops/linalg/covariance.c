/* ops/linalg/covariance.c - covariances and correlations of the rows of a matrix. Compositions. */
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>

#include "ops/dispatch/invoke.h"

enum { X, COUNTS, WEIGHTS };

typedef struct cov_args {
    double correction;
} cov_args;

static kn_status check(const kn_tensor *x, const char *name, const kn_tensor *weights)
{
    char has[KN_DESCRIBE], of[KN_DESCRIBE];
    const int64_t n = x->ndim > 0 ? x->shape[x->ndim - 1] : 1;
    if (x->ndim > 2)
        return kn_fail(KN_ERR_SHAPE, "x must have at most 2 dimensions, not be %s",
                       kn_tensor_describe(of, sizeof of, x));
    if (!weights || (weights->ndim <= 1 && kn_numel(weights) == n))
        return KN_OK;
    return kn_fail(KN_ERR_SHAPE, "%s must have one element for each of the %lld columns of x, %s, not be %s", name,
                   (long long)n, kn_tensor_describe(of, sizeof of, x), kn_tensor_describe(has, sizeof has, weights));
}

/* [1, n]: the product of what is given, of x's dtype; NULL: all 1. */
static kn_tensor *weights_of(kn_entry *entry, int64_t n)
{
    kn_tensor *result = NULL;
    for (int i = COUNTS; i <= WEIGHTS; i++) {
        if (!entry->inputs[i])
            continue;
        kn_tensor *w = kn_reshape(kn_to_dtype(entry->inputs[i], entry->inputs[X]->dtype), 2, (const int64_t[]){1, n});
        result = result ? kn_mul(result, w) : w;
    }
    return result;
}

/* sum(w) - correction sum(w a) / sum(w) of all weights w, which a are those of the observations; at least 0. */
static kn_tensor *divisor(kn_entry *entry, kn_tensor *w, int64_t n)
{
    const double correction = ((const cov_args *)entry->params)->correction;
    kn_tensor *sum = kn_sum(w), *bias = NULL;
    if (entry->inputs[WEIGHTS]) {
        kn_tensor *a = kn_reshape(kn_to_dtype(entry->inputs[WEIGHTS], w->dtype), 2, (const int64_t[]){1, n});
        bias = kn_mul_scalar(kn_div(kn_sum(kn_mul(w, a)), sum), correction);
    }
    return kn_clamp(bias ? kn_sub(sum, bias) : kn_sub_scalar(sum, correction), .min = 0);
}

static kn_status cov_enter(kn_entry *entry)
{
    kn_tensor *x = entry->inputs[X];
    const int ndim = x->ndim;
    const int64_t n = ndim > 0 ? x->shape[ndim - 1] : 1;

    KN_TRY(check(x, "x", NULL));
    KN_TRY(check(x, "fweights", entry->inputs[COUNTS]));
    KN_TRY(check(x, "aweights", entry->inputs[WEIGHTS]));
    x = kn_reshape(x, 2, (const int64_t[]){ndim == 2 ? x->shape[0] : 1, n});
    kn_tensor *w = weights_of(entry, n), *ones = NULL;
    if (!w)
        ones = kn_ones(KN_SHAPE(1, n), .dtype = x->dtype, .device = kn_device_of(x));
    kn_tensor *mean = w ? kn_div(kn_sum_dims(kn_mul(x, w), (const int[]){1}, 1, true), kn_sum(w))
                        : kn_mean_dims(x, (const int[]){1}, 1, true);
    kn_tensor *apart = kn_sub(x, mean), *other = kn_t(w ? kn_mul(apart, w) : apart);
    kn_tensor *result = kn_div(kn_matmul(apart, other), divisor(entry, w ? w : ones, n));
    return kn_status_of(entry->result = x->shape[0] == 1 ? kn_reshape(result, 0, NULL) : result);
}

static kn_status corrcoef_enter(kn_entry *entry)
{
    kn_tensor *c = kn_cov(entry->inputs[X]);
    if (!c)
        return kn_error_status();
    if (c->ndim == 0)
        return kn_status_of(entry->result = kn_div(c, c));
    kn_tensor *deviation = kn_sqrt(kn_diagonal(c));
    c = kn_div(kn_div(c, kn_unsqueeze(deviation, 1)), kn_unsqueeze(deviation, 0));
    return kn_status_of(entry->result = kn_clamp(c, .min = -1, .max = 1));
}

static const kn_op_param cov_rows[] = {KN_PARAM(cov_args, correction)};
const kn_op kn_cov_op = {.name = "cov",
                         .inputs = {"x", "?fweights", "?aweights"},
                         .dtypes = {KN_DTYPES_FLOATING, KN_DTYPES_INDICES, KN_DTYPES_FLOATING},
                         .params = KN_PARAMS(cov_args, cov_rows, .correction = 1),
                         .composes = true,
                         .enter = cov_enter};
const kn_op kn_corrcoef_op = {
    .name = "corrcoef", .inputs = {"x"}, .dtypes = {KN_DTYPES_FLOATING}, .composes = true, .enter = corrcoef_enter};

kn_cov_params kn_cov_params_init(void) { return (kn_cov_params){KN_COV_DEFAULTS}; }

kn_tensor *kn_cov_with(kn_tensor *x, const kn_cov_params *params)
{
    const kn_cov_params p = params ? *params : (kn_cov_params){KN_COV_DEFAULTS};
    return kn_invoke(&kn_cov_op, &(cov_args){p.correction}, x, p.fweights, p.aweights);
}

kn_tensor *kn_corrcoef(kn_tensor *x) { return kn_invoke(&kn_corrcoef_op, NULL, x); }
