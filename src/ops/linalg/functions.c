/* ops/linalg/functions.c - functions composed of the factorisations: pseudoinverse, rank, least squares, norms. */
#include <float.h>
#include <koine/autograd.h>
#include <koine/join.h>
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>

#include "base/error.h"
#include "base/text.h"
#include "ops/linalg/linalg.h"

/* Has a matrices? The error names the function. */
static bool has_matrices(const char *function, const kn_tensor *a)
{
    char text[KN_DESCRIBE];
    if (!a)
        return false;
    if (a->ndim >= 2)
        return true;
    kn_fail_null(KN_ERR_SHAPE, "%s: a must have at least 2 dimensions, not be %s", function,
                 kn_tensor_describe(text, sizeof text, a));
    return false;
}

/* A number to compare or combine with s. */
static kn_tensor *number(double value, const kn_tensor *s)
{
    return kn_full_with(0, NULL, kn_scalar_real(value),
                        &(kn_tensor_options){.dtype = kn_dtype_of(s), .device = kn_device_of(s)});
}

/* --- singular values ---------------------------------------------------------------------------------------------- */

/* Which of a's singular values s count: those above max(m, n) eps times the largest. */
static kn_tensor *that_count(kn_tensor *s, const kn_tensor *a)
{
    const double eps = kn_dtype_of(s) == KN_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    const int64_t larger = kn_rows(a) > kn_columns(a) ? kn_rows(a) : kn_columns(a);
    kn_tensor *most = kn_amax(kn_detach(s), (int[]){-1}, 1, true);
    return kn_gt(kn_detach(s), kn_mul_scalar(most, (double)larger * eps));
}

kn_tensor *kn_linalg_pinv(kn_tensor *a)
{
    kn_tensor *s, *vh, *u = has_matrices("linalg_pinv", a) ? kn_linalg_svd(a, false, &s, &vh) : NULL;

    if (!u)
        return NULL;
    if (kn_numel(s) == 0)
        return kn_matrix_transpose(a);
    kn_tensor *counts = that_count(s, a);
    kn_tensor *inverse = kn_where(counts, kn_reciprocal(kn_where(counts, s, number(1, s))), number(0, s));
    return kn_matmul(kn_mul(kn_matrix_transpose(vh), kn_unsqueeze(inverse, -2)), kn_matrix_transpose(u));
}

kn_tensor *kn_linalg_matrix_rank(kn_tensor *a)
{
    kn_tensor *s = has_matrices("linalg_matrix_rank", a) ? kn_linalg_svdvals(kn_detach(a)) : NULL;

    if (!s)
        return NULL;
    kn_tensor *counts = kn_size(s, -1) > 0 ? that_count(s, a) : kn_to_dtype(s, KN_I64);
    return kn_sum_dims(kn_to_dtype(counts, KN_I64), (int[]){-1}, 1, false);
}

/* Full rank: a = q r gives x = r^-1 q^T b; a^T = q r gives x = q r^-T b, the shortest. */
kn_tensor *kn_linalg_lstsq(kn_tensor *a, kn_tensor *b)
{
    kn_tensor *r;

    if (!has_matrices("linalg_lstsq", a) || !has_matrices("linalg_lstsq", b))
        return NULL;
    if (kn_rows(a) >= kn_columns(a)) {
        kn_tensor *q = kn_linalg_qr(a, KN_QR_REDUCED, &r);
        return kn_linalg_solve_triangular(r, kn_matmul(kn_matrix_transpose(q), b), true, true, false);
    }
    kn_tensor *q = kn_linalg_qr(kn_matrix_transpose(a), KN_QR_REDUCED, &r);
    return kn_matmul(q, kn_linalg_solve_triangular(kn_matrix_transpose(r), b, false, true, false));
}

/* --- norms -------------------------------------------------------------------------------------------------------- */

/* The sum, largest or smallest of the singular values. */
static kn_tensor *norm_of_values(kn_tensor *a, kn_matrix_norm norm, bool keepdim)
{
    kn_tensor *s = kn_linalg_svdvals(a), *result;

    if (norm == KN_MATRIX_NORM_NUC)
        result = kn_sum_dims(s, (int[]){-1}, 1, keepdim);
    else
        result = (norm == KN_MATRIX_NORM_2 ? kn_amax : kn_amin)(s, (int[]){-1}, 1, keepdim);
    return keepdim ? kn_unsqueeze(result, -1) : result;
}

kn_tensor *kn_linalg_matrix_norm(kn_tensor *a, kn_matrix_norm norm, bool keepdim)
{
    if (!has_matrices("linalg_matrix_norm", a))
        return NULL;
    const bool is_by_column = norm == KN_MATRIX_NORM_1 || norm == KN_MATRIX_NORM_MINUS_1;
    const bool is_largest = norm == KN_MATRIX_NORM_1 || norm == KN_MATRIX_NORM_INF;
    switch (norm) {
    case KN_MATRIX_NORM_FRO:
        return kn_norm_dims(a, 2, (int[]){-2, -1}, 2, keepdim);
    case KN_MATRIX_NORM_NUC:
    case KN_MATRIX_NORM_2:
    case KN_MATRIX_NORM_MINUS_2:
        return norm_of_values(a, norm, keepdim);
    default:
        break;
    }
    kn_tensor *sums = kn_sum_dims(kn_abs(a), (int[]){is_by_column ? -2 : -1}, 1, true);
    return (is_largest ? kn_amax : kn_amin)(sums, (int[]){-2, -1}, 2, keepdim);
}

/* --- products ----------------------------------------------------------------------------------------------------- */

kn_tensor *kn_trace(kn_tensor *a)
{
    if (!has_matrices("trace", a))
        return NULL;
    if (a->ndim != 2)
        return kn_fail_null(KN_ERR_SHAPE, "trace: a must be one matrix, not have %d dimensions", a->ndim);
    const int64_t count = kn_rows(a) < kn_columns(a) ? kn_rows(a) : kn_columns(a);
    const int64_t stride = a->strides[0] + a->strides[1];
    return kn_sum(kn_as_strided(a, 1, &count, &stride, a->offset));
}

/* x with its elements along dim moved up by `by`. */
static kn_tensor *rolled(kn_tensor *x, int dim, int64_t by)
{
    return kn_cat((kn_tensor *[]){kn_narrow(x, dim, by, 3 - by), kn_narrow(x, dim, 0, by)}, 2, dim);
}

kn_tensor *kn_linalg_cross(kn_tensor *a, kn_tensor *b, int dim)
{
    char text[KN_DESCRIBE];
    kn_tensor *const both[] = {a, b};

    for (int i = 0; i < 2; i++) {
        if (!both[i])
            return NULL;
        const int ndim = kn_ndim(both[i]), at = dim < 0 ? dim + ndim : dim;
        if (at < 0 || at >= ndim || both[i]->shape[at] != 3)
            return kn_fail_null(KN_ERR_SHAPE, "linalg_cross: dimension %d of %s must have 3 elements, not be %s", dim,
                                i == 0 ? "a" : "b", kn_tensor_describe(text, sizeof text, both[i]));
    }
    return kn_sub(kn_mul(rolled(a, dim, 1), rolled(b, dim, 2)), kn_mul(rolled(a, dim, 2), rolled(b, dim, 1)));
}
