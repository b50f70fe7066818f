/* rows_reduction.c - sums, means, products, extremes and their indices, norms, variances, logsumexp. */
#include "ops/rows.h"

typedef struct dims_case {
    int dims[4], count;
    bool keepdim;
} dims_case;

typedef struct number_case {
    dims_case over;
    double number; /* correction, p */
} number_case;

/* clang-format off */
#define DIMS(keep, ...)                                                                                                \
    &(const dims_case) { {__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), keep }
/* clang-format on */

/* clang-format off */
#define NUMBER_DIMS(number, keep, ...) \
    &(const number_case) { {{__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), keep}, number }
#define NUMBER(number) &(const number_case) { {{0}, 0, false}, number }
/* clang-format on */

#define WHOLE_TENSOR(function)                                                                                         \
    static kn_tensor *build_##function(kn_tensor *const *x, const void *params)                                        \
    {                                                                                                                  \
        (void)params;                                                                                                  \
        return kn_##function(x[0]);                                                                                    \
    }

WHOLE_TENSOR(sum)
WHOLE_TENSOR(mean)
WHOLE_TENSOR(max)
WHOLE_TENSOR(min)
WHOLE_TENSOR(prod)
WHOLE_TENSOR(var)
WHOLE_TENSOR(std)

#define OVER_DIMS(id, function)                                                                                        \
    static kn_tensor *build_##id(kn_tensor *const *x, const void *params)                                              \
    {                                                                                                                  \
        const dims_case *c = params;                                                                                   \
        return function(x[0], c->dims, c->count, c->keepdim);                                                          \
    }

OVER_DIMS(sum_dims, kn_sum_dims)
OVER_DIMS(mean_dims, kn_mean_dims)
OVER_DIMS(amax, kn_amax)
OVER_DIMS(amin, kn_amin)
OVER_DIMS(logsumexp, kn_logsumexp)

/* Of 0 it is -infinity. */
static kn_tensor *log_sum(kn_tensor *x, const int *dims, int count, bool keepdim)
{
    return kn_logsumexp(kn_log(x), dims, count, keepdim);
}
OVER_DIMS(log_sum, log_sum)

#define WITH_CORRECTION(function)                                                                                      \
    static kn_tensor *build_##function##_dims(kn_tensor *const *x, const void *params)                                 \
    {                                                                                                                  \
        const number_case *c = params;                                                                                 \
        return kn_##function##_dims(x[0], c->over.dims, c->over.count, c->number, c->over.keepdim);                    \
    }

WITH_CORRECTION(var)
WITH_CORRECTION(std)

static kn_tensor *build_norm(kn_tensor *const *x, const void *params)
{
    const number_case *c = params;
    return kn_norm_dims(x[0], c->number, c->over.dims, c->over.count, c->over.keepdim);
}

static kn_tensor *build_cumsum(kn_tensor *const *x, const void *params)
{
    return kn_cumsum(x[0], ((const dims_case *)params)->dims[0]);
}

static kn_tensor *build_prod_dim(kn_tensor *const *x, const void *params)
{
    const dims_case *c = params;
    return kn_prod_dim(x[0], c->dims[0], c->keepdim);
}

static kn_tensor *build_min_dim(kn_tensor *const *x, const void *params)
{
    const dims_case *c = params;
    return kn_min_dim(x[0], c->dims[0], c->keepdim, NULL);
}

static kn_tensor *build_min_indices(kn_tensor *const *x, const void *params)
{
    const dims_case *c = params;
    kn_tensor *indices = NULL;
    return kn_min_dim(x[0], c->dims[0], c->keepdim, &indices) ? indices : NULL;
}

static kn_tensor *build_argmin(kn_tensor *const *x, const void *params)
{
    const dims_case *c = params;
    return kn_argmin(x[0], c->dims[0], c->keepdim);
}

static kn_tensor *build_max_dim(kn_tensor *const *x, const void *params)
{
    const dims_case *c = params;
    return kn_max_dim(x[0], c->dims[0], c->keepdim, NULL);
}

static kn_tensor *build_max_indices(kn_tensor *const *x, const void *params)
{
    const dims_case *c = params;
    kn_tensor *indices = NULL;
    return kn_max_dim(x[0], c->dims[0], c->keepdim, &indices) ? indices : NULL;
}

static kn_tensor *build_argmax(kn_tensor *const *x, const void *params)
{
    const dims_case *c = params;
    return kn_argmax(x[0], c->dims[0], c->keepdim);
}

/* clang-format off */
OP_ROWS_BEGIN
static const op_row rows[] = {
    {"sum/scalar", build_sum, {FLOAT_SCALAR(-1, 1)}},
    {"sum/one", build_sum, {FLOATS(1)}},
    {"sum/matrix", build_sum, {FLOATS(7, 11)}, .layouts = true},
    {"sum/empty", build_sum, {FLOATS(0, 3)}},
    {"sum/prime", build_sum, {FLOATS(10007)}, .layouts = true},
    {"sum/long", build_sum, {FLOATS(300007)}},
    {"sum/int64", build_sum, {WHOLE(KN_I64, -1000, 1000, 10007)}, .no_gradient = true},
    {"sum/int32", build_sum, {WHOLE(KN_I32, -1000, 1000, 31)}, .no_gradient = true, .layouts = true},
    {"sum/uint8", build_sum, {WHOLE(KN_U8, 0, 255, 10007)}, .no_gradient = true},
    {"sum/bool", build_sum, {WHOLE(KN_BOOL, 0, 2, 1031)}, .no_gradient = true},
    {"sum/bf16", build_sum, {WHOLE(KN_BF16, -9, 9, 31)}, .no_gradient = true},
    {"sum/int8", build_sum, {WHOLE(KN_I8, -128, 128, 1031)}, .no_gradient = true, .on_cpu = true},
    {"sum_dims/int16", build_sum_dims, {WHOLE(KN_I16, -32768, 32768, 17, 5)}, DIMS(false, 0), .no_gradient = true, .on_cpu = true},
    {"sum/f16", build_sum, {WHOLE(KN_F16, -9, 9, 1031)}, .no_gradient = true},
    {"max/uint8", build_max, {WHOLE(KN_U8, 0, 255, 31)}, .no_gradient = true, .on_cpu = true},
    {"sum_dims/f16", build_sum_dims, {WHOLE(KN_F16, -9, 9, 3, 2, 5, 4)}, DIMS(true, 1, 3), .no_gradient = true},
    {"mean/f16", build_mean, {WHOLE(KN_F16, -9, 9, 31, 7)}, .no_gradient = true},
    {"mean/bf16", build_mean, {WHOLE(KN_BF16, -9, 9, 31)}, .no_gradient = true, .on_cpu = true},
    {"mean/matrix", build_mean, {FLOATS(7, 11)}, .layouts = true},
    {"mean/scalar", build_mean, {FLOAT_SCALAR(-1, 1)}},
    {"mean/empty", build_mean, {FLOATS(0)}, .no_gradient = true},
    {"mean/long", build_mean, {FLOATS(65537)}},
    {"max/matrix", build_max, {DISTINCT(7, 11)}, .layouts = true},
    {"max/scalar", build_max, {FLOAT_SCALAR(-1, 1)}, .on_cpu = true},
    {"max/long", build_max, {DISTINCT(65537)}},
    {"max/int8", build_max, {WHOLE(KN_I8, -128, 0, 31)}, .no_gradient = true, .on_cpu = true},
    {"max/int64", build_max, {WHOLE(KN_I64, -9, 9, 1031)}, .no_gradient = true, .on_cpu = true},
    {"sum_dims/first", build_sum_dims, {FLOATS(7, 11)}, DIMS(false, 0), .layouts = true},
    {"sum_dims/last", build_sum_dims, {FLOATS(7, 11)}, DIMS(false, -1), .layouts = true},
    {"sum_dims/middle", build_sum_dims, {FLOATS(3, 5, 4)}, DIMS(true, 1), .layouts = true},
    {"sum_dims/outer_and_inner", build_sum_dims, {FLOATS(3, 4, 5)}, DIMS(false, 0, 2), .layouts = true},
    {"sum_dims/all_but_channels", build_sum_dims, {FLOATS(5, 3, 7, 11)}, DIMS(false, 0, 2, 3)},
    {"sum_dims/alternating", build_sum_dims, {FLOATS(3, 2, 5, 4)}, DIMS(true, 1, 3)},
    {"sum_dims/all", build_sum_dims, {FLOATS(3, 4, 5)}, DIMS(true, 0, 1, 2)},
    {"sum_dims/empty_sum", build_sum_dims, {FLOATS(3, 0)}, DIMS(false, 1)},
    {"sum_dims/empty_result", build_sum_dims, {FLOATS(0, 3)}, DIMS(false, 1)},
    {"sum_dims/size_1", build_sum_dims, {FLOATS(5, 1, 3)}, DIMS(false, 1)},
    {"sum_dims/tall", build_sum_dims, {FLOATS(10007, 3)}, DIMS(false, 0)},
    {"sum_dims/very_tall", build_sum_dims, {FLOATS(87407, 3)}, DIMS(false, 0), .no_gradient = true},
    {"sum_dims/wide", build_sum_dims, {FLOATS(3, 10007)}, DIMS(false, 1)},
    {"sum_dims/many_short", build_sum_dims, {FLOATS(4099, 5)}, DIMS(false, 1)},
    {"sum_dims/two_rows", build_sum_dims, {FLOATS(37, 2, 28)}, DIMS(false, 1), .layouts = true},
    {"sum_dims/few_rows_and_columns", build_sum_dims, {FLOATS(301, 7, 3)}, DIMS(false, 1)},
    {"sum_dims/few_rows_by_vectors", build_sum_dims, {FLOATS(37, 3, 16)}, DIMS(false, 1)},
    {"sum_dims/few_rows_of_70", build_sum_dims, {FLOATS(19, 7, 70)}, DIMS(false, 1)},
    {"sum_dims/last_row_of_few", build_sum_dims, {FLOATS(1, 3, 5)}, DIMS(false, 1)},
    {"sum_dims/more_rows_of_5", build_sum_dims, {FLOATS(3, 300, 5)}, DIMS(false, 1)},
    {"sum_dims/more_rows_of_47", build_sum_dims, {FLOATS(3, 511, 47)}, DIMS(false, 1)},
    {"sum_dims/many_rows_of_47", build_sum_dims, {FLOATS(2, 521, 47)}, DIMS(false, 1)},
    {"sum_dims/two_short_dimensions", build_sum_dims, {FLOATS(5, 3, 7, 2, 7, 2)}, DIMS(false, 3, 5), .layouts = true},
    {"mean_dims/two_short_dimensions", build_mean_dims, {FLOATS(5, 3, 7, 3, 5, 2)}, DIMS(true, 3, 5)},
    {"max_dim/two_of_the_last", build_max_dim, {DISTINCT(131, 2)}, DIMS(false, 1)},
    {"max_dim/few_rows_and_columns", build_max_dim, {DISTINCT(31, 7, 3)}, DIMS(false, 1), .on_cpu = true},
    {"max_dim/few_rows_of_15", build_max_dim, {DISTINCT(5, 3, 15)}, DIMS(false, 1), .on_cpu = true},
    {"max_dim/few_indices", build_max_indices, {WHOLE(KN_U8, 0, 3, 13, 7, 5)}, DIMS(false, 1), .no_gradient = true},
    {"sum_dims/int32", build_sum_dims, {WHOLE(KN_I32, -99, 99, 17, 5)}, DIMS(false, 0), .no_gradient = true},
    {"mean_dims/last", build_mean_dims, {FLOATS(7, 11)}, DIMS(false, 1), .layouts = true},
    {"mean_dims/spatial", build_mean_dims, {FLOATS(2, 3, 5, 7)}, DIMS(true, 2, 3)},
    {"mean_dims/empty", build_mean_dims, {FLOATS(3, 0)}, DIMS(false, 1), .no_gradient = true},
    {"max_dim/long", build_max_dim, {DISTINCT(3, 37)}, DIMS(false, 1), .layouts = true},
    {"min_dim/down_long_columns", build_min_dim, {DISTINCT(2, 41, 3)}, DIMS(true, 1), .layouts = true},
    {"max_dim/first", build_max_dim, {DISTINCT(7, 11)}, DIMS(false, 0), .layouts = true},
    {"max_dim/last", build_max_dim, {DISTINCT(7, 11)}, DIMS(true, -1), .layouts = true},
    {"max_dim/middle", build_max_dim, {DISTINCT(3, 5, 4)}, DIMS(false, 1), .layouts = true},
    {"max_dim/long", build_max_dim, {DISTINCT(3, 10007)}, DIMS(false, 1)},
    {"max_dim/one", build_max_dim, {DISTINCT(5, 1)}, DIMS(false, 1)},
    {"max_dim/empty_result", build_max_dim, {FLOATS(0, 3)}, DIMS(false, 1)},
    {"max_dim/indices", build_max_indices, {DISTINCT(13, 17)}, DIMS(false, 1), .no_gradient = true},
    {"max_dim/indices_of_ties", build_max_indices, {WHOLE(KN_I64, 0, 3, 13, 17)}, DIMS(true, 0), .no_gradient = true},
    {"argmax/last", build_argmax, {DISTINCT(7, 11)}, DIMS(false, 1), .no_gradient = true, .layouts = true},
    {"argmax/first", build_argmax, {DISTINCT(7, 11)}, DIMS(true, 0), .no_gradient = true},
    {"argmax/ties", build_argmax, {WHOLE(KN_F32, 0, 3, 31, 17)}, DIMS(false, 1), .no_gradient = true},
    {"argmax/long", build_argmax, {WHOLE(KN_F32, 0, 3, 2, 131101)}, DIMS(false, 1), .no_gradient = true},
    {"max_dim/many_rows_of_3", build_max_indices, {DISTINCT(131, 3)}, DIMS(false, 1), .no_gradient = true, .on_cpu = true},
    {"max_dim/middle_in_chunks", build_max_indices, {WHOLE(KN_F32, -999, 999, 2, 4099, 33)}, DIMS(false, 1), .no_gradient = true},
    {"max_dim/few_columns_in_chunks", build_max_indices, {WHOLE(KN_I32, -9999, 9999, 52501, 5)}, DIMS(false, 0), .no_gradient = true},
    {"max_dim/wide", build_max_indices, {DISTINCT(5, 130)}, DIMS(false, 0), .no_gradient = true},
    {"min/matrix", build_min, {DISTINCT(7, 11)}, .layouts = true},
    {"min/scalar", build_min, {FLOAT_SCALAR(-1, 1)}},
    {"min/long", build_min, {DISTINCT(65537)}, .on_cpu = true},
    {"min/bool", build_min, {WHOLE(KN_BOOL, 0, 2, 31)}, .no_gradient = true, .on_cpu = true},
    {"min/int64", build_min, {WHOLE(KN_I64, -9, 9, 1031)}, .no_gradient = true, .on_cpu = true},
    {"min_dim/first", build_min_dim, {DISTINCT(7, 11)}, DIMS(false, 0), .layouts = true, .on_cpu = true},
    {"min_dim/last", build_min_dim, {DISTINCT(7, 11)}, DIMS(true, -1), .layouts = true, .on_cpu = true},
    {"min_dim/long", build_min_dim, {DISTINCT(3, 10007)}, DIMS(false, 1), .on_cpu = true},
    {"min_dim/indices_of_ties", build_min_indices, {WHOLE(KN_I64, 0, 3, 13, 17)}, DIMS(true, 0), .no_gradient = true},
    {"min_dim/empty_result", build_min_dim, {FLOATS(0, 3)}, DIMS(false, 1)},
    {"argmin/last", build_argmin, {DISTINCT(7, 11)}, DIMS(false, 1), .no_gradient = true, .layouts = true},
    {"argmin/uint8", build_argmin, {WHOLE(KN_U8, 0, 255, 17, 31)}, DIMS(false, 1), .no_gradient = true},
    {"argmin/long", build_argmin, {WHOLE(KN_F32, 0, 3, 2, 10007)}, DIMS(false, 1), .no_gradient = true, .on_cpu = true},
    {"amax/middle", build_amax, {DISTINCT(3, 5, 4)}, DIMS(true, 1), .layouts = true},
    {"amax/outer_and_inner", build_amax, {DISTINCT(3, 4, 5)}, DIMS(false, 0, 2), .layouts = true, .on_cpu = true},
    {"amax/uint8", build_amax, {WHOLE(KN_U8, 0, 255, 5, 131)}, DIMS(false, 0), .no_gradient = true, .on_cpu = true},
    {"amin/outer_and_inner", build_amin, {DISTINCT(3, 4, 5)}, DIMS(false, 0, 2), .layouts = true, .on_cpu = true},
    {"amin/tall", build_amin, {DISTINCT(10007, 3)}, DIMS(false, 0), .on_cpu = true},
    {"prod/matrix", build_prod, {FLOATS_IN(0.5, 1.5, 7, 11)}, .layouts = true},
    {"prod/one", build_prod, {FLOATS(1)}},
    {"prod/empty", build_prod, {FLOATS(0, 3)}},
    {"prod/long", build_prod, {FLOATS_IN(0.999, 1.001, 10007)}},
    {"prod/int32", build_prod, {WHOLE(KN_I32, -3, 4, 13)}, .no_gradient = true, .on_cpu = true},
    {"prod/bool", build_prod, {WHOLE(KN_BOOL, 0, 2, 13)}, .no_gradient = true, .on_cpu = true},
    {"prod_dim/first", build_prod_dim, {FLOATS_IN(0.5, 1.5, 7, 11)}, DIMS(false, 0), .layouts = true},
    {"prod_dim/last", build_prod_dim, {FLOATS_IN(0.5, 1.5, 5, 40)}, DIMS(true, -1), .layouts = true, .on_cpu = true},
    {"prod_dim/f16", build_prod_dim, {WHOLE(KN_F16, 1, 3, 31, 7)}, DIMS(false, 1), .no_gradient = true, .on_cpu = true},
    {"logsumexp/last", build_logsumexp, {FLOATS_IN(-3, 3, 7, 11)}, DIMS(false, 1), .layouts = true},
    {"logsumexp/first", build_logsumexp, {FLOATS_IN(-3, 3, 7, 70)}, DIMS(true, 0)},
    {"logsumexp/outer_and_inner", build_logsumexp, {FLOATS_IN(-3, 3, 3, 4, 5)}, DIMS(false, 0, 2), .layouts = true},
    {"logsumexp/many_short", build_logsumexp, {FLOATS_IN(-3, 3, 37, 10)}, DIMS(false, 1)},
    {"logsumexp/many", build_logsumexp, {FLOATS_IN(-3, 3, 19, 131)}, DIMS(false, 1), .on_cpu = true},
    {"logsumexp/of_infinities", build_log_sum, {WHOLE(KN_F32, 0, 2, 37, 3)}, DIMS(false, 1), .no_gradient = true},
    {"logsumexp/long", build_logsumexp, {FLOATS_IN(-3, 3, 10007)}, DIMS(false, 0)},
    {"logsumexp/large", build_logsumexp, {FLOATS_IN(990, 1010, 3, 31)}, DIMS(false, 1), .no_gradient = true},
    {"logsumexp/one", build_logsumexp, {FLOATS(5, 1)}, DIMS(false, 1)},
    {"logsumexp/empty_result", build_logsumexp, {FLOATS(0, 3)}, DIMS(false, 1)},
    {"prod_dim/bf16", build_prod_dim, {WHOLE(KN_BF16, 1, 3, 7, 20)}, DIMS(false, 0), .no_gradient = true,
     .on_cpu = true},
    {"logsumexp/int16", build_logsumexp, {WHOLE(KN_I16, -3, 4, 7, 31)}, DIMS(false, 1), .no_gradient = true,
     .on_cpu = true},
    {"logsumexp/f16", build_logsumexp, {WHOLE(KN_F16, -3, 4, 7, 31)}, DIMS(false, 1), .no_gradient = true,
     .on_cpu = true},
    {"var/matrix", build_var, {FLOATS(7, 11)}, .layouts = true},
    {"var/far_from_0", build_var, {FLOATS_IN(1000, 1001, 7, 31)}, .no_gradient = true},
    {"var/long", build_var, {FLOATS(10007)}},
    {"var_dims/last", build_var_dims, {FLOATS(7, 11)}, NUMBER_DIMS(1, false, 1), .layouts = true},
    {"var_dims/first_without_correction", build_var_dims, {FLOATS(7, 11)}, NUMBER_DIMS(0, true, 0), .layouts = true},
    {"var_dims/outer_and_inner", build_var_dims, {FLOATS(3, 4, 5)}, NUMBER_DIMS(1.5, false, 0, 2)},
    {"var_dims/many_short", build_var_dims, {FLOATS(131, 3)}, NUMBER_DIMS(1, false, 1)},
    {"var_dims/f16", build_var_dims, {WHOLE(KN_F16, -3, 4, 7, 31)}, NUMBER_DIMS(1, false, 1), .no_gradient = true,
     .on_cpu = true},
    {"std/matrix", build_std, {FLOATS(7, 11)}, .layouts = true, .on_cpu = true},
    {"std_dims/middle", build_std_dims, {FLOATS(3, 5, 4)}, NUMBER_DIMS(1, true, 1), .layouts = true},
    {"norm/matrix", build_norm, {FLOATS(7, 11)}, NUMBER(2), .layouts = true},
    {"norm/long", build_norm, {FLOATS(10007)}, NUMBER(2)},
    {"norm/1", build_norm, {DISTINCT(7, 11)}, NUMBER_DIMS(1, false, 1), .layouts = true, .on_cpu = true},
    {"norm/2", build_norm, {FLOATS(3, 5, 4)}, NUMBER_DIMS(2, true, 1), .layouts = true},
    {"norm/3", build_norm, {DISTINCT(3, 5, 4)}, NUMBER_DIMS(3, false, 0, 2), .on_cpu = true},
    {"norm/0.5", build_norm, {FLOATS_IN(0.5, 1.5, 7, 5)}, NUMBER_DIMS(0.5, false, 0), .on_cpu = true},
    {"norm/0.5_beside_zeros", build_norm, {WHOLE(KN_DTYPE_DEFAULT, 0, 3, 7, 21)}, NUMBER_DIMS(0.5, false, 0), .no_gradient = true},
    {"norm/0", build_norm, {WHOLE(KN_F32, -1, 2, 7, 31)}, NUMBER_DIMS(0, false, 1), .no_gradient = true},
    {"norm/infinity", build_norm, {FLOATS(7, 11)}, NUMBER_DIMS(INFINITY, false, 1), .layouts = true},
    {"norm/minus_infinity", build_norm, {FLOATS(7, 11)}, NUMBER_DIMS(-INFINITY, false, 0), .on_cpu = true},
    {"norm/empty", build_norm, {FLOATS(0)}, NUMBER(2)},
    {"norm/f16", build_norm, {WHOLE(KN_F16, -3, 4, 7, 31)}, NUMBER_DIMS(2, false, 1), .no_gradient = true},
    {"cumsum/last", build_cumsum, {FLOATS(7, 11)}, DIMS(false, -1), .layouts = true},
    {"cumsum/rows", build_cumsum, {FLOATS(21, 37)}, DIMS(false, 1)},
    {"cumsum/rows_of_one", build_cumsum, {FLOATS(37, 1)}, DIMS(false, 1), .on_cpu = true},
    {"cumsum/rows_of_three", build_cumsum, {FLOATS(53, 3)}, DIMS(false, 1), .on_cpu = true},
    {"cumsum/rows_of_four", build_cumsum, {FLOATS(37, 4)}, DIMS(false, 1), .on_cpu = true},
    {"cumsum/rows_of_eight", build_cumsum, {FLOATS(2, 17, 8)}, DIMS(false, 2), .on_cpu = true},
    {"cumsum/first", build_cumsum, {FLOATS(7, 11)}, DIMS(false, 0), .layouts = true},
    {"cumsum/middle", build_cumsum, {FLOATS(3, 5, 37)}, DIMS(false, 1), .layouts = true},
    {"cumsum/scalar", build_cumsum, {FLOAT_SCALAR(-1, 1)}, DIMS(false, 0)},
    {"cumsum/empty", build_cumsum, {FLOATS(3, 0)}, DIMS(false, 1)},
    {"cumsum/long", build_cumsum, {FLOATS_IN(0, 1, 20011)}, DIMS(false, 0), .reduction = 20011},
    {"cumsum/long_columns", build_cumsum, {FLOATS_IN(0, 1, 10007, 18)}, DIMS(false, 0), .reduction = 10007},
    {"cumsum/int32", build_cumsum, {WHOLE(KN_I32, -9, 9, 5, 31)}, DIMS(false, 1), .no_gradient = true, .on_cpu = true},
    {"cumsum/int64", build_cumsum, {WHOLE(KN_I64, -9, 9, 19, 29)}, DIMS(false, 1), .no_gradient = true, .on_cpu = true},
    {"cumsum/int64_rows_of_two", build_cumsum, {WHOLE(KN_I64, -9, 9, 35, 2)}, DIMS(false, 1), .no_gradient = true, .on_cpu = true},
    {"cumsum/bool", build_cumsum, {WHOLE(KN_BOOL, 0, 2, 131)}, DIMS(false, 0), .no_gradient = true, .on_cpu = true},
    {"cumsum/bf16", build_cumsum, {WHOLE(KN_BF16, -3, 4, 7, 20)}, DIMS(false, 0), .no_gradient = true, .on_cpu = true},
    {"cumsum/bf16_rows_of_seven", build_cumsum, {WHOLE(KN_BF16, -3, 4, 21, 7)}, DIMS(false, 1), .no_gradient = true, .on_cpu = true},
    {"cumsum/f16", build_cumsum, {WHOLE(KN_F16, -3, 4, 7, 31)}, DIMS(false, 1), .no_gradient = true, .on_cpu = true},
    {"argmax/vector", build_argmax, {DISTINCT(1031)}, DIMS(false, 0), .no_gradient = true},
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(reduction_rows, rows, .has_golden = true, .engine = "sum sum_dims max max_dim argmax cumsum");
