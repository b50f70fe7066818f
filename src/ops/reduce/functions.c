/* ops/reduce/functions.c - products, norms, variances, logarithms of sums of exponentials, as rows of a table. */
#include <koine/ops.h>
#include <math.h>

#include "autograd/work.h"
#include "base/error.h"
#include "ops/reduce/reduction.h"

/* --- product ------------------------------------------------------------------------------------------------------ */

static double prod_reference(const double *a, int64_t n, double number)
{
    double product = 1;
    (void)number;
    for (int64_t i = 0; i < n; i++)
        product *= a[i];
    return product;
}

/* u: the product of what is not zero, v: how many zeros there are. */
static kn_rows_code zeros_apart = {.name = "prod_zeros_apart",
                                   .inputs = "a",
                                   .state = "uv",
                                   .init = "u = 1; v = 0;",
                                   .step = "u *= a == 0 ? (T)1 : a; v += a == 0 ? (T)1 : (T)0;",
                                   .merge = "u *= U; v += V;",
                                   .values = {"u", "v"}};

static kn_reduction prod_table = {.rule = KN_REDUCES_WIDE,
                                  .forward = {.name = "prod",
                                              .inputs = "a",
                                              .state = "s",
                                              .init = "s = 1;",
                                              .step = "s *= a;",
                                              .merge = "s *= S;",
                                              .values = {"s"}},
                                  .beside = &zeros_apart,
                                  .backward = {.name = "prod_backward",
                                               .inputs = "gauv",
                                               .values = {"v == 0 ? g * u / a : v == 1 && a == 0 ? g * u : (T)0"}},
                                  .reference = prod_reference};
const kn_op kn_prod_op = KN_REDUCTION_OP("prod", &prod_table);

kn_tensor *kn_prod(kn_tensor *x) { return kn_reduction_apply(&kn_prod_op, x, NULL, 0, false, 0); }
kn_tensor *kn_prod_dim(kn_tensor *x, int dim, bool keepdim)
{
    return kn_reduction_apply(&kn_prod_op, x, &dim, 1, keepdim, 0);
}

/* --- log sum exp -------------------------------------------------------------------------------------------------- */

static double logsumexp_reference(const double *a, int64_t n, double number)
{
    double largest = -INFINITY, sum = 0;
    (void)number;
    for (int64_t i = 0; i < n; i++)
        largest = a[i] > largest ? a[i] : largest;
    if (isinf(largest))
        largest = 0;
    for (int64_t i = 0; i < n; i++)
        sum += exp(a[i] - largest);
    return largest + log(sum);
}

/* Infinities are not taken off: their differences are NaN. */
#define SHIFT "(fabs(m) == (T)INFINITY ? (T)0 : m)"

static kn_reduction logsumexp_table = {.rule = KN_REDUCES_REAL,
                                       .before = &kn_max_table.forward,
                                       .forward = {.name = "logsumexp",
                                                   .inputs = "am",
                                                   .per_row = "m",
                                                   .state = "s",
                                                   .init = "s = 0;",
                                                   .step = "s += exp(a - " SHIFT ");",
                                                   .merge = "s += S;",
                                                   .values = {SHIFT " + log(s)"},
                                                   .is_sum = true},
                                       .backward = {.name = "logsumexp_backward",
                                                    .inputs = "gay",
                                                    .vectors = KN_VECTORS,
                                                    .values = {"g * exp(a - (y == -(T)INFINITY ? (T)0 : y))"}},
                                       .reference = logsumexp_reference};
const kn_op kn_logsumexp_op = KN_REDUCTION_OP("logsumexp", &logsumexp_table);

kn_tensor *kn_logsumexp(kn_tensor *x, const int *dims, int num_dims, bool keepdim)
{
    return kn_reduction_apply(&kn_logsumexp_op, x, dims, num_dims, keepdim, 0);
}

/* --- variance and standard deviation ------------------------------------------------------------------------------ */

/* By two passes, of which the second also adds up what the mean was off by. p: what is divided by, q: n. */
static void var_numbers(double *pq, double correction, int64_t n)
{
    pq[0] = fmax((double)n - correction, 0);
    pq[1] = (double)n;
}

static double var_reference(const double *a, int64_t n, double correction)
{
    double mean = 0, sum = 0;
    for (int64_t i = 0; i < n; i++)
        mean += a[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        sum += (a[i] - mean) * (a[i] - mean);
    return sum / fmax((double)n - correction, 0);
}

static double std_reference(const double *a, int64_t n, double correction)
{
    return sqrt(var_reference(a, n, correction));
}

#define DEVIATIONS "(v - u * u / q)"
#define VARIANCE "(" DEVIATIONS " < 0 ? (T)0 : " DEVIATIONS ") / p"
#define VARIANCE_TABLE(id, value, names, gradient)                                                                     \
    static kn_reduction id##_table = {                                                                                 \
        .rule = KN_REDUCES_REAL,                                                                                       \
        .before = &kn_mean_code,                                                                                       \
        .forward = {.name = #id,                                                                                       \
                    .inputs = "am",                                                                                    \
                    .per_row = "m",                                                                                    \
                    .numbers = "pq",                                                                                   \
                    .state = "uv",                                                                                     \
                    .init = "u = 0; v = 0;",                                                                           \
                    .step = "const T d = a - m; u += d; v += d * d;",                                                  \
                    .merge = "u += U; v += V;",                                                                        \
                    .values = {value},                                                                                 \
                    .is_sum = true},                                                                                   \
        .backward = {.name = #id "_backward", .inputs = names, .numbers = "pq", .values = {gradient}},                 \
        .numbers = var_numbers,                                                                                        \
        .reference = id##_reference};                                                                                  \
    const kn_op kn_##id##_op = KN_REDUCTION_OP(#id, &id##_table);                                                      \
    kn_tensor *kn_##id(kn_tensor *x) { return kn_reduction_apply(&kn_##id##_op, x, NULL, 0, false, 1); }               \
    kn_tensor *kn_##id##_dims(kn_tensor *x, const int *dims, int num_dims, double correction, bool keepdim)            \
    {                                                                                                                  \
        return kn_reduction_apply(&kn_##id##_op, x, dims, num_dims, keepdim, correction);                              \
    }

VARIANCE_TABLE(var, VARIANCE, "gam", "2 * g * (a - m) / p")
VARIANCE_TABLE(std, "sqrt(" VARIANCE ")", "gaym", "y == 0 ? (T)0 : g / y * (a - m) / p")

/* --- norms -------------------------------------------------------------------------------------------------------- */

static double norm_reference(const double *a, int64_t n, double p)
{
    double norm = p < 0 && isinf(p) ? INFINITY : 0;
    for (int64_t i = 0; i < n; i++) {
        const double size = fabs(a[i]);
        if (isinf(p))
            norm = p > 0 ? fmax(norm, size) : fmin(norm, size);
        else
            norm += p == 0 ? size != 0 : pow(size, p);
    }
    return isinf(p) || p == 0 ? norm : pow(norm, 1 / p);
}

/* p, and what the sum of powers is raised to. */
static void norm_numbers(double *pq, double p, int64_t n)
{
    (void)n;
    pq[0] = p;
    pq[1] = 1 / p;
}

/* A norm that is a function of a sum. */
#define SUM_NORM(id, term, value, names, gradient)                                                                     \
    static kn_reduction id##_table = {                                                                                 \
        .rule = KN_REDUCES_REAL,                                                                                       \
        .forward = {.name = #id,                                                                                       \
                    .inputs = "a",                                                                                     \
                    .numbers = "pq",                                                                                   \
                    .state = "s",                                                                                      \
                    .init = "s = 0;",                                                                                  \
                    .step = "s += " term ";",                                                                          \
                    .merge = "s += S;",                                                                                \
                    .values = {value},                                                                                 \
                    .is_sum = true},                                                                                   \
        .backward = {.name = #id "_backward", .inputs = names, .numbers = "pq", .values = {gradient}},                 \
        .numbers = norm_numbers,                                                                                       \
        .reference = norm_reference};

#define SIGN_OF_A "(a < 0 ? (T)-1 : a > 0 ? (T)1 : a)"

SUM_NORM(norm_0, "a != 0 ? (T)1 : (T)0", "s", "g", "g * 0")
SUM_NORM(norm_1, "fabs(a)", "s", "ga", "g * " SIGN_OF_A)
SUM_NORM(norm_2, "a * a", "sqrt(s)", "gay", "y == 0 ? (T)0 : g * (a / y)")
SUM_NORM(norm_p, "pow(fabs(a), (T)p)", "pow(s, (T)q)", "gay",
         "a == 0 || y == 0 ? (T)0 : g * " SIGN_OF_A " * pow(fabs(a) / y, p - 1)")

/* Equal extremes share the gradient evenly. */
static kn_rows_code counting = {.name = "count_norms",
                                .inputs = "ay",
                                .per_row = "y",
                                .state = "u",
                                .init = "u = 0;",
                                .step = "u += ((fabs(a) == y) | (KN_NAN(a) & KN_NAN(y))) ? (T)1 : (T)0;",
                                .merge = "u += U;",
                                .values = {"u"},
                                .is_sum = true};

#define EXTREME_NORM(id, noun, relation, first)                                                                        \
    static kn_reduction id##_table = {                                                                                 \
        .rule = KN_REDUCES_REAL,                                                                                       \
        .identity = noun,                                                                                              \
        .forward = {.name = #id,                                                                                       \
                    .inputs = "a",                                                                                     \
                    .state = "m",                                                                                      \
                    .init = "m = " first ";",                                                                          \
                    .step = "m = ((fabs(a) " relation " m) | KN_NAN(a)) ? fabs(a) : m;",                               \
                    .merge = "m = ((M " relation " m) | KN_NAN(M)) ? M : m;",                                          \
                    .values = {"m"}},                                                                                  \
        .beside = &counting,                                                                                           \
        .backward = {.name = #id "_backward",                                                                          \
                     .inputs = "gayu",                                                                                 \
                     .values = {"fabs(a) == y || (a != a && y != y) ? " SIGN_OF_A " * (g / u) : (T)0"}},               \
        .reference = norm_reference};

EXTREME_NORM(norm_inf, "largest norm", ">", "0")
EXTREME_NORM(norm_minus_inf, "smallest norm", "<", "KN_HIGHEST")

static const kn_reduction *norm_variant(double p)
{
    if (isinf(p))
        return p > 0 ? &norm_inf_table : &norm_minus_inf_table;
    return p == 0 ? &norm_0_table : p == 1 ? &norm_1_table : p == 2 ? &norm_2_table : &norm_p_table;
}

static const kn_reduction norm_table = {.variant = norm_variant};
const kn_op kn_norm_op = KN_REDUCTION_OP("norm", &norm_table);

kn_tensor *kn_norm_dims(kn_tensor *x, double p, const int *dims, int num_dims, bool keepdim)
{
    if (isnan(p))
        return kn_fail_null(KN_ERR_ARGUMENT, "norm: p is NaN: it is a number, or an infinity");
    return kn_reduction_apply(&kn_norm_op, x, dims, num_dims, keepdim, p);
}

kn_tensor *kn_norm(kn_tensor *x, double p) { return kn_norm_dims(x, p, NULL, 0, false); }
