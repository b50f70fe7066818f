/* test_linalg.c - linear algebra: matrices without a factorisation, of low rank, full matrices, refused shapes. */
#include "support/check.h"

#include <math.h>

static kn_tensor *matrices(const double *values, int64_t count)
{
    return kn_from_data(values, KN_SHAPE(count, 2, 2), .dtype = KN_F64);
}
#define MATRICES(count, ...) matrices((const double[]){__VA_ARGS__}, count)

static double largest(kn_tensor *x)
{
    double value = -1;
    CHECK_OK(kn_item(kn_max(kn_abs(x)), &value));
    return value;
}

static void check_fault(kn_tensor *result, const char *message)
{
    CHECK_TENSOR(result);
    assert_int_equal(kn_synchronize(NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, message);
}

TENSOR_TEST_F64(matrices_without_a_factorisation)
{
    kn_tensor *a = MATRICES(2, 2, 1, 1, 2, 1, 2, 2, 1), *info, *pivots, *b = kn_ones(KN_SHAPE(2, 1), .dtype = KN_F64);
    kn_tensor *s = MATRICES(3, 1, 0, 0, 1, 1, 2, 2, 4, 0, 0, 0, 0);
    check_fault(kn_linalg_cholesky(a, false), "linalg_cholesky: matrix 1 of the batch is not positive definite: its "
                                              "leading minor of order 2 is not positive");
    CHECK_TENSOR(kn_linalg_cholesky_ex(a, true, &info));
    CHECK_VALUES(info, 0, 2);
    check_fault(kn_linalg_solve(kn_select(s, 0, 1), b),
                "linalg_solve: matrix 0 of the batch is singular: pivot 2 is 0");
    check_fault(kn_linalg_lu_factor(kn_narrow(s, 0, 2, 1), &pivots), "linalg_lu_factor: matrix 0 of the batch is "
                                                                     "singular: pivot 1 is 0");
    CHECK_TENSOR(kn_linalg_inv_ex(s, &info));
    CHECK_VALUES(info, 0, 2, 1);
    CHECK_VALUES(kn_linalg_det(s), 1, 0, 0);
}

TENSOR_TEST_F64(the_factors_of_nan_are_nan)
{
    kn_tensor *r, *q = kn_linalg_qr(MATRICES(1, 1, 2, NAN, 0), KN_QR_REDUCED, &r);
    CHECK_VALUES(q, NAN, NAN, NAN, NAN);
    CHECK_VALUES(r, NAN, NAN, 0, NAN);
    CHECK_VALUES(kn_linalg_eigvalsh(MATRICES(2, 2, NAN, NAN, 1, 2, 0, 0, 1), false), NAN, NAN, 1, 2);
    CHECK_VALUES(kn_linalg_svdvals(MATRICES(2, 2, NAN, 0, 1, 2, 0, 0, 1)), NAN, NAN, 2, 1);
}

TENSOR_TEST_F64(matrices_of_low_rank)
{
    kn_tensor *a = MATRICES(3, 1, 0, 0, 1, 1, 2, 2, 4, 0, 0, 0, 0), *p = kn_linalg_pinv(a);
    CHECK_VALUES(kn_linalg_matrix_rank(a), 2, 1, 0);
    CHECK_VALUES(kn_linalg_matrix_rank(kn_transpose(kn_narrow(a, 1, 0, 1), 1, 2)), 1, 1, 0);
    CHECK_VALUES(kn_linalg_matrix_rank(kn_narrow(a, 1, 0, 0)), 0, 0, 0);
    CHECK_SHAPE(kn_linalg_matrix_rank(kn_narrow(a, 0, 0, 0)), 0);
    check_fault(kn_linalg_matrix_rank(MATRICES(2, 1, 0, 0, 1, 1, NAN, 2, 4)),
                "linalg_matrix_rank: matrix 1 of the batch has an element that is infinite or NaN");
    assert_true(largest(kn_sub(kn_matmul(kn_matmul(a, p), a), a)) < 1e-14);
    assert_true(largest(kn_sub(kn_matmul(kn_matmul(p, a), p), p)) < 1e-14);
}

static void check_orthogonal(kn_tensor *columns, double precision)
{
    kn_tensor *squares = kn_matmul(kn_t(columns), columns),
              *one = kn_ones(KN_SHAPE(kn_size(squares, 0)), .dtype = KN_F64);
    if (kn_numel(squares) > 0)
        assert_true(largest(kn_sub(squares, kn_diag(one, 0))) < precision);
}

/* u and vh are orthogonal, and u s vh is a, also where vectors belong to no singular value. */
static void check_svd(kn_tensor *a, double precision)
{
    kn_tensor *s, *vh, *u = kn_linalg_svd(a, true, &s, &vh);
    const int64_t m = kn_size(a, 0), n = kn_size(a, 1), k = kn_size(s, 0);
    CHECK_SHAPE(u, m, m);
    CHECK_SHAPE(vh, n, n);
    check_orthogonal(u, precision);
    check_orthogonal(kn_t(vh), precision);
    if (k == 0)
        return;
    kn_tensor *product = kn_matmul(kn_mul(kn_narrow(u, 1, 0, k), s), kn_narrow(vh, 0, 0, k));
    const double scale = fmax(largest(a), 1e-300);
    assert_true(largest(kn_sub(product, a)) <= precision * scale);
    assert_true(largest(kn_sub(kn_linalg_svdvals(a), s)) <= precision * scale * (double)k);
    assert_true(k == 1 || !(largest(kn_relu(kn_sub(kn_narrow(s, 0, 1, k - 1), kn_narrow(s, 0, 0, k - 1)))) > 0));
}

TENSOR_TEST_F64(full_matrices_are_orthogonal)
{
    kn_tensor *column = kn_randn(KN_SHAPE(5, 1), .dtype = KN_F64), *row = kn_randn(KN_SHAPE(1, 3), .dtype = KN_F64);
    check_svd(kn_randn(KN_SHAPE(5, 3), .dtype = KN_F64), 1e-14);
    check_svd(kn_randn(KN_SHAPE(2, 6), .dtype = KN_F64), 1e-14);
    check_svd(kn_matmul(column, row), 1e-14); /* rank 1 */
    check_svd(kn_zeros(KN_SHAPE(3, 4), .dtype = KN_F64), 1e-14);
    check_svd(kn_zeros(KN_SHAPE(3, 0), .dtype = KN_F64), 1e-14); /* nothing to span: any basis */
    check_svd(kn_zeros(KN_SHAPE(0, 2), .dtype = KN_F64), 1e-14);
}

/* On CPU devices those of 8 rows and columns on are made bidiagonal. */
TENSOR_TEST_F64(singular_values_of_large_matrices)
{
    static const int64_t sizes[][2] = {{8, 8}, {16, 16}, {17, 17}, {65, 65}, {33, 9}, {9, 33}, {130, 17}, {17, 130}};
    kn_tensor *r, *holes = kn_randn(KN_SHAPE(19, 24), .dtype = KN_F64), *s, *vh;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        kn_tensor *a = kn_randn(KN_SHAPE(sizes[i][0], sizes[i][1]), .dtype = KN_F64);
        const int64_t inner = 1 + sizes[i][1] / 4;
        check_svd(a, 1e-13);
        check_svd(kn_mul_scalar(a, 1e200), 1e-13);
        check_svd(kn_mul_scalar(a, 1e-200), 1e-13);
        check_svd(kn_linalg_qr(a, KN_QR_COMPLETE, &r), 1e-13); /* equal values */
        check_svd(kn_matmul(kn_narrow(a, 1, 0, inner), kn_randn(KN_SHAPE(inner, sizes[i][1]), .dtype = KN_F64)), 1e-12);
        check_svd(kn_zeros(KN_SHAPE(sizes[i][0], sizes[i][1]), .dtype = KN_F64), 1e-14);
    }
    CHECK_OK(kn_status_of(kn_fill_(kn_narrow(holes, 1, 7, 5), 0)));
    check_svd(holes, 1e-13);
    check_svd(kn_mul(holes, kn_exp(kn_arange(0, -72, -3, .dtype = KN_F64))), 1e-13); /* graded, both ways */
    check_svd(kn_mul(holes, kn_exp(kn_arange(-72, 0, 3, .dtype = KN_F64))), 1e-13);
    check_svd(kn_diag(kn_arange(20, -20, -1, .dtype = KN_F64), 0), 1e-13);
    kn_tensor *u = kn_linalg_svd(kn_div(holes, kn_zeros(KN_SHAPE(1), .dtype = KN_F64)), true, &s, &vh);
    CHECK_VALUES(
        kn_sum(kn_to_dtype(kn_isfinite(kn_cat(KN_TENSORS(kn_flatten(u, 0, -1), s, kn_flatten(vh, 0, -1)), 0)), KN_F64)),
        0);
}

/* v is orthogonal, and v w v^T is a, which is not zero. */
static void check_eigh(kn_tensor *a)
{
    kn_tensor *v, *w = kn_linalg_eigh(a, false, &v), *ones = kn_ones(KN_SHAPE(kn_size(a, 0)), .dtype = KN_F64);
    kn_tensor *product = kn_matmul(kn_mul(v, w), kn_t(v));
    assert_true(largest(kn_sub(kn_matmul(kn_t(v), v), kn_diag(ones, 0))) < 1e-13);
    assert_true(largest(kn_sub(product, a)) < 1e-13 * largest(a));
    assert_true(largest(kn_sub(kn_linalg_eigvalsh(a, false), w)) < 1e-13 * largest(w));
}

TENSOR_TEST_F64(symmetric_matrices_of_any_scale)
{
    kn_tensor *x = kn_randn(KN_SHAPE(37, 37), .dtype = KN_F64), *a = kn_add(x, kn_t(x));
    kn_tensor *graded = kn_exp(kn_arange(-600, 600, 64, .dtype = KN_F64));
    check_eigh(a);
    check_eigh(kn_mul_scalar(a, 1e300));
    check_eigh(kn_mul_scalar(a, 1e-300));
    check_eigh(kn_ones(KN_SHAPE(18, 18), .dtype = KN_F64)); /* rank 1 */
    check_eigh(kn_diag(graded, 0));
    for (int64_t n = 1; n <= 65; n += n < 20 ? 1 : 15) {
        kn_tensor *y = kn_randn(KN_SHAPE(n, n), .dtype = KN_F64), *r, *q = kn_linalg_qr(y, KN_QR_COMPLETE, &r);
        check_eigh(kn_add(y, kn_t(y)));
        check_eigh(kn_matmul(kn_narrow(q, 1, 0, (n + 1) / 2), kn_t(kn_narrow(q, 1, 0, (n + 1) / 2)))); /* 0 and 1 */
    }
    CHECK_VALUES(kn_linalg_eigvalsh(kn_zeros(KN_SHAPE(3, 3), .dtype = KN_F64), false), 0, 0, 0);
}

/* Of values alone: the sums of their squares are those of the elements. */
TENSOR_TEST_F64(values_without_vectors_have_gradients)
{
    for (int64_t n = 3; n <= 12; n += 9) {
        kn_tensor *a = kn_randn(KN_SHAPE(n + 2, n), .dtype = KN_F64), *x = kn_randn(KN_SHAPE(n, n), .dtype = KN_F64);
        kn_tensor *symmetric = kn_detach(kn_add(x, kn_t(x)));
        CHECK_OK(kn_set_requires_grad(a, true));
        CHECK_OK(kn_set_requires_grad(symmetric, true));
        CHECK_OK(kn_backward(kn_sum(kn_square(kn_linalg_svdvals(a)))));
        CHECK_OK(kn_backward(kn_sum(kn_square(kn_linalg_eigvalsh(symmetric, false)))));
        kn_tensor *error_a = kn_sub(kn_grad(a), kn_mul_scalar(kn_detach(a), 2));
        kn_tensor *error = kn_sub(kn_grad(symmetric), kn_mul_scalar(kn_detach(symmetric), 2));
        assert_true(largest(error_a) < 1e-13 * largest(kn_detach(a)));
        assert_true(largest(error) < 1e-13 * largest(kn_detach(symmetric)));
    }
}

/* More reflections than are applied at once: of a square and a tall matrix. */
TENSOR_TEST_F64(products_of_many_reflections)
{
    for (int64_t m = 130; m <= 150; m += 20) {
        const int64_t k = 130;
        kn_tensor *a = kn_randn(KN_SHAPE(m, k), .dtype = KN_F64), *q = kn_eye(m, k, .dtype = KN_F64);
        kn_tensor *v = kn_add(kn_tril(a, -1), q), *tau = kn_reciprocal(kn_sum_dims(kn_square(v), (int[]){0}, 1, false));
        tau = kn_mul_scalar(tau, 2);
        for (int64_t i = k - 1; i >= 0; i--) {
            kn_tensor *column = kn_narrow(v, 1, i, 1);
            q = kn_sub(q, kn_matmul(kn_mul(column, kn_narrow(tau, 0, i, 1)), kn_matmul(kn_t(column), q)));
        }
        kn_tensor *product = kn_linalg_householder_product(a, tau);
        assert_true(largest(kn_sub(product, q)) < 1e-13);
        check_orthogonal(product, 1e-13);
    }
}

/* exp (0 t; -t 0) = (cos t, sin t; -sin t, cos t): polynomials of each degree, then squares. */
TENSOR_TEST(exponentials_of_matrices_of_any_norm)
{
    static const double angles[] = {0, 1e-9, 1e-4, 0.04, 0.07, 0.5, 0.9, 2, 3, 30};
    for (int type = 0; type < 2; type++)
        for (size_t i = 0; i < sizeof angles / sizeof *angles; i++) {
            const double t = angles[i];
            kn_tensor *a = kn_to_dtype(MATRICES(1, 0, t, -t, 0), type == 0 ? KN_F32 : KN_F64);
            kn_tensor *y = kn_to_dtype(kn_linalg_matrix_exp(a), KN_F64);
            kn_tensor *right = MATRICES(1, cos(t), sin(t), -sin(t), cos(t));
            assert_true(largest(kn_sub(y, right)) <= (1 + t) * (type == 0 ? 5e-7 : 1e-15));
        }
}

TENSOR_TEST_F64(norms_and_products)
{
    kn_tensor *a = kn_from_data(((double[]){1, -2, 3, 4, 0, -6}), KN_SHAPE(2, 3), .dtype = KN_F64);
    CHECK_VALUES(kn_linalg_matrix_norm(a, KN_MATRIX_NORM_1, false), 9);
    CHECK_VALUES(kn_linalg_matrix_norm(a, KN_MATRIX_NORM_MINUS_1, false), 2);
    CHECK_VALUES(kn_linalg_matrix_norm(a, KN_MATRIX_NORM_INF, false), 10);
    CHECK_VALUES(kn_linalg_matrix_norm(a, KN_MATRIX_NORM_MINUS_INF, false), 6);
    CHECK_VALUES(kn_trace(a), 1);
    CHECK_VALUES(kn_linalg_cross(kn_select(a, 0, 0), kn_select(a, 0, 1), -1), 12, 18, 8);
}

TENSOR_TEST(what_is_no_matrix_is_refused)
{
    kn_tensor *a = kn_ones(KN_SHAPE(2, 3)), *vector = kn_ones(KN_SHAPE(3)), *r;
    assert_null(kn_linalg_cholesky(a, false));
    CHECK_ERROR(KN_ERR_SHAPE, "linalg_cholesky: a must be batches of square matrices, not");
    assert_null(kn_linalg_qr(vector, KN_QR_REDUCED, &r));
    CHECK_ERROR(KN_ERR_SHAPE, "linalg_qr: a must have at least 2 dimensions");
    assert_null(kn_linalg_solve(kn_ones(KN_SHAPE(3, 3)), a));
    CHECK_ERROR(KN_ERR_SHAPE, "linalg_solve: a, ", "differ in the number of rows");
    assert_null(kn_linalg_solve(kn_ones(KN_SHAPE(2, 2, 2)), kn_ones(KN_SHAPE(3, 2, 1))));
    CHECK_ERROR(KN_ERR_SHAPE, "linalg_solve: the batches of", "do not broadcast");
    assert_null(kn_linalg_cross(a, kn_t(a), 0));
    CHECK_ERROR(KN_ERR_SHAPE, "linalg_cross: dimension 0 of a must have 3 elements");
}

/* PyTorch's numbers. */
TENSOR_TEST(the_gradient_of_a_determinant_is_its_cofactors)
{
    kn_tensor *a = kn_from_data(((float[]){1, 2, 3, 2, 4, 6, 1, 0, 1,   /* of rank 2 */
                                           1, 2, 3, 2, 4, 6, 3, 6, 9,   /* of rank 1 */
                                           0, 0, 0, 0, 0, 0, 0, 0, 0,   /* 0 */
                                           0, 1, 0, 0, 0, 0, 0, 0, 1}), /* two pivots are 0 */
                                KN_SHAPE(4, 3, 3), .requires_grad = true);
    CHECK_OK(kn_backward(kn_sum(kn_linalg_det(a))));
    kn_tensor *near = kn_round(kn_mul_scalar(kn_grad(a), 1e4)); /* within 1e-4 */
    CHECK_VALUES(kn_mul_scalar(near, 1e-4), 4, 4, -4, -2, -2, 2, 0, 0, 0, /**/ 0, 0, 0, 0, 0, 0, 0, 0, 0, /**/ 0, 0, 0,
                 0, 0, 0, 0, 0, 0, /**/ 0, 0, 0, -1, 0, 0, 0, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_gradient_of_a_determinant_is_its_cofactors),
        TEST(matrices_without_a_factorisation),
        TEST(the_factors_of_nan_are_nan),
        TEST(matrices_of_low_rank),
        TEST(full_matrices_are_orthogonal),
        TEST(singular_values_of_large_matrices),
        TEST(symmetric_matrices_of_any_scale),
        TEST(values_without_vectors_have_gradients),
        TEST(products_of_many_reflections),
        TEST(exponentials_of_matrices_of_any_norm),
        TEST(norms_and_products),
        TEST(what_is_no_matrix_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
