/* test_linalg_blocks.c - LU and Cholesky factors, triangular systems and QR of matrices that are large enough for
 * blocks: whole and partial ones, batches, singular matrices. */
#include "support/as_gpu.h"
#include "support/check.h"

#include <float.h>
#include <math.h>

static kn_tensor *normal(kn_dtype dtype, int ndim, const int64_t *shape)
{
    return kn_randn_with(ndim, shape, &(kn_tensor_options){.dtype = dtype});
}

/* x is y but for rounding errors of so many terms. */
static void check_near(kn_tensor *x, kn_tensor *y, double terms)
{
    const double eps = kn_dtype_of(x) == KN_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    double difference, size;
    CHECK_TENSOR(x);
    CHECK_OK(kn_item(kn_max(kn_abs(kn_sub(x, y))), &difference));
    CHECK_OK(kn_item(kn_max(kn_abs(y)), &size));
    if (!(difference <= eps * terms * (size + 1)))
        fail_msg("off by %g, of %g", difference, size);
}

/* --- LU ----------------------------------------------------------------------------------------------------------- */

static void check_factors(kn_dtype dtype, int ndim, const int64_t *shape)
{
    KN_SCOPE;
    kn_tensor *a = normal(dtype, ndim, shape), *pivots, *l, *u;
    kn_tensor *lu = kn_linalg_lu_factor(a, &pivots);
    CHECK_TENSOR(lu);
    kn_tensor *p = kn_lu_unpack(lu, pivots, &l, &u);
    double most;
    check_near(kn_matmul(p, kn_matmul(l, u)), a, 100);
    CHECK_OK(kn_item(kn_max(kn_abs(l)), &most));
    assert_true(most <= 1); /* the largest of each column was the pivot */
}

static void check_all_factors(kn_dtype dtype)
{
    check_factors(dtype, KN_SHAPE(192, 192)); /* whole blocks */
    check_factors(dtype, KN_SHAPE(161, 161));
    check_factors(dtype, KN_SHAPE(2, 225, 225));
    check_factors(dtype, KN_SHAPE(300, 170));
    check_factors(dtype, KN_SHAPE(170, 300));
}

TENSOR_TEST(factors) { check_all_factors(KN_F32); }
TENSOR_TEST_F64(factors_in_float64) { check_all_factors(KN_F64); }

/* --- Cholesky ----------------------------------------------------------------------------------------------------- */

/* Symmetric, with a large diagonal; NaN above it, where nothing is read. */
static void check_cholesky(kn_dtype dtype, int ndim, const int64_t *shape)
{
    KN_SCOPE;
    const int64_t n = shape[ndim - 1];
    kn_tensor *x = normal(dtype, ndim, shape);
    kn_tensor *a =
        kn_add(kn_mul_scalar(kn_matmul(x, kn_transpose(x, -2, -1)), 1 / (double)n), kn_eye(n, n, .dtype = dtype));
    kn_tensor *above = kn_triu(kn_ones(KN_SHAPE(n, n), .dtype = KN_U8), 1);
    kn_tensor *l = kn_linalg_cholesky(kn_masked_fill(a, kn_to_dtype(above, KN_BOOL), (double)NAN), false);
    check_near(kn_matmul(l, kn_transpose(l, -2, -1)), a, 50);
    check_near(kn_triu(l, 1), kn_zeros_like(l), 0);
}

static void check_all_cholesky(kn_dtype dtype)
{
    check_cholesky(dtype, KN_SHAPE(192, 192));
    check_cholesky(dtype, KN_SHAPE(2, 165, 165));
    check_cholesky(dtype, KN_SHAPE(400, 400)); /* more than one strip */
}

TENSOR_TEST(symmetric_factors) { check_all_cholesky(KN_F32); }
TENSOR_TEST_F64(symmetric_factors_in_float64) { check_all_cholesky(KN_F64); }

TENSOR_TEST(matrices_that_are_not_positive_definite)
{
    kn_tensor *a = kn_clone(kn_expand(kn_eye(170, 170, .dtype = KN_F32), KN_SHAPE(3, 170, 170))), *info;
    CHECK_TENSOR(kn_fill_(kn_select(kn_select(kn_select(a, 0, 1), 0, 99), 0, 99), -1.0));
    CHECK_TENSOR(kn_fill_(kn_select(kn_select(kn_select(a, 0, 2), 0, 3), 0, 3), (double)NAN));
    CHECK_TENSOR(kn_linalg_cholesky_ex(a, false, &info));
    CHECK_VALUES(info, 0, 100, 4);
    CHECK_TENSOR(kn_linalg_cholesky(kn_narrow(a, 0, 0, 2), false));
    assert_int_equal(kn_synchronize(NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "matrix 1 of the batch is not positive definite: its leading minor of order 100");
}

/* --- QR ----------------------------------------------------------------------------------------------------------- */

static void check_qr(kn_tensor *a, kn_qr_mode mode)
{
    KN_SCOPE;
    kn_tensor *r, *q = kn_linalg_qr(a, mode, &r);
    CHECK_TENSOR(q);
    check_near(kn_matmul(q, r), a, 200);
    check_near(kn_matmul(kn_transpose(q, -2, -1), q), kn_eye(kn_size(q, -1), kn_size(q, -1), .dtype = kn_dtype_of(a)),
               200);
    check_near(kn_tril(r, -1), kn_zeros_like(r), 0);
}

static void check_all_qr(kn_dtype dtype)
{
    const kn_qr_mode modes[] = {KN_QR_REDUCED, KN_QR_COMPLETE};
    for (int i = 0; i < 2; i++) {
        check_qr(normal(dtype, KN_SHAPE(192, 192)), modes[i]); /* whole blocks */
        check_qr(normal(dtype, KN_SHAPE(165, 165)), modes[i]);
        check_qr(normal(dtype, KN_SHAPE(2, 300, 100)), modes[i]);
        check_qr(normal(dtype, KN_SHAPE(100, 300)), modes[i]);
        check_qr(normal(dtype, KN_SHAPE(520, 17)), modes[i]); /* one narrow panel */
    }
}

TENSOR_TEST(orthogonal_factors) { check_all_qr(KN_F32); }
TENSOR_TEST_F64(orthogonal_factors_in_float64) { check_all_qr(KN_F64); }

/* A column of zeros, two alike, and one that is in order: their reflections are none, or of rounding errors. */
TENSOR_TEST_F64(orthogonal_factors_of_low_rank)
{
    kn_tensor *a = normal(KN_F64, KN_SHAPE(170, 170)), *r;
    CHECK_TENSOR(kn_fill_(kn_select(a, 1, 50), 0.0));
    CHECK_OK(kn_copy_(kn_select(a, 1, 90), kn_select(a, 1, 3)));
    CHECK_TENSOR(kn_fill_(kn_slice(kn_select(a, 1, 0), 0, 1, 170, 1), 0.0));
    check_qr(a, KN_QR_REDUCED);
    CHECK_TENSOR(kn_linalg_qr(a, KN_QR_R, &r));
    kn_tensor *of_q, *q = kn_linalg_qr(a, KN_QR_REDUCED, &of_q);
    CHECK_TENSOR(q);
    check_near(r, of_q, 0);
}

/* --- systems ------------------------------------------------------------------------------------------------------ */

TENSOR_TEST(solutions)
{
    kn_tensor *a = normal(KN_F32, KN_SHAPE(2, 180, 180));
    for (int64_t columns = 1; columns <= 100; columns += 33) {
        KN_SCOPE;
        kn_tensor *x = normal(KN_F32, KN_SHAPE(2, 180, columns)), *b = kn_matmul(a, x);
        check_near(kn_matmul(a, kn_linalg_solve(a, b)), b, 3000);
    }
    check_near(kn_matmul(a, kn_linalg_inv(a)), kn_eye(180, 180, .dtype = KN_F32), 30000);
}

/* A diagonal that dominates, and other elements on the other side that must not matter. */
TENSOR_TEST(triangular_systems)
{
    kn_tensor *a =
        kn_add(kn_mul_scalar(normal(KN_F32, KN_SHAPE(2, 200, 200)), 0.02), kn_eye(200, 200, .dtype = KN_F32));
    for (int kind = 0; kind < 4; kind++) {
        KN_SCOPE;
        const bool upper = kind & 1, unit = kind & 2;
        kn_tensor *part = upper ? kn_triu(a, unit) : kn_tril(a, unit ? -1 : 0);
        kn_tensor *triangle = unit ? kn_add(part, kn_eye(200, 200, .dtype = KN_F32)) : part;
        kn_tensor *x = normal(KN_F32, KN_SHAPE(2, 200, 70)), *b = kn_matmul(triangle, x);
        check_near(kn_linalg_solve_triangular(a, b, upper, true, unit), x, 3000);
        check_near(kn_linalg_solve_triangular(a, kn_transpose(b, 1, 2), upper, false, unit),
                   kn_linalg_solve_triangular(kn_clone(a), kn_clone(kn_transpose(b, 1, 2)), upper, false, unit), 1);
    }
}

TENSOR_TEST(singular_matrices)
{
    kn_tensor *a = kn_mul_scalar(normal(KN_F32, KN_SHAPE(2, 170, 170)), 0.08), *pivots, *info;
    CHECK_TENSOR(kn_fill_(kn_select(kn_select(a, 0, 1), 1, 100), 0.0)); /* a column */
    kn_tensor *lu = kn_linalg_lu_factor_ex(a, &pivots, &info);
    CHECK_TENSOR(lu);
    CHECK_VALUES(info, 0, 101);
    CHECK_VALUES(kn_select(kn_linalg_det(a), 0, 1), 0);
    CHECK_TENSOR(kn_linalg_lu_factor(a, &pivots));
    assert_int_equal(kn_synchronize(NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "linalg_lu_factor: matrix 1 of the batch is singular: pivot 101 is 0");
}

int main(int argc, char **argv)
{
    obey_as_gpu(argc, argv);
    const struct CMUnitTest tests[] = {
        TEST(factors),
        TEST(factors_in_float64),
        TEST(symmetric_factors),
        TEST(symmetric_factors_in_float64),
        TEST(matrices_that_are_not_positive_definite),
        TEST(orthogonal_factors),
        TEST(orthogonal_factors_in_float64),
        TEST(orthogonal_factors_of_low_rank),
        TEST(solutions),
        TEST(triangular_systems),
        TEST(singular_matrices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
