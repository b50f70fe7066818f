/* test_layers.c - layers equal their functions bit for bit; activations: modes, text, bad arguments. */
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
    kn_tensor *x = kn_mul_scalar(kn_randn(KN_SHAPE(5, 12)), 4), *image = kn_randn(KN_SHAPE(2, 3, 4, 5));
    check_layer(kn_nn_relu(), x, kn_relu(x));
    check_layer(kn_nn_relu6(), x, kn_relu6(x));
    check_layer(kn_nn_hardtanh(-1, 2), x, kn_hardtanh(x, -1, 2));
    check_layer(kn_nn_sigmoid(), x, kn_sigmoid(x));
    check_layer(kn_nn_tanh(), x, kn_tanh(x));
    check_layer(kn_nn_mish(), x, kn_mish(x));
    check_layer(kn_nn_selu(), x, kn_selu(x));
    check_layer(kn_nn_elu(.alpha = 2), x, kn_elu(x, .alpha = 2));
    check_layer(kn_nn_celu(.alpha = 2), x, kn_celu(x, .alpha = 2));
    check_layer(kn_nn_leaky_relu(.negative_slope = 0.2), x, kn_leaky_relu(x, .negative_slope = 0.2));
    check_layer(kn_nn_softplus(.beta = 2), x, kn_softplus(x, .beta = 2));
    check_layer(kn_nn_hardshrink(.lambd = 1), x, kn_hardshrink(x, .lambd = 1));
    check_layer(kn_nn_softshrink(), x, kn_softshrink(x));
    check_layer(kn_nn_gelu(.approximate = KN_GELU_TANH), x, kn_gelu(x, .approximate = KN_GELU_TANH));
    check_layer(kn_nn_threshold(0.5, 7), x, kn_threshold(x, 0.5, 7));
    check_layer(kn_nn_glu(-1), x, kn_glu(x, -1));
    check_layer(kn_nn_softmax(0), x, kn_softmax(x, 0));
    check_layer(kn_nn_softmin(0), x, kn_softmin(x, 0));
    check_layer(kn_nn_log_softmax(1), x, kn_log_softmax(x, 1));
    check_layer(kn_nn_softmax2d(), image, kn_softmax(image, 1));
}

TENSOR_TEST(prelu_learns_its_slopes)
{
    kn_module *layer = kn_nn_prelu(.num_parameters = 2, .init = 0.5);
    kn_tensor *x = kn_from_data(((float[]){-1, 2, -3, -4}), KN_SHAPE(2, 2)), *y = kn_forward(layer, x);
    CHECK_VALUES(y, -0.5, 2, -1.5, -2);
    CHECK_OK(kn_backward(kn_sum(y)));
    const kn_parameter_list parameters = kn_module_parameters(layer);
    assert_int_equal(parameters.count, 1);
    assert_string_equal(parameters.names[0], "weight");
    CHECK_VALUES(kn_grad(parameters.tensors[0]), -4, -4);
    kn_module_free(layer);
    assert_null(kn_nn_prelu(.num_parameters = 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "PReLU", "num_parameters must be at least 1", "0");
}

/* In evaluation mode layers with random numbers have none. */
TENSOR_TEST(random_layers_obey_the_mode)
{
    kn_tensor *x = kn_full(KN_SHAPE(4, 50, 20), -1), *image = kn_reshape(x, KN_SHAPE(4, 50, 2, 2, 5));
    kn_module *rrelu = kn_nn_rrelu(.lower = 0.25, .upper = 0.5);
    kn_tensor *y = kn_forward(rrelu, x);
    double least = 0, most = 0;
    CHECK_OK(kn_item(kn_min(y), &least));
    CHECK_OK(kn_item(kn_max(y), &most));
    assert_true(least >= -0.5 && most <= -0.25 && most - least > 0.1);
    kn_module_train(rrelu, false);
    check_layer(rrelu, x, kn_mul_scalar(x, 0.375));
    kn_module *const layers[] = {kn_nn_dropout1d(), kn_nn_dropout3d(), kn_nn_alpha_dropout(),
                                 kn_nn_feature_alpha_dropout()};
    for (size_t i = 0; i < 4; i++) {
        kn_tensor *in = i == 1 ? image : x, *out = kn_forward(layers[i], in), *kept = kn_ne(out, in);
        int64_t changed = 0;
        CHECK_OK(kn_item_i64(kn_sum(kept), &changed));
        assert_true(changed > 0);
        kn_module_train(layers[i], false);
        check_layer(layers[i], in, in);
    }
}

/* Of alpha dropout's results mean and variance are those of its input. */
TENSOR_TEST(alpha_dropout_keeps_mean_and_variance)
{
    kn_tensor *x = kn_randn(KN_SHAPE(100000)), *y = kn_alpha_dropout(x, .p = 0.3, .training = true);
    double mean = 0, deviation = 0;
    CHECK_OK(kn_item(kn_mean(y), &mean));
    CHECK_OK(kn_item(kn_std(y), &deviation));
    assert_true(mean > -0.02 && mean < 0.02 && deviation > 0.98 && deviation < 1.02);
}

static void check_text(kn_module *layer, const char *expected)
{
    char *text = kn_module_summary(layer);
    CHECK_TENSOR(text);
    if (strncmp(text, expected, strlen(expected)) != 0)
        fail_msg("expected \"%s\", not \"%s\"", expected, text);
    kn_free(text);
    kn_module_free(layer);
}

TENSOR_TEST(activations_print_as_in_pytorch)
{
    check_text(kn_nn_elu(), "ELU(alpha=1.0)");
    check_text(kn_nn_celu(.alpha = 0.1), "CELU(alpha=0.1)");
    check_text(kn_nn_selu(), "SELU()");
    check_text(kn_nn_leaky_relu(), "LeakyReLU(negative_slope=0.01)");
    check_text(kn_nn_softplus(.threshold = 1e20), "Softplus(beta=1.0, threshold=1e+20)");
    check_text(kn_nn_hardshrink(), "Hardshrink(0.5)");
    check_text(kn_nn_softshrink(.lambd = 100), "Softshrink(100.0)");
    check_text(kn_nn_gelu(), "GELU(approximate='none')");
    check_text(kn_nn_mish(), "Mish()");
    check_text(kn_nn_threshold(0.1, -2.5), "Threshold(threshold=0.1, value=-2.5)");
    check_text(kn_nn_rrelu(), "RReLU(lower=0.125, upper=0.3333333333333333)");
    check_text(kn_nn_prelu(.num_parameters = 5), "PReLU(num_parameters=5)");
    check_text(kn_nn_glu(-1), "GLU(dim=-1)");
    check_text(kn_nn_softmin(1), "Softmin(dim=1)");
    check_text(kn_nn_softmax2d(), "Softmax2d()");
    check_text(kn_nn_dropout1d(), "Dropout1d(p=0.5, inplace=False)");
    check_text(kn_nn_alpha_dropout(.p = 0.2), "AlphaDropout(p=0.2, inplace=False)");
}

TENSOR_TEST(bad_arguments_of_activation_layers)
{
    assert_null(kn_nn_softshrink(.lambd = -1));
    CHECK_ERROR(KN_ERR_ARGUMENT, "Softshrink", "lambd must be at least 0, not -1");
    assert_null(kn_nn_rrelu(.lower = 0.5, .upper = 0.2));
    CHECK_ERROR(KN_ERR_ARGUMENT, "RReLU", "lower (0.5) must not be greater than upper (0.2)");
    assert_null(kn_nn_gelu(.approximate = (kn_gelu_approximation)2));
    CHECK_ERROR(KN_ERR_ARGUMENT, "GELU", "approximate must be one of 0 to 1 (none to tanh), not 2");
    kn_module *softmax2d = kn_nn_softmax2d();
    assert_null(kn_forward(softmax2d, kn_ones(KN_SHAPE(2, 3))));
    CHECK_ERROR(KN_ERR_SHAPE, "Softmax2d", "expected [N, C, H, W] or [C, H, W]", "[2, 3]");
    kn_module_free(softmax2d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pooling_layers_are_their_functions),    TEST(convolutions_are_their_functions),
        TEST(activation_layers_are_their_functions), TEST(prelu_learns_its_slopes),
        TEST(random_layers_obey_the_mode),           TEST(alpha_dropout_keeps_mean_and_variance),
        TEST(activations_print_as_in_pytorch),       TEST(bad_arguments_of_activation_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
