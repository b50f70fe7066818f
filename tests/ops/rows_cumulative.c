/* rows_cumulative.c - running products, extremes and logarithms of sums; conditions, counts, what is not NaN; functions
 * that others make up. */
#include "ops/rows.h"

#define ALONG_DIM(function, call)                                                                                      \
    static kn_tensor *build_##function(kn_tensor *const *x, const void *params)                                        \
    {                                                                                                                  \
        const int dim = params ? *(const int *)params : 0;                                                             \
        (void)dim;                                                                                                     \
        return call;                                                                                                   \
    }

static kn_tensor *indices_of(kn_tensor *(*function)(kn_tensor *x, int dim, kn_tensor **indices), kn_tensor *x, int dim)
{
    kn_tensor *indices = NULL;
    return function(x, dim, &indices) ? indices : NULL;
}

ALONG_DIM(cumprod, kn_cumprod(x[0], dim))
ALONG_DIM(logcumsumexp, kn_logcumsumexp(x[0], dim))
ALONG_DIM(cummax, kn_cummax(x[0], dim, NULL))
ALONG_DIM(cummin, kn_cummin(x[0], dim, NULL))
ALONG_DIM(cummax_indices, indices_of(kn_cummax, x[0], dim))
ALONG_DIM(cummin_indices, indices_of(kn_cummin, x[0], dim))
ALONG_DIM(any, kn_any(x[0]))
ALONG_DIM(any_dim, kn_any_dims(x[0], &dim, 1, false))
ALONG_DIM(all, kn_all(x[0]))
ALONG_DIM(all_dim, kn_all_dims(x[0], &dim, 1, true))
ALONG_DIM(count_nonzero, kn_count_nonzero(x[0]))
ALONG_DIM(count_nonzero_dim, kn_count_nonzero_dims(x[0], &dim, 1, false))
ALONG_DIM(nansum, kn_nansum_dims(x[0], &dim, 1, false))
ALONG_DIM(nanmean, kn_nanmean_dims(x[0], &dim, 1, false))
ALONG_DIM(renorm, kn_renorm(x[0], 2, dim, 1.5))
ALONG_DIM(dist, kn_dist(x[0], x[1], 3))
ALONG_DIM(diff, kn_diff(x[0], .n = 2, .dim = dim, .append = x[1]))
ALONG_DIM(trapezoid, kn_trapezoid(x[0], .x = x[1], .dim = dim))
ALONG_DIM(trapezoid_dx, kn_trapezoid(x[0], .dx = 0.5, .dim = dim))
ALONG_DIM(cumulative_trapezoid_x, kn_cumulative_trapezoid(x[0], .x = x[1], .dim = dim))
ALONG_DIM(cumulative_trapezoid, kn_cumulative_trapezoid(x[0], .dx = 0.5, .dim = dim))

/* clang-format off */
#define DIM(d) &(const int){d}

OP_ROWS_BEGIN
static const op_row rows[] = {
    {"cumprod/last", build_cumprod, {FLOATS_IN(0.5, 1.5, 5, 11)}, DIM(1)},
    {"cumprod/middle", build_cumprod, {FLOATS_IN(0.5, 1.5, 3, 5, 37)}, DIM(1), .full = true},
    {"cumprod/empty", build_cumprod, {FLOATS(3, 0)}, DIM(1), .full = true},
    {"cumprod/zeros", build_cumprod, {WHOLE(KN_DTYPE_DEFAULT, -1, 2, 7, 5)}, DIM(1), .no_gradient = true},
    {"cumprod/long", build_cumprod, {FLOATS_IN(0.999, 1.001, 10007)}, DIM(0), .reduction = 10007, .full = true},
    {"cumprod/int32", build_cumprod, {WHOLE(KN_I32, -3, 4, 3, 13)}, DIM(1), .no_gradient = true, .full = true},
    {"logcumsumexp/last", build_logcumsumexp, {FLOATS_IN(-3, 3, 5, 11)}, DIM(1)},
    {"logcumsumexp/rows", build_logcumsumexp, {FLOATS_IN(-3, 3, 18, 37)}, DIM(1), .no_gradient = true},
    {"logcumsumexp/middle", build_logcumsumexp, {FLOATS_IN(-3, 3, 3, 5, 37)}, DIM(1), .full = true},
    {"logcumsumexp/long", build_logcumsumexp, {FLOATS_IN(-3, 3, 10007)}, DIM(0), .reduction = 10007, .no_gradient = true},
    {"cummax/last", build_cummax, {DISTINCT(7, 11)}, DIM(1)},
    {"cummax/middle", build_cummax, {DISTINCT(3, 5, 37)}, DIM(1), .full = true},
    {"cummax/ties", build_cummax_indices, {WHOLE(KN_F32, 0, 9, 5, 61)}, DIM(1), .no_gradient = true},
    {"cummax/ties_of_rows", build_cummax_indices, {WHOLE(KN_F32, 0, 9, 21, 37)}, DIM(1), .no_gradient = true},
    {"cummax/ties_of_short_rows", build_cummax_indices, {WHOLE(KN_F32, 0, 9, 41, 6)}, DIM(1), .no_gradient = true},
    {"cummax/ties_of_columns", build_cummax_indices, {WHOLE(KN_I64, 0, 9, 61, 21)}, DIM(0), .no_gradient = true},
    {"cummax/long", build_cummax_indices, {WHOLE(KN_F32, -99, 99, 20011)}, DIM(0), .no_gradient = true},
    {"cummax/long_columns", build_cummax_indices, {WHOLE(KN_F32, -99, 99, 10007, 18)}, DIM(0), .no_gradient = true},
    {"cummax/uint8", build_cummax, {WHOLE(KN_U8, 0, 255, 5, 61)}, DIM(1), .no_gradient = true, .full = true},
    {"cummin/last", build_cummin, {DISTINCT(7, 11)}, DIM(1)},
    {"cummin/ties", build_cummin_indices, {WHOLE(KN_F32, 0, 9, 5, 61)}, DIM(1), .no_gradient = true, .full = true},
    {"cummin/long", build_cummin, {DISTINCT(20011)}, DIM(0), .no_gradient = true, .full = true},
    {"any/few", build_any_dim, {WHOLE(KN_F32, 0, 2, 31, 3)}, DIM(1), .no_gradient = true},
    {"any/all", build_any, {WHOLE(KN_BOOL, 0, 1, 1031)}, .no_gradient = true},
    {"any/int64", build_any_dim, {WHOLE(KN_I64, 0, 2, 3, 31)}, DIM(0), .no_gradient = true, .full = true},
    {"any/f16", build_any_dim, {WHOLE(KN_F16, 0, 2, 3, 31)}, DIM(0), .no_gradient = true, .full = true},
    {"any/empty", build_any, {FLOATS(0)}, .no_gradient = true},
    {"all/few", build_all_dim, {WHOLE(KN_F32, 0, 9, 31, 5)}, DIM(1), .no_gradient = true},
    {"all/uint8", build_all_dim, {WHOLE(KN_U8, 0, 9, 5, 31)}, DIM(0), .no_gradient = true},
    {"all/empty", build_all, {FLOATS(0)}, .no_gradient = true, .full = true},
    {"count_nonzero/all", build_count_nonzero, {WHOLE(KN_F32, -1, 2, 1031)}, .no_gradient = true},
    {"count_nonzero/int32", build_count_nonzero_dim, {WHOLE(KN_I32, -1, 2, 31, 5)}, DIM(0), .no_gradient = true, .full = true},
    {"count_nonzero/bool", build_count_nonzero_dim, {WHOLE(KN_BOOL, 0, 2, 31, 5)}, DIM(1), .no_gradient = true, .full = true},
    {"nansum/last", build_nansum, {FLOATS(7, 11)}, DIM(1)},
    {"nansum/int32", build_nansum, {WHOLE(KN_I32, -9, 9, 7, 11)}, DIM(0), .no_gradient = true, .full = true},
    {"nanmean/first", build_nanmean, {FLOATS(7, 11)}, DIM(0)},
    {"renorm/first", build_renorm, {FLOATS(5, 3, 4)}, DIM(0)},
    {"dist/matrix", build_dist, {DISTINCT(5, 3), DISTINCT(3)}},
    {"diff/last", build_diff, {FLOATS(3, 5), FLOATS(3, 2)}, DIM(1)},
    {"trapezoid/last", build_trapezoid, {FLOATS(3, 5), FLOATS(5)}, DIM(1)},
    {"trapezoid/dx_first", build_trapezoid_dx, {FLOATS(5, 3)}, DIM(0)},
    {"trapezoid/dx_two", build_trapezoid_dx, {FLOATS(3, 2, 4)}, DIM(1)},
    {"trapezoid/dx_one", build_trapezoid_dx, {FLOATS(3, 1)}, DIM(1)},
    {"trapezoid/dx_int32", build_trapezoid_dx, {WHOLE(KN_I32, -9, 9, 4, 7)}, DIM(1), .no_gradient = true, .full = true},
    {"cumulative_trapezoid/last", build_cumulative_trapezoid_x, {FLOATS(3, 5), FLOATS(3, 5)}, DIM(1), .full = true},
    {"cumulative_trapezoid/first", build_cumulative_trapezoid, {FLOATS(5, 3)}, DIM(0)},
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(cumulative_rows, rows, .has_golden = true);
