/* test_op_errors.c - mismatches are errors that name the operation and both shapes, before any kernel runs. */
#include "support/check.h"

static kn_tensor *ones(int ndim, const int64_t *shape) { return kn_ones_with(ndim, shape, NULL); }

TENSOR_TEST(test_elementwise)
{
    assert_null(kn_add(ones(KN_SHAPE(2, 3)), ones(KN_SHAPE(2, 4))));
    CHECK_ERROR(KN_ERR_SHAPE, "add", "[2, 3]", "[2, 4]");
    assert_null(kn_eq(ones(KN_SHAPE(2)), ones(KN_SHAPE(3))));
    CHECK_ERROR(KN_ERR_SHAPE, "eq", "[2]", "[3]");
    assert_null(kn_mul_(ones(KN_SHAPE(3)), ones(KN_SHAPE(2, 3)))); /* would widen the target */
    CHECK_ERROR(KN_ERR_SHAPE, "mul_", "[3]", "[2, 3]");
    assert_null(
        kn_add_(kn_ones(KN_SHAPE(2), .dtype = KN_I64), ones(KN_SHAPE(2)))); /* float32 does not fit into int64 */
    CHECK_ERROR(KN_ERR_DTYPE, "add_", "int64", "float32");
    assert_null(kn_clamp(ones(KN_SHAPE(2)), .min = NAN));
    CHECK_ERROR(KN_ERR_ARGUMENT, "clamp", "NaN");
    assert_null(kn_clamp(kn_ones(KN_SHAPE(2), .dtype = KN_U8), .max = -1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "clamp: max (-1) is less than every uint8");
    assert_null(kn_clamp(kn_ones(KN_SHAPE(2), .dtype = KN_I8), .min = 200));
    CHECK_ERROR(KN_ERR_ARGUMENT, "clamp: min (200) is greater than every int8");
    CHECK_DTYPE(kn_clamp(kn_ones(KN_SHAPE(2), .dtype = KN_I8), .min = -300, .max = 300), KN_I8);
    CHECK_DTYPE(kn_clamp(kn_ones(KN_SHAPE(2), .dtype = KN_I8), .min = 200, .max = 300.5), KN_F32);
    assert_null(kn_tanhshrink(kn_ones(KN_SHAPE(2), .dtype = KN_BOOL)));
    CHECK_ERROR(KN_ERR_DTYPE, "tanhshrink", "bool");
    assert_null(kn_argmax(kn_ones(KN_SHAPE(2), .dtype = KN_BOOL), 0, false));
    CHECK_ERROR(KN_ERR_DTYPE, "argmax: not defined for bool tensors");
    assert_false(kn_requires_grad(kn_floor_divide(kn_ones(KN_SHAPE(2), .requires_grad = true), ones(KN_SHAPE(2)))));
    assert_null(kn_relu6(kn_ones(KN_SHAPE(2), .dtype = KN_BOOL)));
    CHECK_ERROR(KN_ERR_DTYPE, "relu6", "bool");
    assert_null(kn_hardtanh(ones(KN_SHAPE(2)), 1, -1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "hardtanh", "1", "-1");
    assert_null(kn_relu6(NULL));
    kn_error_clear();
}

TENSOR_TEST(test_activations)
{
    kn_tensor *x = ones(KN_SHAPE(2, 3)), *whole = kn_ones(KN_SHAPE(2), .dtype = KN_I64);
    assert_null(kn_elu(whole));
    CHECK_ERROR(KN_ERR_DTYPE, "elu: not defined for int64 tensors");
    assert_null(kn_hardshrink(whole));
    CHECK_ERROR(KN_ERR_DTYPE, "hardshrink: not defined for int64 tensors");
    assert_null(kn_celu(x, .alpha = 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "celu: alpha must not be 0");
    assert_null(kn_softshrink(x, .lambd = -0.5));
    CHECK_ERROR(KN_ERR_ARGUMENT, "softshrink: lambd must be at least 0, not -0.5");
    assert_null(kn_rrelu(x, .lower = 1, .upper = 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "rrelu: lower (1) must not be greater than upper (0)");
    assert_null(kn_prelu(x, ones(KN_SHAPE(2))));
    CHECK_ERROR(KN_ERR_SHAPE, "prelu: weight is", "[2]", "1 element or one for each of the 3 channels", "[2, 3]");
    assert_null(kn_glu(x, 1));
    CHECK_ERROR(KN_ERR_SHAPE, "glu: dimension 1 of", "[2, 3]", "even");
    assert_null(kn_glu(x, 2));
    CHECK_ERROR(KN_ERR_ARGUMENT, "glu: dimension 2 is out of range");
    assert_null(kn_dropout1d(ones(KN_SHAPE(4))));
    CHECK_ERROR(KN_ERR_SHAPE, "dropout1d: expected [N, C, L] or [C, L]", "[4]");
    assert_null(kn_dropout3d(ones(KN_SHAPE(2, 3, 4))));
    CHECK_ERROR(KN_ERR_SHAPE, "dropout3d: expected [N, C, D, H, W] or [C, D, H, W]", "[2, 3, 4]");
    assert_null(kn_feature_alpha_dropout(ones(KN_SHAPE(4)), .training = true));
    CHECK_ERROR(KN_ERR_SHAPE, "feature_alpha_dropout: expected [N, C, ...]", "[4]");
    assert_null(kn_alpha_dropout(x, .p = 2));
    CHECK_ERROR(KN_ERR_ARGUMENT, "alpha_dropout: p must be from 0 to 1, not 2");
}

TENSOR_TEST(test_whole_numbers_and_logic)
{
    kn_tensor *x = ones(KN_SHAPE(2)), *whole = kn_ones(KN_SHAPE(2), .dtype = KN_I64),
              *truth = kn_ones(KN_SHAPE(2), .dtype = KN_BOOL);
    bool result = true;
    assert_null(kn_bitwise_and(whole, x));
    CHECK_ERROR(KN_ERR_DTYPE, "bitwise_and: not defined for float32 tensors");
    assert_null(kn_bitwise_left_shift(truth, truth));
    CHECK_ERROR(KN_ERR_DTYPE, "bitwise_left_shift: not defined for bool tensors");
    assert_null(kn_floor_divide(truth, truth));
    CHECK_ERROR(KN_ERR_DTYPE, "floor_divide: not defined for bool tensors");
    assert_null(kn_div_(whole, whole));
    CHECK_ERROR(KN_ERR_DTYPE, "div_: a result of dtype float32 cannot be stored in place in a int64 tensor");
    assert_null(kn_round(whole, .decimals = 2));
    CHECK_ERROR(KN_ERR_DTYPE, "round: decimals must be 0, not 2, for int64 tensors");
    assert_null(kn_heaviside(x, whole));
    CHECK_ERROR(KN_ERR_DTYPE, "heaviside: the tensors are float32 and int64");
    assert_null(kn_polygamma(-1, x));
    CHECK_ERROR(KN_ERR_ARGUMENT, "polygamma: n must be an integer from 0 on, not -1");
    assert_null(kn_positive(truth));
    CHECK_ERROR(KN_ERR_DTYPE, "positive: not defined for bool tensors");
    assert_null(kn_isclose(x, x, .rtol = -1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "isclose: rtol must be at least 0, not -1");
    assert_int_equal(kn_allclose(x, ones(KN_SHAPE(3)), &result), KN_ERR_SHAPE);
    CHECK_ERROR(KN_ERR_SHAPE, "isclose", "[2]", "[3]");
    assert_int_equal(kn_equal(x, NULL, &result), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "equal", "`b` is NULL");
    assert_int_equal(kn_equal(x, x, NULL), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "equal", "`result` is NULL");
}

TENSOR_TEST(equal_and_close_tensors)
{
    kn_tensor *x = kn_from_data(((float[]){1, 2}), KN_SHAPE(2)),
              *y = kn_from_data(((float[]){1, 2.000001f}), KN_SHAPE(2));
    bool result = false;
    CHECK_OK(kn_equal(x, kn_clone(x), &result));
    assert_true(result);
    CHECK_OK(kn_equal(x, y, &result));
    assert_false(result);
    CHECK_OK(kn_allclose(x, y, &result));
    assert_true(result);
    CHECK_OK(kn_allclose(x, y, &result, .rtol = 0, .atol = 1e-9));
    assert_false(result);
    CHECK_OK(kn_equal(x, ones(KN_SHAPE(2, 1)), &result)); /* another shape */
    assert_false(result);
    CHECK_OK(kn_equal(ones(KN_SHAPE(0)), ones(KN_SHAPE(0)), &result));
    assert_true(result);
    CHECK_VALUES(kn_div_mode(kn_full(KN_SHAPE(1), -7, .dtype = KN_I64), kn_zeros(KN_SHAPE(1), .dtype = KN_I64),
                             KN_ROUNDING_FLOOR),
                 0);
    CHECK_VALUES(kn_remainder(kn_full(KN_SHAPE(1), -7, .dtype = KN_I32), kn_zeros(KN_SHAPE(1), .dtype = KN_I32)), 0);
    assert_ptr_equal(kn_positive(x), x);
}

TENSOR_TEST(test_matmul)
{
    assert_null(kn_matmul(ones(KN_SHAPE(2, 3)), ones(KN_SHAPE(4, 5))));
    CHECK_ERROR(KN_ERR_SHAPE, "matmul", "[2, 3]", "[4, 5]");
    assert_null(kn_matmul(ones(KN_SHAPE(3)), ones(KN_SHAPE(4))));
    CHECK_ERROR(KN_ERR_SHAPE, "matmul", "[3]", "[4]");
    assert_null(kn_matmul(ones(KN_SHAPE(2, 3, 4)), ones(KN_SHAPE(3, 4, 5))));
    CHECK_ERROR(KN_ERR_SHAPE, "matmul", "[2, 3, 4]", "[3, 4, 5]");
    assert_null(kn_matmul(kn_full(KN_SCALAR, 1), ones(KN_SHAPE(2))));
    CHECK_ERROR(KN_ERR_SHAPE, "matmul");
    assert_null(kn_matmul(ones(KN_SHAPE(2, 2)), kn_ones(KN_SHAPE(2, 2), .dtype = KN_F16)));
    CHECK_ERROR(KN_ERR_DTYPE, "matmul", "float32", "float16");
    assert_null(kn_matmul(kn_ones(KN_SHAPE(2, 2), .dtype = KN_BOOL), kn_ones(KN_SHAPE(2, 2), .dtype = KN_BOOL)));
    CHECK_ERROR(KN_ERR_DTYPE, "matmul", "bool");
    assert_null(kn_linear(ones(KN_SHAPE(2, 3)), ones(KN_SHAPE(5, 4)), NULL));
    CHECK_ERROR(KN_ERR_SHAPE, "linear", "[2, 3]", "[5, 4]");
    assert_null(kn_linear(ones(KN_SHAPE(2, 4)), ones(KN_SHAPE(5, 4)), ones(KN_SHAPE(4))));
    CHECK_ERROR(KN_ERR_SHAPE, "linear", "[4]");
}

TENSOR_TEST(test_products)
{
    kn_tensor *matrix = ones(KN_SHAPE(2, 3)), *vector = ones(KN_SHAPE(3)), *batch = ones(KN_SHAPE(4, 2, 3));
    assert_null(kn_mm(batch, matrix));
    CHECK_ERROR(KN_ERR_SHAPE, "mm", "a must be a matrix", "[4, 2, 3]");
    assert_null(kn_bmm(batch, ones(KN_SHAPE(5, 3, 2))));
    CHECK_ERROR(KN_ERR_SHAPE, "bmm", "batch size", "4", "5");
    assert_null(kn_dot(vector, matrix));
    CHECK_ERROR(KN_ERR_SHAPE, "dot", "b must be a vector", "[2, 3]");
    assert_null(kn_inner(matrix, ones(KN_SHAPE(2, 4))));
    CHECK_ERROR(KN_ERR_SHAPE, "inner", "[2, 3]", "[2, 4]");
    assert_null(kn_addmm(ones(KN_SHAPE(3, 3)), matrix, ones(KN_SHAPE(3, 4))));
    CHECK_ERROR(KN_ERR_SHAPE, "addmm", "input", "[3, 3]");
    assert_null(kn_addbmm(matrix, batch, matrix));
    CHECK_ERROR(KN_ERR_SHAPE, "addbmm", "b must be a batch of matrices", "[2, 3]");
    assert_null(kn_matrix_power(matrix, 2));
    CHECK_ERROR(KN_ERR_SHAPE, "matrix_power", "square", "[2, 3]");
    assert_null(kn_linalg_multi_dot(KN_TENSORS(matrix, matrix)));
    CHECK_ERROR(KN_ERR_SHAPE, "multi_dot", "2 rows", "3 columns");
    assert_null(kn_chain_matmul(KN_TENSORS(vector, matrix)));
    CHECK_ERROR(KN_ERR_SHAPE, "chain_matmul", "a matrix", "[3]");
    assert_null(kn_tensordot_last(matrix, matrix, 1));
    CHECK_ERROR(KN_ERR_SHAPE, "tensordot", "size 3", "2");
    assert_null(kn_tensordot(matrix, matrix, (const int[]){0, 0}, (const int[]){0, 1}, 2));
    CHECK_ERROR(KN_ERR_ARGUMENT, "tensordot", "dimension 0", "twice");
}

TENSOR_TEST(test_einsum)
{
    kn_tensor *matrix = ones(KN_SHAPE(2, 3));
    assert_null(kn_einsum("ij,jk->ik", KN_TENSORS(matrix)));
    CHECK_ERROR(KN_ERR_ARGUMENT, "einsum", "1 operands", "more");
    assert_null(kn_einsum("ij->ik", KN_TENSORS(matrix)));
    CHECK_ERROR(KN_ERR_ARGUMENT, "einsum", "'k'", "no operand");
    assert_null(kn_einsum("ij->ii", KN_TENSORS(matrix)));
    CHECK_ERROR(KN_ERR_ARGUMENT, "einsum", "'i'", "twice");
    assert_null(kn_einsum("i->i", KN_TENSORS(matrix)));
    CHECK_ERROR(KN_ERR_SHAPE, "einsum", "operand 0", "2 dimensions", "1");
    assert_null(kn_einsum("ij,ij->i", KN_TENSORS(matrix, ones(KN_SHAPE(2, 4)))));
    CHECK_ERROR(KN_ERR_SHAPE, "einsum", "size 4", "3");
    assert_null(kn_einsum("ii->i", KN_TENSORS(matrix)));
    CHECK_ERROR(KN_ERR_SHAPE, "einsum", "2", "3");
    assert_null(kn_einsum("i*->i", KN_TENSORS(matrix)));
    CHECK_ERROR(KN_ERR_ARGUMENT, "einsum", "'*'");
}

TENSOR_TEST(test_attention)
{
    kn_tensor *q = ones(KN_SHAPE(2, 4, 5, 3)), *k = ones(KN_SHAPE(2, 4, 6, 3)), *few = ones(KN_SHAPE(2, 3, 6, 3));
    assert_null(kn_scaled_dot_product_attention(ones(KN_SHAPE(3)), k, k));
    CHECK_ERROR(KN_ERR_SHAPE, "scaled_dot_product_attention", "query", "[3]");
    assert_null(kn_scaled_dot_product_attention(q, k, kn_ones(KN_SHAPE(2, 4, 6, 3), .dtype = KN_F16)));
    CHECK_ERROR(KN_ERR_DTYPE, "value", "float16", "float32");
    assert_null(kn_scaled_dot_product_attention(q, ones(KN_SHAPE(2, 4, 6, 2)), k));
    CHECK_ERROR(KN_ERR_SHAPE, "last dimensions", "[2, 4, 5, 3]", "[2, 4, 6, 2]");
    assert_null(kn_scaled_dot_product_attention(q, k, q));
    CHECK_ERROR(KN_ERR_SHAPE, "the same length", "[2, 4, 6, 3]", "[2, 4, 5, 3]");
    assert_null(kn_scaled_dot_product_attention(q, few, few));
    CHECK_ERROR(KN_ERR_SHAPE, "broadcast", "[2, 3, 6, 3]", "enable_gqa");
    assert_null(kn_scaled_dot_product_attention(q, few, few, .enable_gqa = true));
    CHECK_ERROR(KN_ERR_SHAPE, "multiple", "[2, 3, 6, 3]");
    assert_null(kn_scaled_dot_product_attention(q, k, k, .attn_mask = ones(KN_SHAPE(5, 6)), .is_causal = true));
    CHECK_ERROR(KN_ERR_ARGUMENT, "attn_mask", "is_causal");
    assert_null(kn_scaled_dot_product_attention(q, k, k, .attn_mask = ones(KN_SHAPE(5, 5))));
    CHECK_ERROR(KN_ERR_SHAPE, "attn_mask", "[5, 5]", "6 keys");
    assert_null(kn_scaled_dot_product_attention(q, k, k, .attn_mask = kn_ones(KN_SHAPE(5, 6), .dtype = KN_I64)));
    CHECK_ERROR(KN_ERR_DTYPE, "attn_mask", "int64");
    assert_null(kn_scaled_dot_product_attention(q, k, k, .dropout_p = 1.5));
    CHECK_ERROR(KN_ERR_ARGUMENT, "dropout_p", "1.5");
}

TENSOR_TEST(test_conv2d)
{
    kn_tensor *x = ones(KN_SHAPE(1, 3, 8, 8)), *w = ones(KN_SHAPE(4, 3, 3, 3));
    assert_null(kn_conv2d(ones(KN_SHAPE(1, 2, 8, 8)), w, NULL));
    CHECK_ERROR(KN_ERR_SHAPE, "conv2d", "[1, 2, 8, 8]", "[4, 3, 3, 3]");
    assert_null(kn_conv2d(ones(KN_SHAPE(8, 8)), w, NULL));
    CHECK_ERROR(KN_ERR_SHAPE, "conv2d", "[8, 8]");
    assert_null(kn_conv2d(ones(KN_SHAPE(1, 3, 2, 8)), w, NULL)); /* the image is smaller than the kernel */
    CHECK_ERROR(KN_ERR_SHAPE, "conv2d", "[1, 3, 2, 8]");
    assert_null(kn_conv2d(x, w, ones(KN_SHAPE(3))));
    CHECK_ERROR(KN_ERR_SHAPE, "conv2d", "[3]");
    assert_null(kn_conv2d(x, w, NULL, .groups = 2));
    CHECK_ERROR(KN_ERR_SHAPE, "conv2d", "group", "[4, 3, 3, 3]", "[1, 3, 8, 8]");
    assert_null(kn_conv2d(x, w, NULL, .stride = -1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "conv2d", "stride");
    assert_null(kn_conv2d(x, w, NULL, .dilation = 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "conv2d", "dilation");
    assert_null(kn_conv2d(x, w, NULL, .stride = 2, .padding = KN_PADDING_SAME));
    CHECK_ERROR(KN_ERR_ARGUMENT, "conv2d", "stride");
    assert_null(kn_conv2d(x, kn_ones(KN_SHAPE(4, 3, 3, 3), .dtype = KN_F16), NULL));
    CHECK_ERROR(KN_ERR_DTYPE, "conv2d", "float32", "float16");
    assert_null(kn_conv2d(kn_ones(KN_SHAPE(1, 3, 8, 8), .dtype = KN_I64), w, NULL));
    CHECK_ERROR(KN_ERR_DTYPE, "conv2d", "int64");
    assert_null(kn_conv2d(NULL, w, NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "conv2d");
}

TENSOR_TEST(test_convolutions)
{
    kn_tensor *signal = ones(KN_SHAPE(1, 3, 8)), *w1 = ones(KN_SHAPE(3, 4, 3));
    kn_tensor *volume = ones(KN_SHAPE(1, 3, 4, 5, 6)), *w3 = ones(KN_SHAPE(4, 3, 2, 2, 2));
    assert_null(kn_conv1d(volume, w1, NULL));
    CHECK_ERROR(KN_ERR_SHAPE, "conv1d", "[N, C, L]", "[1, 3, 4, 5, 6]");
    assert_null(kn_conv3d(volume, w1, NULL));
    CHECK_ERROR(KN_ERR_SHAPE, "conv3d", "[K, C / groups, Q, R, S]", "[3, 4, 3]");
    assert_null(kn_conv3d(volume, w3, NULL, .dilations = {4, 1, 1}));
    CHECK_ERROR(KN_ERR_SHAPE, "conv3d", "depth", "5", "4");
    assert_null(kn_conv1d(signal, ones(KN_SHAPE(4, 3, 9)), NULL));
    CHECK_ERROR(KN_ERR_SHAPE, "conv1d", "length", "9", "8");
    assert_null(kn_conv3d(volume, w3, NULL, .strides = {2}));
    CHECK_ERROR(KN_ERR_ARGUMENT, "conv3d", "stride", "0", "height");
    assert_null(kn_conv3d(volume, w3, NULL, .padding = -3));
    CHECK_ERROR(KN_ERR_ARGUMENT, "conv3d", "padding", "-3");
    assert_null(kn_conv3d(volume, w3, NULL, .paddings_after = {0, -1, 0}));
    CHECK_ERROR(KN_ERR_ARGUMENT, "conv3d", "KN_PADDING_SAME", "both sides", "height");
    assert_null(kn_conv3d(volume, w3, NULL, .output_padding = 1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "conv3d", "output_padding", "transposed");
    assert_null(kn_conv_transpose1d(signal, w1, NULL, .output_padding = 1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "conv_transpose1d", "output_padding", "smaller", "stride 1");
    assert_null(kn_conv_transpose1d(signal, w1, NULL, .padding = KN_PADDING_SAME));
    CHECK_ERROR(KN_ERR_ARGUMENT, "conv_transpose1d", "KN_PADDING_SAME");
    assert_null(kn_conv_transpose1d(signal, w1, NULL, .padding = 6));
    CHECK_ERROR(KN_ERR_SHAPE, "conv_transpose1d", "-2", "(8 - 1) * stride 1", "padding 12");
    assert_null(kn_conv_transpose1d(signal, ones(KN_SHAPE(4, 3, 3)), NULL));
    CHECK_ERROR(KN_ERR_SHAPE, "conv_transpose1d", "4 input channels", "3");
    assert_null(kn_conv_transpose1d(signal, w1, ones(KN_SHAPE(3))));
    CHECK_ERROR(KN_ERR_SHAPE, "conv_transpose1d", "bias", "[4]", "[3]");
    assert_null(kn_conv_transpose1d(ones(KN_SHAPE(1, 3, 0)), w1, NULL));
    CHECK_ERROR(KN_ERR_SHAPE, "conv_transpose1d", "[1, 3, 0]");
    assert_null(kn_conv_transpose1d(signal, w1, NULL, .groups = 2));
    CHECK_ERROR(KN_ERR_SHAPE, "conv_transpose1d", "groups", "3");
}

TENSOR_TEST(test_pools)
{
    kn_tensor *signal = ones(KN_SHAPE(1, 2, 5)), *volume = ones(KN_SHAPE(1, 2, 4, 5, 6)), *indices = signal;
    assert_null(kn_max_pool1d(volume, .kernel_size = 2));
    CHECK_ERROR(KN_ERR_SHAPE, "max_pool1d", "[N, C, L]", "[1, 2, 4, 5, 6]");
    assert_null(kn_avg_pool3d(volume, .kernel_size = 5));
    CHECK_ERROR(KN_ERR_SHAPE, "avg_pool3d", "depth 5", "depth 4");
    assert_null(kn_max_pool1d(signal, .kernel_size = 2, .paddings_after = {2}));
    CHECK_ERROR(KN_ERR_ARGUMENT, "max_pool1d", "padding 0 and 2", "length");
    assert_null(kn_avg_pool1d(signal, .kernel_size = 2, .dilation = 2));
    CHECK_ERROR(KN_ERR_ARGUMENT, "avg_pool1d", "dilation");
    assert_null(kn_max_pool1d_with_indices(signal, &indices, .kernel_size = 2, .activation = KN_ACTIVATION_RELU));
    CHECK_ERROR(KN_ERR_ARGUMENT, "max_pool1d_with_indices", "activation");
    assert_null(indices);
    assert_null(kn_adaptive_max_pool3d(volume, 1, 0, 1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "adaptive_max_pool3d", "[1, 0, 1]");
    assert_null(kn_adaptive_avg_pool1d(NULL, 1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "adaptive_avg_pool1d");
}

TENSOR_TEST(test_pool2d)
{
    kn_tensor *x = ones(KN_SHAPE(1, 2, 5, 5));
    assert_null(kn_max_pool2d(x, .kernel_size = 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "max_pool2d", "kernel");
    assert_null(kn_max_pool2d(x, .kernel_size = 6));
    CHECK_ERROR(KN_ERR_SHAPE, "max_pool2d", "height 6", "height 5");
    assert_null(kn_max_pool2d(x, .kernel_size = 2, .padding = 2)); /* padding is at most half the kernel */
    CHECK_ERROR(KN_ERR_ARGUMENT, "max_pool2d", "padding");
    assert_null(kn_avg_pool2d(x, .kernel_size = 3, .padding = 2));
    CHECK_ERROR(KN_ERR_ARGUMENT, "avg_pool2d", "padding");
    assert_null(kn_max_pool2d(ones(KN_SHAPE(5)), .kernel_size = 2));
    CHECK_ERROR(KN_ERR_SHAPE, "max_pool2d", "[5]");
    assert_null(kn_adaptive_max_pool2d(x, -2, 1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "adaptive_max_pool2d", "-2");
    assert_null(kn_adaptive_avg_pool2d(ones(KN_SHAPE(1, 2, 0, 5)), 1, 1));
    CHECK_ERROR(KN_ERR_SHAPE, "adaptive_avg_pool2d", "empty");
}

TENSOR_TEST(test_reductions)
{
    kn_tensor *x = ones(KN_SHAPE(2, 3));
    assert_null(kn_sum_dims(x, (const int[]){2}, 1, false));
    CHECK_ERROR(KN_ERR_ARGUMENT, "sum", "dimension 2", "2 dimensions");
    assert_null(kn_sum_dims(x, (const int[]){0, -2}, 2, false)); /* one dimension twice */
    assert_int_equal(kn_error_status(), KN_ERR_ARGUMENT);
    kn_error_clear();
    assert_null(kn_argmax(x, -3, false));
    CHECK_ERROR(KN_ERR_ARGUMENT, "argmax", "-3");
    assert_null(kn_softmax(x, 2));
    CHECK_ERROR(KN_ERR_ARGUMENT, "softmax", "2");
    assert_null(kn_index_select(x, 0, kn_zeros(KN_SHAPE(2, 2), .dtype = KN_I64)));
    CHECK_ERROR(KN_ERR_SHAPE, "index_select", "[2, 2]");
    assert_null(kn_index_select(x, 0, ones(KN_SHAPE(2))));
    CHECK_ERROR(KN_ERR_DTYPE, "index_select", "float32");
}

TENSOR_TEST(test_losses)
{
    kn_tensor *logits = ones(KN_SHAPE(4, 3)), *classes = kn_zeros(KN_SHAPE(4), .dtype = KN_I64);
    assert_null(kn_cross_entropy(logits, kn_zeros(KN_SHAPE(5), .dtype = KN_I64)));
    CHECK_ERROR(KN_ERR_SHAPE, "cross_entropy", "[4, 3]", "[5]");
    assert_null(kn_cross_entropy(logits, ones(KN_SHAPE(4, 4))));
    CHECK_ERROR(KN_ERR_SHAPE, "cross_entropy", "[4, 3]", "[4, 4]");
    assert_null(kn_cross_entropy(logits, classes, .weight = ones(KN_SHAPE(4))));
    CHECK_ERROR(KN_ERR_SHAPE, "cross_entropy", "weight", "[4]");
    assert_null(kn_cross_entropy(logits, classes, .label_smoothing = 1.5));
    CHECK_ERROR(KN_ERR_ARGUMENT, "cross_entropy", "1.5");
    assert_null(kn_nll_loss(logits, ones(KN_SHAPE(4, 3))));
    assert_int_not_equal(kn_error_status(), KN_OK);
    kn_error_clear();
    assert_null(kn_mse_loss(logits, ones(KN_SHAPE(5)), KN_REDUCTION_MEAN));
    CHECK_ERROR(KN_ERR_SHAPE, "[4, 3]", "[5]");
    assert_null(kn_binary_cross_entropy_with_logits(logits, ones(KN_SHAPE(4, 2)), NULL, NULL, KN_REDUCTION_MEAN));
    CHECK_ERROR(KN_ERR_SHAPE, "[4, 3]", "[4, 2]");
}

/* A class out of range is detected on the device and reported at the next read; nothing is accessed out of bounds. */
TENSOR_TEST(test_class_out_of_range)
{
    const int64_t values[] = {0, 7, 2};
    kn_tensor *classes = kn_from_data(values, KN_SHAPE(3), .dtype = KN_I64);
    kn_tensor *logits = kn_ones(KN_SHAPE(3, 3), .requires_grad = true);
    kn_tensor *loss = kn_cross_entropy(logits, classes);
    CHECK_TENSOR(loss);
    double value;
    assert_int_not_equal(kn_item(loss, &value), KN_OK);
    CHECK_ERROR(KN_ERR_ARGUMENT, "cross_entropy", "7", "3");
    const int64_t negative[] = {0, -1, 2};
    CHECK_TENSOR(kn_nll_loss(logits, kn_from_data(negative, KN_SHAPE(3), .dtype = KN_I64)));
    assert_int_not_equal(kn_synchronize(kn_device_current()), KN_OK);
    CHECK_ERROR(KN_ERR_ARGUMENT, "nll_loss", "-1");
    /* -100 is the ignored class. */
    const int64_t ignored[] = {0, -100, 2};
    CHECK_OK(kn_item(kn_cross_entropy(logits, kn_from_data(ignored, KN_SHAPE(3), .dtype = KN_I64)), &value));
}

int main(void)
{
    /* clang-format off */
    const struct CMUnitTest tests[] = {
        TEST(test_elementwise),
        TEST(test_activations),
        TEST(test_whole_numbers_and_logic),
        TEST(equal_and_close_tensors),
        TEST(test_matmul),
        TEST(test_conv2d),
        TEST(test_convolutions),
        TEST(test_pools),
        TEST(test_pool2d),
        TEST(test_reductions),
        TEST(test_losses),
        TEST(test_class_out_of_range),
        TEST(test_products),
        TEST(test_einsum),
        TEST(test_attention),
    };
    /* clang-format on */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
