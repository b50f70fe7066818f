/* ops/linalg/lu_parts.c - the factors of an LU factorisation, and systems solved with them. Compositions. */
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/shape.h>

#include "base/error.h"
#include "ops/linalg/linalg.h"

/* --- the factors -------------------------------------------------------------------------------------------------- */

/* Are these factors of matrices, and their pivots? */
static kn_status check_factors(const kn_tensor *lu, const kn_tensor *pivots)
{
    char has[KN_DESCRIBE], of[KN_DESCRIBE];
    bool fits = lu->ndim >= 2 && pivots->ndim == lu->ndim - 1;

    if (pivots->dtype != KN_I32)
        return kn_fail(KN_ERR_DTYPE, "pivots is %s; it must be int32, as linalg_lu_factor gives it",
                       kn_dtype_name(pivots->dtype));
    for (int d = 0; fits && d < lu->ndim - 2; d++)
        fits = pivots->shape[d] == lu->shape[d];
    if (fits)
        fits = pivots->shape[lu->ndim - 2] == (kn_rows(lu) < kn_columns(lu) ? kn_rows(lu) : kn_columns(lu));
    return fits ? KN_OK
                : kn_fail(KN_ERR_SHAPE,
                          "lu must be factors [..., m, n] and pivots [..., min(m, n)] of the same batch, not %s and %s",
                          kn_tensor_describe(of, sizeof of, lu), kn_tensor_describe(has, sizeof has, pivots));
}

static kn_tensor *lower_of(kn_tensor *lu)
{
    const int64_t m = kn_rows(lu), n = kn_columns(lu), k = m < n ? m : n;
    kn_tensor *one = kn_identity(m, lu->dtype, kn_device_of(lu));
    return kn_add(kn_lower_part(kn_narrow(lu, -1, 0, k), true), kn_narrow(one, -1, 0, k));
}

static kn_tensor *upper_of(kn_tensor *lu)
{
    const int64_t m = kn_rows(lu), n = kn_columns(lu);
    return kn_upper_part(kn_narrow(lu, -2, 0, m < n ? m : n), false);
}

kn_tensor *kn_lu_unpack(kn_tensor *lu, kn_tensor *pivots, kn_tensor **l, kn_tensor **u)
{
    if (l)
        *l = NULL;
    if (u)
        *u = NULL;
    if (!lu || !pivots)
        return NULL;
    if (check_factors(lu, pivots) != KN_OK) {
        kn_error_prefix("lu_unpack");
        return kn_error_make_sticky();
    }
    kn_tensor *p = kn_lu_permutation(pivots, kn_rows(lu), lu->dtype);
    if (p && l && !(*l = lower_of(lu)))
        return NULL;
    if (p && u && !(*u = upper_of(lu)))
        return NULL;
    return p;
}

kn_tensor *kn_linalg_lu(kn_tensor *a, kn_tensor **l, kn_tensor **u)
{
    kn_tensor *pivots = NULL, *info = NULL, *lu = kn_linalg_lu_factor_ex(a, &pivots, &info);
    return kn_lu_unpack(lu, pivots, l, u);
}

/* --- solutions ---------------------------------------------------------------------------------------------------- */

/* x with a x = b, or a^T x = b, of a = p l u. */
static kn_tensor *solution(kn_tensor *lu, kn_tensor *pivots, kn_tensor *b, bool adjoint)
{
    kn_tensor *p = kn_lu_permutation(pivots, kn_rows(lu), lu->dtype);
    if (!adjoint) {
        b = kn_linalg_solve_triangular(lu, kn_matmul(kn_matrix_transpose(p), b), false, true, true);
        return kn_linalg_solve_triangular(lu, b, true, true, false);
    }
    kn_tensor *transposed = kn_matrix_transpose(lu);
    b = kn_linalg_solve_triangular(transposed, b, false, true, false);
    return kn_matmul(p, kn_linalg_solve_triangular(transposed, b, true, true, true));
}

static kn_status check_solve(const kn_tensor *lu, const kn_tensor *pivots, const kn_tensor *b, bool left)
{
    char of[KN_DESCRIBE], has[KN_DESCRIBE];

    KN_TRY(check_factors(lu, pivots));
    if (kn_rows(lu) != kn_columns(lu))
        return kn_fail(KN_ERR_SHAPE, "lu must be factors of square matrices, not %s",
                       kn_tensor_describe(of, sizeof of, lu));
    if (b->ndim < 2 || b->shape[b->ndim - (left ? 2 : 1)] != kn_rows(lu))
        return kn_fail(KN_ERR_SHAPE, "b must be matrices with %lld %s, as lu, not %s", (long long)kn_rows(lu),
                       left ? "rows" : "columns", kn_tensor_describe(has, sizeof has, b));
    return KN_OK;
}

kn_tensor *kn_linalg_lu_solve(kn_tensor *lu, kn_tensor *pivots, kn_tensor *b, bool left, bool adjoint)
{
    if (!lu || !pivots || !b)
        return NULL;
    if (check_solve(lu, pivots, b, left) != KN_OK) {
        kn_error_prefix("linalg_lu_solve");
        return kn_error_make_sticky();
    }
    return left ? solution(lu, pivots, b, adjoint)
                : kn_matrix_transpose(solution(lu, pivots, kn_matrix_transpose(b), !adjoint));
}
