/* test_layers.c - layers without parameters equal their functions bit for bit. */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

#include "support/values.h"

/* Compares the module applied to x with `expected`; frees the module. */
static void check_layer(kn_module *layer, kn_tensor *x, kn_tensor *expected)
{
    CHECK_TENSOR(layer);
    kn_tensor *y = kn_forward(layer, x);
    CHECK_TENSOR(y);
    CHECK_TENSOR(expected);
    size_t size = 0, expected_size = 0;
    void *bytes = read_bytes(y, &size), *expected_bytes = read_bytes(expected, &expected_size);
    assert_int_equal(kn_ndim(y), kn_ndim(expected));
    for (int d = 0; d < kn_ndim(y); d++)
        assert_int_equal(kn_size(y, d), kn_size(expected, d));
    assert_int_equal(size, expected_size);
    assert_memory_equal(bytes, expected_bytes, size);
    free(bytes);
    free(expected_bytes);
    kn_module_free(layer);
}

TENSOR_TEST(pooling_layers_are_their_functions)
{
    kn_tensor *x = kn_randn(KN_SHAPE(2, 3, 7, 9));
    check_layer(kn_nn_max_pool2d(.kernel_size = 3, .padding = 1), x, kn_max_pool2d(x, .kernel_size = 3, .padding = 1));
    check_layer(kn_nn_avg_pool2d(.kernel_size = 3, .stride = 2, .padding = 1), x,
                kn_avg_pool2d(x, .kernel_size = 3, .stride = 2, .padding = 1));
    check_layer(kn_nn_adaptive_max_pool2d(2, 3), x, kn_adaptive_max_pool2d(x, 2, 3));
    check_layer(kn_nn_adaptive_avg_pool2d(2, 3), x, kn_adaptive_avg_pool2d(x, 2, 3));
    kn_tensor *signal = kn_randn(KN_SHAPE(2, 3, 11)), *volume = kn_randn(KN_SHAPE(2, 3, 5, 6, 7));
    check_layer(kn_nn_max_pool1d(.kernel_size = 3, .padding = 1), signal,
                kn_max_pool1d(signal, .kernel_size = 3, .padding = 1));
    check_layer(kn_nn_avg_pool1d(.kernel_size = 3, .paddings_after = {1}), signal,
                kn_avg_pool1d(signal, .kernel_size = 3, .paddings_after = {1}));
    check_layer(kn_nn_adaptive_max_pool1d(4), signal, kn_adaptive_max_pool1d(signal, 4));
    check_layer(kn_nn_adaptive_avg_pool1d(4), signal, kn_adaptive_avg_pool1d(signal, 4));
    check_layer(kn_nn_max_pool3d(.kernel_sizes = {2, 3, 1}, .stride = 2), volume,
                kn_max_pool3d(volume, .kernel_sizes = {2, 3, 1}, .stride = 2));
    check_layer(kn_nn_avg_pool3d(.kernel_size = 2, .ceil_mode = true), volume,
                kn_avg_pool3d(volume, .kernel_size = 2, .ceil_mode = true));
    check_layer(kn_nn_adaptive_max_pool3d(2, 3, 4), volume, kn_adaptive_max_pool3d(volume, 2, 3, 4));
    check_layer(kn_nn_adaptive_avg_pool3d(2, 3, 4), volume, kn_adaptive_avg_pool3d(volume, 2, 3, 4));
    check_layer(kn_nn_flatten(), x, kn_reshape(x, KN_SHAPE(2, 189)));
    check_layer(kn_nn_flatten(.start_dim = 0, .end_dim = -2), x, kn_reshape(x, KN_SHAPE(42, 9)));
    check_layer(kn_nn_unflatten(-1, KN_SHAPE(3, -1)), x, kn_reshape(x, KN_SHAPE(2, 3, 7, 3, 3)));
    check_layer(kn_nn_identity(), x, x);
}

/* For a module with the parameters weight and bias. */
#define CHECK_CONVOLUTION(layer, function, x, ...)                                                                     \
    {                                                                                                                  \
        kn_module *module = layer;                                                                                     \
        kn_parameter_list p = kn_module_parameters(module);                                                            \
        assert_int_equal(p.count, 2);                                                                                  \
        check_layer(module, x, function(x, p.tensors[0], p.tensors[1], __VA_ARGS__));                                  \
    }

TENSOR_TEST(convolutions_are_their_functions)
{
    kn_tensor *signal = kn_randn(KN_SHAPE(2, 4, 11)), *image = kn_randn(KN_SHAPE(2, 4, 7, 8)),
              *volume = kn_randn(KN_SHAPE(2, 4, 3, 4, 5));
    CHECK_CONVOLUTION(kn_nn_conv1d(.in_channels = 4, .out_channels = 6, .kernel_size = 3, .groups = 2), kn_conv1d,
                      signal, .groups = 2)
    CHECK_CONVOLUTION(kn_nn_conv2d(.in_channels = 4, .out_channels = 6, .kernel_sizes = {3, 2}, .padding = 1,
                                   .paddings_after = {0, 2}),
                      kn_conv2d, image, .padding = 1, .paddings_after = {0, 2})
    CHECK_CONVOLUTION(
        kn_nn_conv3d(.in_channels = 4, .out_channels = 6, .kernel_size = 2, .strides = {1, 2, 1}, .dilation = 2),
        kn_conv3d, volume, .strides = {1, 2, 1}, .dilation = 2)
    CHECK_CONVOLUTION(kn_nn_conv_transpose1d(.in_channels = 4, .out_channels = 6, .kernel_size = 3, .groups = 2),
                      kn_conv_transpose1d, signal, .groups = 2)
    CHECK_CONVOLUTION(kn_nn_conv_transpose2d(.in_channels = 4, .out_channels = 6, .kernel_size = 3, .stride = 2,
                                             .output_paddings = {1, 0}),
                      kn_conv_transpose2d, image, .stride = 2, .output_paddings = {1, 0})
    CHECK_CONVOLUTION(kn_nn_conv_transpose3d(.in_channels = 4, .out_channels = 6, .kernel_size = 2, .padding = 1),
                      kn_conv_transpose3d, volume, .padding = 1)
}

TENSOR_TEST(activation_layers_are_their_functions)
{
    kn_tensor *x = kn_mul_scalar(kn_randn(KN_SHAPE(5, 11)), 4);
    check_layer(kn_nn_relu(), x, kn_relu(x));
    check_layer(kn_nn_relu6(), x, kn_relu6(x));
    check_layer(kn_nn_hardtanh(-1, 2), x, kn_hardtanh(x, -1, 2));
    check_layer(kn_nn_sigmoid(), x, kn_sigmoid(x));
    check_layer(kn_nn_tanh(), x, kn_tanh(x));
    check_layer(kn_nn_softmax(0), x, kn_softmax(x, 0));
    check_layer(kn_nn_log_softmax(1), x, kn_log_softmax(x, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pooling_layers_are_their_functions),
        TEST(convolutions_are_their_functions),
        TEST(activation_layers_are_their_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
