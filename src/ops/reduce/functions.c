/* ops/reduce/functions.c - products, norms, variances and logsumexp, as rows of a table. */
#include <koine/reduce.h>
#include <math.h>

#include "base/error.h"
#include "ops/reduce/reducer.h"

static const kn_op_param rows[] = {KN_REDUCE_ROWS(kn_reduce_args)};
static const kn_op_param var_rows[] = {KN_REDUCE_ROWS(kn_var_args), KN_PARAM(kn_var_args, correction)};
static const kn_op_param norm_rows[] = {KN_REDUCE_ROWS(kn_norm_args), KN_PARAM(kn_norm_args, p)};

/* --- product ------------------------------------------------------------------------------------------------------ */

static double prod_reference(const double *a, int64_t n, double number)
{
    double product = 1;
    (void)number;
    for (int64_t i = 0; i < n; i++)
        product *= a[i];
    return product;
}

/* u: the product of the nonzero elements, v: the number of zeros. */
static kn_rows_code zeros_apart = {.name = "prod_zeros_apart",
                                   .inputs = "a",
                                   .state = "uv",
                                   .init = "u = 1; v = 0;",
                                   .step = "u *= a == 0 ? (T)1 : a; v += a == 0 ? (T)1 : (T)0;",
                                   .merge = "u *= U; v += V;",
                                   .values = {"u", "v"}};

static kn_tensor *product_over(kn_tensor *t, const int *dims, int count)
{
    for (int i = 0; i < count; i++)
        t = kn_prod_dim(t, dims[i], true);
    return t;
}

/* The product of all other elements of the row, which gives correct gradients at zeros: y / a if a is not zero, the
 * product u of the nonzero elements if a is the only zero, and u times the other zero if there are two. */
static kn_tensor *others_of(kn_tensor *a, const kn_reduce_params *over)
{
    int dims[KN_MAX_DIMS], count = 0;
    for (int d = 0; d < a->ndim; d++)
        if (over->over[d])
            dims[count++] = d;
    if (count == 0) /* one element each */
        return kn_ones_like(a);
    const kn_tensor_options options = {.dtype = a->dtype, .device = kn_device_of(a)};
    kn_tensor *zero = kn_zeros_with(0, NULL, &options), *one = kn_ones_with(0, NULL, &options);
    kn_tensor *is_zero = kn_eq(a, zero), *safe = kn_where(is_zero, one, a), *zeros = kn_where(is_zero, a, zero);
    kn_tensor *y = product_over(a, dims, count), *u = product_over(safe, dims, count);
    kn_tensor *number = kn_sum_dims(kn_to_dtype(is_zero, a->dtype), dims, count, true);
    kn_tensor *other = kn_sub(kn_sum_dims(zeros, dims, count, true), zeros);
    kn_tensor *of_two = kn_where(kn_eq(number, kn_add(one, one)), kn_mul(u, other), zero);
    return kn_where(is_zero, kn_where(kn_eq(number, one), u, of_two), kn_div(y, safe));
}

static kn_status prod_backward_recorded(kn_grad_call *grad)
{
    const kn_reduce_params *over = &((const kn_reducer_params *)grad->params)->reduce;
    const kn_input_spec *input = &grad->input[0];
    kn_tensor *a = kn_grad_saved_input(grad, 0, 0);
    kn_tensor *g = kn_reduce_spread(grad->grad_outputs[0], over, input->ndim, input->shape);
    grad->grad_inputs[0] = a ? kn_mul(g, others_of(a, over)) : NULL;
    return grad->grad_inputs[0] ? KN_OK : kn_error_status();
}

static kn_reducer prod_table = {.rule = KN_REDUCES_WIDE,
                                .forward = {.name = "prod",
                                            .inputs = "a",
                                            .state = "s",
                                            .init = "s = 1;",
                                            .step = "s *= a;",
                                            .merge = "s *= S;",
                                            .values = {"s"}},
                                .row_values = &zeros_apart,
                                .backward = {.name = "prod_backward",
                                             .inputs = "gauv",
                                             .values = {"v == 0 ? g * u / a : v == 1 && a == 0 ? g * u : (T)0"}},
                                .recorded = prod_backward_recorded,
                                .reference = prod_reference};
const kn_op kn_prod_op = KN_REDUCER_OP("prod", KN_DTYPES_ALL, KN_PARAMS(kn_reduce_args, rows), &prod_table);
const kn_op kn_prod_backward_op = KN_REDUCER_BACKWARD_OP(prod);

kn_tensor *kn_prod(kn_tensor *x) { return kn_invoke(&kn_prod_op, NULL, x); }
kn_tensor *kn_prod_dim(kn_tensor *x, int dim, bool keepdim)
{
    return kn_invoke(&kn_prod_op, (&(kn_reduce_args){.dims = {1, {dim}}, .keepdim = keepdim}), x);
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

/* Infinities are not subtracted: their differences are NaN. */
#define SHIFT "(fabs(m) == (T)INFINITY ? (T)0 : m)"

static const kn_rows_pass shift = {KN_LARGEST, .row = "h", .finish = "h = " SHIFT ";"};
static kn_rows_code logsumexp_in_one = {.name = "logsumexp_in_one",
                                        .inputs = "a",
                                        .prepass = &shift,
                                        KN_SUM_OF("KN_EXP(a - h)"),
                                        .row = "r",
                                        .finish = "r = h + log(s);",
                                        .values = {"r"}};

static kn_reducer logsumexp_table = {.rule = KN_REDUCES_REAL,
                                     .prepass = &kn_max_table.forward,
                                     .forward = {.name = "logsumexp",
                                                 .inputs = "am",
                                                 .per_row = "m",
                                                 KN_SUM_OF("KN_EXP(a - " SHIFT ")"),
                                                 .takes_long = true,
                                                 .values = {SHIFT " + log(s)"}},
                                     .in_one = &logsumexp_in_one,
                                     .backward = {.name = "logsumexp_backward",
                                                  .inputs = "gay",
                                                  .vectors = KN_VECTORS,
                                                  .values = {"g * exp(a - (y == -(T)INFINITY ? (T)0 : y))"}},
                                     .reference = logsumexp_reference};
const kn_op kn_logsumexp_op =
    KN_REDUCER_OP("logsumexp", KN_DTYPES_ALL, KN_PARAMS(kn_reduce_args, rows), &logsumexp_table);
const kn_op kn_logsumexp_backward_op = KN_REDUCER_BACKWARD_OP(logsumexp);

kn_tensor *kn_logsumexp(kn_tensor *x, const int *dims, int num_dims, bool keepdim)
{
    kn_reduce_args args = {.keepdim = keepdim};
    return kn_reduce_named(&args.dims, "logsumexp", dims, num_dims) ? kn_invoke(&kn_logsumexp_op, &args, x) : NULL;
}

/* --- variance and standard deviation ------------------------------------------------------------------------------ */

/* Two passes; the second also corrects for the rounding error of the mean, unless the squares overflow: the correction
 * then might, too, and their difference would be NaN. p: the divisor, q: n. */
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
#define VARIANCE "(v == (T)INFINITY ? v : " DEVIATIONS " < 0 ? (T)0 : " DEVIATIONS ") / p"
#define VARIANCE_TABLE(id, value, names, gradient)                                                                     \
    static kn_reducer id##_table = {                                                                                   \
        .rule = KN_REDUCES_SAME,                                                                                       \
        .prepass = &kn_mean_code,                                                                                      \
        .forward = {.name = #id,                                                                                       \
                    .inputs = "am",                                                                                    \
                    .per_row = "m",                                                                                    \
                    .numbers = "pq",                                                                                   \
                    KN_TWO_SUMS_BY("const T d = a - m; u += d; v += d * d;"),                                          \
                    .values = {value}},                                                                                \
        .backward = {.name = #id "_backward", .inputs = names, .numbers = "pq", .values = {gradient}},                 \
        .numbers = var_numbers,                                                                                        \
        .reference = id##_reference};                                                                                  \
    const kn_op kn_##id##_op =                                                                                         \
        KN_REDUCER_OP(#id, KN_DTYPES_FLOATING, KN_PARAMS(kn_var_args, var_rows, .correction = 1), &id##_table);        \
    const kn_op kn_##id##_backward_op = KN_REDUCER_BACKWARD_OP(id);                                                    \
    kn_tensor *kn_##id(kn_tensor *x) { return kn_invoke(&kn_##id##_op, NULL, x); }                                     \
    kn_tensor *kn_##id##_dims(kn_tensor *x, const int *dims, int num_dims, double correction, bool keepdim)            \
    {                                                                                                                  \
        kn_var_args args = {.keepdim = keepdim, .correction = correction};                                             \
        return kn_reduce_named(&args.dims, #id, dims, num_dims) ? kn_invoke(&kn_##id##_op, &args, x) : NULL;           \
    }

VARIANCE_TABLE(var, VARIANCE, "gam", "2 * g * (a - m) / p")
VARIANCE_TABLE(std, "sqrt(" VARIANCE ")", "gaym", "y == 0 ? (T)0 : g / (y == 0 ? (T)1 : y) * (a - m) / p")

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

/* p, and the exponent of the sum of powers. */
static void norm_numbers(double *pq, double p, int64_t n)
{
    (void)n;
    pq[0] = p;
    pq[1] = 1 / p;
}

/* A norm that is a function of a sum. */
#define SUM_NORM(id, term, value, names, gradient, vectors_, ...)                                                      \
    static kn_reducer id##_table = {                                                                                   \
        .rule = KN_REDUCES_SAME,                                                                                       \
        .forward = {.name = #id, .inputs = "a", .numbers = "pq", KN_SUM_OF(term), .values = {value}, __VA_ARGS__},     \
        .backward =                                                                                                    \
            {.name = #id "_backward", .inputs = names, .numbers = "pq", .values = {gradient}, .vectors = vectors_},    \
        .numbers = norm_numbers,                                                                                       \
        .reference = norm_reference};

#define SIGN_OF_A "(a < 0 ? (T)-1 : a > 0 ? (T)1 : a * 0)"

/* The divisors are never 0, so that at a norm of 0 the gradients of these gradients are 0, not NaN. */
SUM_NORM(norm_0, "a != 0 ? (T)1 : (T)0", "s", "g", "g * 0", KN_NO_VECTORS)
SUM_NORM(norm_1, "fabs(a)", "s", "ga", "g * " SIGN_OF_A, KN_NO_VECTORS)
SUM_NORM(norm_2, "a * a", "sqrt(s)", "gay", "y == 0 ? (T)0 : g * (a / (y == 0 ? (T)1 : y))", KN_NO_VECTORS)
SUM_NORM(norm_p, "KN_POWER(fabs(a), p)", "KN_POWER(s, q)", "gay",
         "a == 0 || y == 0 ? (T)0 : g * " SIGN_OF_A " * pow(a == 0 ? (T)1 : fabs(a) / (y == 0 ? (T)1 : y), p - 1)",
         KN_VECTORS, .takes_long = true)

static kn_rows_code counting = KN_COUNT_OF("count_norms", "fabs(a)");

#define EXTREME_NORM(id, noun, relation, first)                                                                        \
    static kn_reducer id##_table = {                                                                                   \
        .rule = KN_REDUCES_SAME,                                                                                       \
        .identity = noun,                                                                                              \
        .forward = KN_EXTREME_OF(#id, "fabs(a)", relation, first),                                                     \
        .row_values = &counting,                                                                                       \
        .backward = {.name = #id "_backward",                                                                          \
                     .inputs = "gayu",                                                                                 \
                     .values = {"fabs(a) == y || (a != a && y != y) ? " SIGN_OF_A " * (g / u) : (T)0"}},               \
        .reference = norm_reference};

EXTREME_NORM(norm_inf, "largest norm", ">", "0")
EXTREME_NORM(norm_minus_inf, "smallest norm", "<", "KN_HIGHEST")

static const kn_reducer *norm_variant(double p)
{
    if (isinf(p))
        return p > 0 ? &norm_inf_table : &norm_minus_inf_table;
    return p == 0 ? &norm_0_table : p == 1 ? &norm_1_table : p == 2 ? &norm_2_table : &norm_p_table;
}

static const kn_reducer norm_table = {.variant = norm_variant};
const kn_op kn_norm_op =
    KN_REDUCER_OP("norm", KN_DTYPES_FLOATING, KN_PARAMS(kn_norm_args, norm_rows, .p = 2), &norm_table);
const kn_op kn_norm_backward_op = KN_REDUCER_BACKWARD_OP(norm);

kn_tensor *kn_norm_dims(kn_tensor *x, double p, const int *dims, int num_dims, bool keepdim)
{
    kn_norm_args args = {.keepdim = keepdim, .p = p};
    if (isnan(p))
        return kn_fail_null(KN_ERR_ARGUMENT, "norm: p is NaN; it must be a number or an infinity");
    return kn_reduce_named(&args.dims, "norm", dims, num_dims) ? kn_invoke(&kn_norm_op, &args, x) : NULL;
}

kn_tensor *kn_norm(kn_tensor *x, double p) { return kn_norm_dims(x, p, NULL, 0, false); }
