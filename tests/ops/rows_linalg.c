/* rows_linalg.c - linear algebra. Symmetric and positive definite matrices are made of any ones in the expression. */
#include "ops/rows.h"

static kn_tensor *transposed(kn_tensor *x) { return kn_transpose(x, -2, -1); }

/* x x^T + 1 */
static kn_tensor *positive(kn_tensor *x)
{
    const int64_t n = kn_size(x, -2);
    kn_tensor *line = kn_arange(0, (double)n, 1, .dtype = KN_I64, .device = kn_device_of(x));
    kn_tensor *one = kn_to_dtype(kn_eq(kn_unsqueeze(line, 1), line), kn_dtype_of(x));
    return kn_add(kn_matmul(x, transposed(x)), one);
}

static kn_tensor *symmetric(kn_tensor *x) { return kn_add(x, transposed(x)); }

/* Both results as one, flat. */
static kn_tensor *joined(kn_tensor *a, kn_tensor *b)
{
    return kn_cat((kn_tensor *[]){kn_flatten(a, 0, -1), kn_flatten(b, 0, -1)}, 2, 0);
}

static kn_tensor *build_cholesky(kn_tensor *const *x, const void *params)
{
    return kn_linalg_cholesky(positive(x[0]), params != NULL);
}

static kn_tensor *build_cholesky_ex(kn_tensor *const *x, const void *params)
{
    (void)params;
    kn_tensor *info;
    return kn_linalg_cholesky_ex(positive(x[0]), false, &info);
}

static kn_tensor *build_cholesky_solve(kn_tensor *const *x, const void *params)
{
    return kn_cholesky_solve(x[1], kn_linalg_cholesky(positive(x[0]), params != NULL), params != NULL);
}

typedef struct triangle {
    bool upper, left, unit;
} triangle;

static kn_tensor *build_triangular(kn_tensor *const *x, const void *params)
{
    const triangle *t = params;
    return kn_linalg_solve_triangular(positive(x[0]), x[1], t->upper, t->left, t->unit);
}

static kn_tensor *build_lu(kn_tensor *const *x, const void *params)
{
    kn_tensor *pivots, *info;
    return params ? kn_linalg_lu_factor_ex(x[0], &pivots, &info) : kn_linalg_lu_factor(x[0], &pivots);
}

static kn_tensor *build_solve(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_linalg_solve(positive(x[0]), x[1]);
}

static kn_tensor *build_inv_ex(kn_tensor *const *x, const void *params)
{
    (void)params;
    kn_tensor *info;
    return kn_linalg_inv_ex(positive(x[0]), &info);
}

static kn_tensor *build_det(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_linalg_det(x[0]);
}

static kn_tensor *build_slogdet(kn_tensor *const *x, const void *params)
{
    (void)params;
    kn_tensor *logabsdet, *sign = kn_linalg_slogdet(x[0], &logabsdet);
    return joined(kn_mul(sign, logabsdet), logabsdet);
}

static kn_tensor *build_logdet(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_logdet(positive(x[0]));
}

static kn_tensor *build_qr(kn_tensor *const *x, const void *params)
{
    kn_tensor *r, *q = kn_linalg_qr(x[0], params ? *(const kn_qr_mode *)params : KN_QR_REDUCED, &r);
    return joined(q, r);
}

static kn_tensor *build_eigh(kn_tensor *const *x, const void *params)
{
    kn_tensor *vectors, *values = kn_linalg_eigh(symmetric(x[0]), params != NULL, &vectors);
    return joined(values, vectors);
}

static kn_tensor *build_svd(kn_tensor *const *x, const void *params)
{
    (void)params;
    kn_tensor *s, *vh, *u = kn_linalg_svd(x[0], false, &s, &vh);
    return joined(u, joined(s, vh));
}

static kn_tensor *build_pinv(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_linalg_pinv(x[0]);
}

static kn_tensor *build_lstsq(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_linalg_lstsq(x[0], x[1]);
}

static kn_tensor *build_norm(kn_tensor *const *x, const void *params)
{
    return kn_linalg_matrix_norm(x[0], *(const kn_matrix_norm *)params, true);
}

static kn_tensor *build_trace(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_trace(x[0]);
}

static kn_tensor *build_cross(kn_tensor *const *x, const void *params)
{
    (void)params;
    return kn_linalg_cross(x[0], x[1], -1);
}

/* clang-format off */
#define YES "yes"
#define TRIANGLE(...) &(const triangle){.left = true, __VA_ARGS__}
#define MODE(m) &(const kn_qr_mode){KN_QR_##m}
#define NORM(m) &(const kn_matrix_norm){KN_MATRIX_NORM_##m}

OP_ROWS_BEGIN
static const op_row rows[] = {
    {"linalg_cholesky/batch", build_cholesky, {FLOATS(2, 4, 4)}, NULL, 200},
    {"linalg_cholesky/upper", build_cholesky, {FLOATS(5, 5)}, YES, 200, .full = true},
    {"linalg_cholesky/large", build_cholesky, {FLOATS(37, 37)}, NULL, 3000},
    {"linalg_cholesky/one", build_cholesky, {FLOATS(3, 1, 1)}, NULL, .full = true},
    {"linalg_cholesky/empty", build_cholesky, {FLOATS(0, 3, 3)}},
    {"linalg_cholesky_ex/batch", build_cholesky_ex, {FLOATS(2, 3, 3)}, NULL, 100},
    {"linalg_cholesky/solve", build_cholesky_solve, {FLOATS(2, 3, 3), FLOATS(3, 2)}, NULL, 200, .full = true},
    {"linalg_cholesky/solve_upper", build_cholesky_solve, {FLOATS(3, 3), FLOATS(2, 3, 2)}, YES, 200, .full = true},
    {"linalg_solve_triangular/lower", build_triangular, {FLOATS(2, 4, 4), FLOATS(2, 4, 3)}, TRIANGLE(.unit = false), 200},
    {"linalg_solve_triangular/upper", build_triangular, {FLOATS(4, 4), FLOATS(3, 4, 1)}, TRIANGLE(.upper = true), 200},
    {"linalg_solve_triangular/unit", build_triangular, {FLOATS(4, 4), FLOATS(4, 5)}, TRIANGLE(.unit = true), 400},
    {"linalg_solve_triangular/right", build_triangular, {FLOATS(4, 4), FLOATS(3, 4)}, &(const triangle){.upper = true}, 200, .full = true},
    {"linalg_solve_triangular/right_unit", build_triangular, {FLOATS(4, 4), FLOATS(3, 4)}, &(const triangle){.unit = true}, 400, .full = true},
    {"linalg_solve_triangular/wide", build_triangular, {FLOATS(3, 3), FLOATS(3, 131)}, TRIANGLE(.unit = false), 200, .full = true},
    {"linalg_lu_factor/batch", build_lu, {FLOATS(3, 4, 4)}, NULL, 200},
    {"linalg_lu_factor/tall", build_lu, {FLOATS(5, 3)}, NULL, 200},
    {"linalg_lu_factor/wide", build_lu, {FLOATS(3, 7)}, NULL, 200, .full = true},
    {"linalg_lu_factor_ex/large", build_lu, {FLOATS(67, 67)}, YES, 30000, .no_gradient = true},
    {"linalg_solve/batch", build_solve, {FLOATS(2, 4, 4), FLOATS(2, 4, 3)}, NULL, 200},
    {"linalg_solve/broadcast", build_solve, {FLOATS(2, 1, 3, 3), FLOATS(4, 3, 2)}, NULL, 200, .full = true},
    {"linalg_solve/vector", build_solve, {FLOATS(2, 3, 3), FLOATS(2, 3)}, NULL, 200},
    {"linalg_solve/large", build_solve, {FLOATS(41, 41), FLOATS(41, 70)}, NULL, 10000, .full = true},
    {"linalg_solve_ex/inverse", build_inv_ex, {FLOATS(2, 4, 4)}, NULL, 200},
    {"linalg_det/batch", build_det, {FLOATS(3, 4, 4)}, NULL, 200},
    {"linalg_det/one", build_det, {FLOATS(1, 1)}, .full = true},
    {"linalg_slogdet/batch", build_slogdet, {FLOATS(3, 4, 4)}, NULL, 400},
    {"linalg_slogdet/logdet", build_logdet, {FLOATS(2, 4, 4)}, NULL, 200, .full = true},
    {"linalg_qr/tall", build_qr, {FLOATS(2, 5, 3)}, NULL, 200},
    {"linalg_qr/wide", build_qr, {FLOATS(3, 5)}, NULL, 400},
    {"linalg_qr/square", build_qr, {FLOATS(4, 4)}, MODE(COMPLETE), 400, .full = true},
    {"linalg_qr/complete", build_qr, {FLOATS(5, 3)}, MODE(COMPLETE), 200, .no_gradient = true},
    {"linalg_qr/r", build_qr, {FLOATS(5, 3)}, MODE(R), 200, .no_gradient = true, .full = true},
    {"linalg_qr/large", build_qr, {FLOATS(100, 67)}, NULL, 10000, .no_gradient = true},
    {"linalg_eigh/batch", build_eigh, {FLOATS(2, 4, 4)}, NULL, 1000},
    {"linalg_eigh/upper", build_eigh, {FLOATS(3, 3)}, YES, 1000, .full = true},
    {"linalg_eigh/large", build_eigh, {FLOATS(23, 23)}, NULL, 30000, .no_gradient = true},
    {"linalg_svd/tall", build_svd, {FLOATS(2, 5, 3)}, NULL, 1000},
    {"linalg_svd/wide", build_svd, {FLOATS(3, 5)}, NULL, 1000},
    {"linalg_svd/square", build_svd, {FLOATS(4, 4)}, NULL, 4000, .full = true},
    {"linalg_svd/large", build_svd, {FLOATS(31, 17)}, NULL, 30000, .no_gradient = true},
    {"linalg_svd/pinv", build_pinv, {FLOATS(4, 3)}, NULL, 2000, .full = true},
    {"linalg_qr/lstsq", build_lstsq, {FLOATS(5, 3), FLOATS(5, 2)}, NULL, 1000, .full = true},
    {"linalg_qr/lstsq_wide", build_lstsq, {FLOATS(3, 5), FLOATS(3, 2)}, NULL, 1000, .full = true},
    {"linalg_svd/norm_fro", build_norm, {FLOATS(2, 3, 4)}, NORM(FRO), .full = true},
    {"linalg_svd/norm_nuc", build_norm, {FLOATS(2, 3, 4)}, NORM(NUC), 500, .full = true},
    {"linalg_svd/norm_2", build_norm, {FLOATS(2, 3, 4)}, NORM(2), 500, .full = true},
    {"linalg_svd/norm_minus_1", build_norm, {FLOATS(2, 3, 4)}, NORM(MINUS_1), .full = true},
    {"linalg_svd/norm_inf", build_norm, {FLOATS(2, 3, 4)}, NORM(INF), .full = true},
    {"linalg_svd/trace", build_trace, {FLOATS(4, 3)}, .full = true},
    {"linalg_svd/cross", build_cross, {FLOATS(4, 3), FLOATS(2, 1, 3)}, .full = true},
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(linalg_rows, rows, .has_golden = true);
