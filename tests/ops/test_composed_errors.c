/* test_composed_errors.c - operators that others compose refuse what they cannot take, naming it, its value and what is
 * allowed. */
#include "support/check.h"

#define F(...) kn_ones(KN_SHAPE(__VA_ARGS__))
#define WHOLE_ONES(...) kn_ones(KN_SHAPE(__VA_ARGS__), .dtype = KN_I64)
#define SHAPE_ERROR(call, ...)                                                                                         \
    do {                                                                                                               \
        assert_null(call);                                                                                             \
        CHECK_ERROR(KN_ERR_SHAPE, __VA_ARGS__);                                                                        \
    } while (0)
#define ARGUMENT_ERROR(call, ...)                                                                                      \
    do {                                                                                                               \
        assert_null(call);                                                                                             \
        CHECK_ERROR(KN_ERR_ARGUMENT, __VA_ARGS__);                                                                     \
    } while (0)
#define DTYPE_ERROR(call, ...)                                                                                         \
    do {                                                                                                               \
        assert_null(call);                                                                                             \
        CHECK_ERROR(KN_ERR_DTYPE, __VA_ARGS__);                                                                        \
    } while (0)

TENSOR_TEST(pairs_of_rows)
{
    SHAPE_ERROR(kn_cdist(F(2, 3), F(2, 4), 2), "cdist: ", "[2, 3]", "[2, 4]", "rows of one length");
    SHAPE_ERROR(kn_cdist(F(3), F(2, 3), 2), "cdist: x1 and x2 must be matrices", "[3]");
    SHAPE_ERROR(kn_cdist(F(2, 3, 4), F(3, 3, 4), 2), "cdist: the batches of x1,", "[2, 3, 4]", "do not broadcast");
    ARGUMENT_ERROR(kn_cdist(F(2, 3), F(2, 3), -1), "cdist: p must be at least 0, not -1");
    DTYPE_ERROR(kn_cdist(WHOLE_ONES(2, 3), WHOLE_ONES(2, 3), 2), "cdist: ", "int64");
    SHAPE_ERROR(kn_pdist(F(2, 3, 4), 2), "pdist: x must be a matrix, not", "[2, 3, 4]");
    ARGUMENT_ERROR(kn_pdist(F(2, 3), -0.5), "pdist: p must be at least 0, not -0.5");
    SHAPE_ERROR(kn_cov(F(2, 3, 4)), "cov: x must have at most 2 dimensions, not be ", "[2, 3, 4]");
    SHAPE_ERROR(kn_cov(F(2, 3), .fweights = WHOLE_ONES(2)), "cov: fweights must have one element for each of the 3",
                "[2]");
    SHAPE_ERROR(kn_cov(F(2, 3), .aweights = F(4)), "cov: aweights must have one element for each of the 3", "[4]");
    DTYPE_ERROR(kn_cov(F(2, 3), .fweights = F(3)), "cov: ", "fweights", "float32");
    SHAPE_ERROR(kn_corrcoef(F(2, 3, 4)), "corrcoef: ", "at most 2 dimensions", "[2, 3, 4]");
    DTYPE_ERROR(kn_corrcoef(WHOLE_ONES(2, 3)), "corrcoef: ", "int64");
}

TENSOR_TEST(matrices)
{
    SHAPE_ERROR(kn_linalg_matrix_exp(F(2, 3)), "linalg_matrix_exp: a must be batches of square matrices, not",
                "[2, 3]");
    DTYPE_ERROR(kn_linalg_matrix_exp(WHOLE_ONES(2, 2)), "linalg_matrix_exp: ", "int64");
    SHAPE_ERROR(kn_cholesky_inverse(F(3), false), "cholesky_inverse: factor must be", "[3]");
    SHAPE_ERROR(kn_cholesky_inverse(F(2, 3), false), "cholesky_inverse: factor must be", "square", "[2, 3]");
    ARGUMENT_ERROR(kn_linalg_norm(F(2, 3), KN_NORM_ORD, 3, NULL, 0, false), "linalg_norm: ord of a matrix must be 1,",
                   "not 3");
    SHAPE_ERROR(kn_linalg_norm(F(2, 3, 4), KN_NORM_ORD, 1, NULL, 0, false),
                "linalg_norm: without dims x must be a vector or a matrix, not", "[2, 3, 4]");
    ARGUMENT_ERROR(kn_linalg_norm(F(2, 3, 4), KN_NORM_FRO, 0, (int[]){0, 1, 2}, 3, false),
                   "linalg_norm: dims must be 1 dimension of vectors, or 2 of matrices, not 3");
    ARGUMENT_ERROR(kn_linalg_norm(F(2, 3), KN_NORM_NUC, 0, (int[]){1}, 1, false),
                   "linalg_norm: the norm nuc is one of matrices: it takes 2 dims, not 1");
    ARGUMENT_ERROR(kn_linalg_norm(F(2, 3), KN_NORM_FRO, 0, (int[]){1, -1}, 2, false),
                   "linalg_norm: dims must be two different dimensions, not 1 twice");
    SHAPE_ERROR(kn_linalg_cond(F(3), KN_MATRIX_NORM_2), "linalg_cond: a must have at least 2 dimensions", "[3]");
    SHAPE_ERROR(kn_linalg_cond(F(2, 3), KN_MATRIX_NORM_1), "square", "[2, 3]");
    SHAPE_ERROR(kn_linalg_householder_product(F(2, 3), F(2)), "linalg_householder_product: a must be [..., m, n]",
                "[2, 3]");
    SHAPE_ERROR(kn_linalg_householder_product(F(3, 2), F(3)), "linalg_householder_product: ", "k <= n", "[3]");
    ARGUMENT_ERROR(kn_linalg_tensorinv(F(2, 2), 2), "linalg_tensorinv: ind must be from 1 to 1, not 2");
    SHAPE_ERROR(kn_linalg_tensorinv(F(2, 3), 1), "linalg_tensorinv: ", "2 and 3", "equal");
    SHAPE_ERROR(kn_linalg_tensorsolve(F(2, 3), F(2)), "linalg_tensorsolve: a must have b's shape", "[2, 3]", "[2]");
}

TENSOR_TEST(factors)
{
    kn_tensor *l, *u, *pivots = kn_ones(KN_SHAPE(2), .dtype = KN_I32), *far = kn_full(KN_SHAPE(2), 7, .dtype = KN_I32);
    DTYPE_ERROR(kn_lu_unpack(F(2, 2), WHOLE_ONES(2), &l, &u), "lu_unpack: pivots is int64; it must be int32");
    SHAPE_ERROR(kn_lu_unpack(F(3, 3), pivots, &l, &u), "lu_unpack: lu must be factors", "[3, 3]", "[2]");
    SHAPE_ERROR(kn_linalg_lu_solve(F(2, 3), pivots, F(2, 1), true, false),
                "linalg_lu_solve: lu must be factors of square matrices, not", "[2, 3]");
    SHAPE_ERROR(kn_linalg_lu_solve(F(2, 2), pivots, F(3, 1), true, false),
                "linalg_lu_solve: b must be matrices with 2 rows", "[3, 1]");
    SHAPE_ERROR(kn_linalg_lu_solve(F(2, 2), pivots, F(2, 3), false, false),
                "linalg_lu_solve: b must be matrices with 2 columns", "[2, 3]");
    CHECK_TENSOR(kn_lu_unpack(F(2, 2), far, &l, &u));
    assert_int_equal(kn_synchronize(NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "lu_unpack", "7");
    CHECK_TENSOR(kn_linalg_lu_solve(F(2, 2), far, F(2, 1), true, false));
    assert_int_equal(kn_synchronize(NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "lu", "7");
}

TENSOR_TEST(views_replaced)
{
    SHAPE_ERROR(kn_select_scatter(F(3, 4), F(3), 0, 1), "select_scatter: source is", "[3]", "[4]");
    ARGUMENT_ERROR(kn_select_scatter(F(3, 4), F(4), 0, 3), "index 3", "3");
    ARGUMENT_ERROR(kn_select_scatter(F(3, 4), F(4), 2, 0), "dimension 2 is out of range");
    SHAPE_ERROR(kn_slice_scatter(F(5, 4), F(3, 4), 0, 1, 5, 2), "slice_scatter: source is", "[3, 4]", "[2, 4]");
    ARGUMENT_ERROR(kn_slice_scatter(F(5), F(5), 0, 0, 5, 0), "slice_scatter: step must be", "not 0");
    SHAPE_ERROR(kn_diagonal_scatter(F(3, 4), F(4)), "diagonal_scatter: source is", "[4]", "[3]");
    ARGUMENT_ERROR(kn_diagonal_scatter(F(3), F(3)), "diagonal_scatter: ", "dimension 1 is out of range");
    SHAPE_ERROR(kn_as_strided_scatter(F(3, 4), F(2), 2, (int64_t[]){2, 2}, (int64_t[]){1, 1}, 0),
                "as_strided_scatter: source is", "[2]", "[2, 2]");
    ARGUMENT_ERROR(kn_stochastic_depth(F(3, 4), 1.5, KN_STOCHASTIC_DEPTH_ROW),
                   "stochastic_depth: p must be from 0 to 1, not 1.5");
    DTYPE_ERROR(kn_stochastic_depth(WHOLE_ONES(3), 0.5, KN_STOCHASTIC_DEPTH_ROW), "stochastic_depth: ", "int64");
}

TENSOR_TEST(vectors_and_samples)
{
    SHAPE_ERROR(kn_gradient(F(3, 1)), "gradient: dimension 1 of x, ", "at least 2 elements for an edge_order of 1");
    SHAPE_ERROR(kn_gradient(F(2), .edge_order = 2), "gradient: dimension 0 of x", "at least 3 elements");
    ARGUMENT_ERROR(kn_gradient(F(4), .edge_order = 3), "gradient: edge_order must be from 1 to 2, not 3");
    SHAPE_ERROR(kn_gradient(F(4), .places = F(3)), "gradient: places must have one element for each of the 4", "[3]");
    ARGUMENT_ERROR(kn_gradient(F(4), .dim = 1), "gradient: dimension 1 is out of range");
    SHAPE_ERROR(kn_combinations(F(2, 2)), "combinations: x must have 1 dimension, not be ", "[2, 2]");
    ARGUMENT_ERROR(kn_combinations(F(2), .r = -1), "combinations: r must be", "not -1");
    ARGUMENT_ERROR(kn_combinations(F(1000), .r = 500), "combinations: there are too many combinations of r = 500");
    SHAPE_ERROR(kn_vander(kn_ones_with(0, NULL, NULL)), "vander: x has no dimensions");
    ARGUMENT_ERROR(kn_vander(F(3), .n = -2), "vander: n must be", "not -2");
    ARGUMENT_ERROR(kn_mvlgamma(F(3), 0), "mvlgamma: p must be", "not 0");
    DTYPE_ERROR(kn_mvlgamma(kn_ones(KN_SHAPE(2), .dtype = KN_BOOL), 1), "mvlgamma: ", "bool");
    DTYPE_ERROR(kn_igamma(WHOLE_ONES(2), WHOLE_ONES(2)), "igamma: ", "int64");
    SHAPE_ERROR(kn_sum_to_size(F(2, 3), KN_SHAPE(2)), "sum_to_size: [2] does not expand to x, ", "[2, 3]");
    SHAPE_ERROR(kn_fill_diagonal_(F(2, 3, 3), 0, false), "fill_diagonal_: x must be a matrix", "[2, 3, 3]");
    ARGUMENT_ERROR(kn_nonzero_static(F(3), -1, 0), "nonzero_static: size must be at least 0, not -1");
    ARGUMENT_ERROR(kn_histogram(F(3), NULL, .bins = 0), "histogram: bins must be at least 1, not 0");
    ARGUMENT_ERROR(kn_histogram(F(3), NULL, .min = 2, .max = 1), "histogram: min and max are 2 and 1");
    SHAPE_ERROR(kn_histogram(F(3), NULL, .edges = F(1)), "histogram: edges must be a vector of 2 or more float32, not");
    SHAPE_ERROR(kn_histogram(F(3), NULL, .weight = F(2)), "histogram: weight must be as x", "[3]", "[2]");
    ARGUMENT_ERROR(kn_histogram(kn_full(KN_SHAPE(2), INFINITY), NULL), "histogram: x ranges from inf to inf");
    kn_tensor *parts[2];
    assert_int_equal(kn_unravel_index(F(3), KN_SHAPE(2, 3), parts), KN_ERR_DTYPE);
    CHECK_ERROR(KN_ERR_DTYPE, "unravel_index: indices is float32; it must be of integers");
    assert_int_equal(kn_unravel_index(WHOLE_ONES(3), KN_SHAPE(2, 0), parts), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "unravel_index: size 1 of shape must be at least 1, not 0");
}

TENSOR_TEST(sequences)
{
    SHAPE_ERROR(kn_conv_tbc(F(5, 2), F(3, 2, 4), NULL, 0), "conv_tbc: x must be [time, batch, channels], not",
                "[5, 2]");
    SHAPE_ERROR(kn_conv_tbc(F(5, 2, 3), F(3, 2, 4), NULL, 0), "conv_tbc: weight must be [kernel size, 3, out channels]",
                "[3, 2, 4]");
    SHAPE_ERROR(kn_conv_tbc(F(5, 2, 3), F(3, 3, 4), F(3), 0), "conv_tbc: ", "bias", "[3]", "4");
    ARGUMENT_ERROR(kn_conv_tbc(F(5, 2, 3), F(3, 3, 4), NULL, -1), "conv_tbc: pad must be", "not -1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(pairs_of_rows),       TEST(matrices), TEST(factors), TEST(views_replaced),
                                       TEST(vectors_and_samples), TEST(sequences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
