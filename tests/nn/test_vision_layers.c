/* test_vision_layers.c - layers that pad, resize, rearrange and pool: what they print, and that they are their
 * functions; padding modes of convolutions; refused parameters. */
#include "support/check.h"

#include <string.h>

static kn_tensor *ramp(int ndim, const int64_t *shape)
{
    int64_t count = 1;
    for (int d = 0; d < ndim; d++)
        count *= shape[d];
    kn_tensor *x = kn_mul_scalar(kn_to_dtype(kn_arange(0, (double)count, 1), KN_F32), 0.37);
    return kn_reshape(kn_sin(x), ndim, shape);
}

/* The same shape and the same bits. */
static void check_same(kn_tensor *x, kn_tensor *y)
{
    assert_non_null(x);
    assert_non_null(y);
    assert_int_equal(kn_ndim(x), kn_ndim(y));
    for (int d = 0; d < kn_ndim(y); d++)
        assert_int_equal(kn_size(x, d), kn_size(y, d));
    check_same_bits(x, y);
}

static void check_text(kn_module *module, const char *expected)
{
    assert_non_null(module);
    char *text = kn_module_summary_with(module, &(kn_module_summary_params){.width = 200});
    assert_non_null(text);
    if (strncmp(text, expected, strlen(expected)) != 0)
        fail_msg("printed %s instead of %s", text, expected);
    kn_free(text);
    kn_module_free(module);
}

TENSOR_TEST(layers_print_as_in_pytorch)
{
    check_text(kn_nn_zero_pad1d(KN_SHAPE(1)), "ZeroPad1d((1, 1))");
    check_text(kn_nn_constant_pad2d(KN_SHAPE(1), 3.5), "ConstantPad2d(padding=(1, 1, 1, 1), value=3.5)");
    check_text(kn_nn_reflection_pad2d(KN_SHAPE(1, 2, 3, 4)), "ReflectionPad2d((1, 2, 3, 4))");
    check_text(kn_nn_replication_pad3d(KN_SHAPE(2)), "ReplicationPad3d((2, 2, 2, 2, 2, 2))");
    check_text(kn_nn_circular_pad1d(KN_SHAPE(0, 2)), "CircularPad1d((0, 2))");
    check_text(kn_nn_unfold(.kernel_size = 3), "Unfold(kernel_size=3, dilation=1, padding=0, stride=1)");
    check_text(kn_nn_fold(4, 5, .kernel_sizes = {2, 2}),
               "Fold(output_size=(4, 5), kernel_size=(2, 2), dilation=1, padding=0, stride=1)");
    check_text(kn_nn_upsample(.scale_factor = 2), "Upsample(scale_factor=2.0, mode='nearest')");
    check_text(kn_nn_upsample(.sizes = {3, 4}, .mode = KN_INTERPOLATE_BILINEAR),
               "Upsample(size=(3, 4), mode='bilinear')");
    check_text(kn_nn_upsample(.scale_factors = {2, 1.5}), "Upsample(scale_factor=(2.0, 1.5), mode='nearest')");
    check_text(kn_nn_upsampling_nearest2d(.size = 4), "UpsamplingNearest2d(size=4, mode='nearest')");
    check_text(kn_nn_upsampling_bilinear2d(.scale_factor = 2),
               "UpsamplingBilinear2d(scale_factor=2.0, mode='bilinear')");
    check_text(kn_nn_pixel_shuffle(3), "PixelShuffle(upscale_factor=3)");
    check_text(kn_nn_pixel_unshuffle(2), "PixelUnshuffle(downscale_factor=2)");
    check_text(kn_nn_channel_shuffle(2), "ChannelShuffle(groups=2)");
    check_text(kn_nn_max_unpool1d(.kernel_size = 3, .stride = 2, .padding = 1),
               "MaxUnpool1d(kernel_size=(3,), stride=(2,), padding=(1,))");
    check_text(kn_nn_max_unpool2d(.kernel_size = 2), "MaxUnpool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0))");
    check_text(kn_nn_lp_pool2d(1.5, .kernel_sizes = {3, 2}, .ceil_mode = true),
               "LPPool2d(norm_type=1.5, kernel_size=(3, 2), stride=None, ceil_mode=True)");
    check_text(kn_nn_fractional_max_pool2d(.kernel_size = 3, .output_size = 2), "FractionalMaxPool2d()");
    check_text(kn_nn_adaptive_avg_pool2d(-1, 7), "AdaptiveAvgPool2d(output_size=(None, 7))");
    check_text(kn_nn_max_pool2d_with_indices(.kernel_size = 2),
               "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)");
    check_text(kn_nn_bilinear(.in1_features = 2, .in2_features = 3, .out_features = 4),
               "Bilinear(in1_features=2, in2_features=3, out_features=4, bias=True)");
    check_text(kn_nn_conv2d(.in_channels = 3, .out_channels = 4, .kernel_size = 3, .padding = 1,
                            .padding_mode = KN_PAD_REFLECT),
               "Conv2d(3, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), padding_mode=reflect)");
}

static void check_forward(kn_module *module, kn_tensor *x, kn_tensor *expected)
{
    assert_non_null(module);
    kn_tensor *y = kn_forward(module, x);
    check_same(y, expected);
    kn_module_free(module);
}

TENSOR_TEST(layers_are_their_functions)
{
    kn_tensor *image = ramp(KN_SHAPE(2, 4, 6, 8)), *volume = ramp(KN_SHAPE(1, 2, 4, 4, 4));
    check_forward(kn_nn_constant_pad1d(KN_SHAPE(1, 2), 0.5), image,
                  kn_pad(image, KN_SHAPE(1, 2), .value = KN_NUMBER(0.5)));
    check_forward(kn_nn_zero_pad2d(KN_SHAPE(1)), image, kn_pad(image, KN_SHAPE(1, 1, 1, 1)));
    check_forward(kn_nn_reflection_pad3d(KN_SHAPE(1)), volume,
                  kn_pad(volume, KN_SHAPE(1, 1, 1, 1, 1, 1), .mode = KN_PAD_REFLECT));
    check_forward(kn_nn_replication_pad2d(KN_SHAPE(2)), image,
                  kn_pad(image, KN_SHAPE(2, 2, 2, 2), .mode = KN_PAD_REPLICATE));
    check_forward(kn_nn_circular_pad2d(KN_SHAPE(2)), image,
                  kn_pad(image, KN_SHAPE(2, 2, 2, 2), .mode = KN_PAD_CIRCULAR));
    check_forward(kn_nn_unfold(.kernel_size = 2), image, kn_unfold(image, .kernel_size = 2));
    check_forward(kn_nn_fold(7, 9, .kernel_size = 2), kn_reshape(image, KN_SHAPE(2, 4, 48)),
                  kn_fold(kn_reshape(image, KN_SHAPE(2, 4, 48)), 7, 9, .kernel_size = 2));
    check_forward(kn_nn_upsampling_bilinear2d(.scale_factor = 2), image,
                  kn_interpolate(image, .scale_factor = 2, .mode = KN_INTERPOLATE_BILINEAR, .align_corners = true));
    check_forward(kn_nn_pixel_shuffle(2), image, kn_pixel_shuffle(image, 2));
    check_forward(kn_nn_lp_pool2d(2, .kernel_size = 2), image, kn_lp_pool2d(image, 2, .kernel_size = 2));
    check_forward(kn_nn_adaptive_max_pool2d(-1, 3), image, kn_adaptive_max_pool2d(image, 6, 3));
}

/* A pooling, its indices, and the way back. */
TENSOR_TEST(pooling_with_indices_and_unpooling)
{
    kn_tensor *x = ramp(KN_SHAPE(2, 3, 6, 8)), *pooled[2] = {NULL}, *back = NULL, *expected = NULL;
    kn_module *pool = kn_nn_max_pool2d_with_indices(.kernel_size = 2), *unpool = kn_nn_max_unpool2d(.kernel_size = 2);
    CHECK_OK(kn_forward_many(pool, &x, 1, pooled, 2));
    check_same(pooled[0], kn_max_pool2d(x, .kernel_size = 2));
    CHECK_OK(kn_forward_many(unpool, pooled, 2, &back, 1));
    check_same(kn_max_pool2d_with_indices(back, &expected, .kernel_size = 2), pooled[0]);
    kn_module_free(pool);
    kn_module_free(unpool);
    pool = kn_nn_adaptive_max_pool2d_with_indices(3, -1);
    CHECK_OK(kn_forward_many(pool, &x, 1, pooled, 2));
    check_same(pooled[0], kn_adaptive_max_pool2d(x, 3, 8));
    kn_module_free(pool);
}

/* The same draws give the same windows; other draws others. */
TENSOR_TEST(fractional_pooling_draws)
{
    kn_tensor *x = ramp(KN_SHAPE(2, 3, 16, 16)), *y[2] = {NULL}, *again, *indices = NULL;
    kn_module *pool = kn_nn_fractional_max_pool2d_with_indices(.kernel_size = 2, .output_ratio = 0.6);
    kn_manual_seed(3);
    CHECK_OK(kn_forward_many(pool, &x, 1, y, 2));
    kn_manual_seed(3);
    again = kn_fractional_max_pool2d_with_indices(x, &indices, .kernel_size = 2, .output_size = 9);
    check_same(y[0], again);
    check_same(y[1], indices);
    kn_module_free(pool);
}

TENSOR_TEST(padding_modes_of_convolutions)
{
    kn_tensor *x = ramp(KN_SHAPE(1, 2, 6, 7)), *signal = ramp(KN_SHAPE(2, 2, 9));
    for (int mode = KN_PAD_REFLECT; mode <= KN_PAD_CIRCULAR; mode++) {
        kn_module *conv = kn_nn_conv2d(.in_channels = 2, .out_channels = 3, .kernel_sizes = {3, 2}, .paddings = {2, 1},
                                       .stride = 2, .padding_mode = (kn_padding_mode)mode);
        kn_tensor *const *p = kn_module_parameters(conv).tensors;
        kn_tensor *padded = kn_pad(x, KN_SHAPE(1, 1, 2, 2), .mode = (kn_padding_mode)mode);
        check_same(kn_forward(conv, x), kn_conv2d(padded, p[0], p[1], .stride = 2));
        kn_module_free(conv);
    }
    kn_module *same = kn_nn_conv1d(.in_channels = 2, .out_channels = 3, .kernel_size = 4, .padding = KN_PADDING_SAME,
                                   .padding_mode = KN_PAD_CIRCULAR);
    kn_tensor *const *p = kn_module_parameters(same).tensors;
    check_same(kn_forward(same, signal),
               kn_conv1d(kn_pad(signal, KN_SHAPE(1, 2), .mode = KN_PAD_CIRCULAR), p[0], p[1]));
    kn_module_free(same);
}

#define REFUSED(code, call, ...)                                                                                       \
    assert_null(call);                                                                                                 \
    CHECK_ERROR(code, __VA_ARGS__)

TENSOR_TEST(bad_parameters_are_refused)
{
    kn_tensor *x = ramp(KN_SHAPE(1, 5, 4, 4)), *grid = ramp(KN_SHAPE(1, 2, 2, 3)), *places = NULL;
    const kn_pad_params reflect = {.mode = KN_PAD_REFLECT}, circular = {.mode = KN_PAD_CIRCULAR};
    REFUSED(KN_ERR_ARGUMENT, kn_pad(x, KN_SHAPE(1, 2, 3)), "pad: pad has 3 numbers", "two for each dimension");
    REFUSED(KN_ERR_SHAPE, kn_pad_with(x, KN_SHAPE(4, 0), &reflect),
            "4 and 0 must be at most 3 in dimension 3 of size 4");
    REFUSED(KN_ERR_SHAPE, kn_pad_with(x, KN_SHAPE(-1, 4), &circular),
            "-1 and 4 must be at most 3 in dimension 3 of size 4");
    REFUSED(KN_ERR_SHAPE, kn_pad(x, KN_SHAPE(-3, -2)), "dimension 3 of size 4, padded by -3 and -2");
    REFUSED(KN_ERR_SHAPE, kn_pixel_shuffle(x, 2),
            "the channels (5) must be divisible by the square of upscale_factor (2)");
    REFUSED(KN_ERR_SHAPE, kn_pixel_unshuffle(x, 3), "height (4) and width (4) must be divisible");
    REFUSED(KN_ERR_SHAPE, kn_channel_shuffle(x, 2), "the channels (5) must be divisible by groups (2)");
    REFUSED(KN_ERR_ARGUMENT, kn_interpolate(x), "either size or scale_factor must be given");
    REFUSED(KN_ERR_ARGUMENT, kn_interpolate(x, .size = 3, .scale_factor = 2), "only one of size and scale_factor");
    REFUSED(KN_ERR_ARGUMENT, kn_interpolate(x, .sizes = {3}), "size has 1 number for 2 dimensions");
    REFUSED(KN_ERR_ARGUMENT, kn_interpolate(x, .scale_factors = {2, 2, 2}), "scale_factor has 3 numbers for 2");
    REFUSED(KN_ERR_SHAPE, kn_interpolate(x, .size = 3, .mode = KN_INTERPOLATE_LINEAR),
            "mode linear needs 3 dimensions");
    REFUSED(KN_ERR_ARGUMENT, kn_interpolate(x, .size = 3, .align_corners = true), "align_corners", "mode nearest");
    REFUSED(KN_ERR_ARGUMENT, kn_interpolate(x, .size = 3, .antialias = true), "antialias is for bilinear and bicubic");
    REFUSED(KN_ERR_SHAPE, kn_unfold(x, .kernel_size = 5), "no window of height 5");
    REFUSED(KN_ERR_ARGUMENT, kn_unfold(x), "kernel_size (0) must be at least 1");
    REFUSED(KN_ERR_SHAPE, kn_fold(kn_reshape(x, KN_SHAPE(1, 5, 16)), 5, 5, .kernel_size = 2),
            "divisible by the product of kernel_size (2, 2)");
    REFUSED(KN_ERR_SHAPE, kn_fold(kn_reshape(x, KN_SHAPE(1, 4, 20)), 5, 5, .kernel_size = 2), "have 16 windows",
            "has 20");
    REFUSED(KN_ERR_SHAPE, kn_grid_sample(x, grid), "expected a grid [N, ..., 2]");
    REFUSED(KN_ERR_SHAPE, kn_affine_grid(x, KN_SHAPE(1, 1, 2, 2), false), "expected a floating theta [1, 2, 3]");
    REFUSED(KN_ERR_ARGUMENT, kn_lp_pool2d(x, 2, .kernel_size = 2, .padding = 1),
            "takes only kernel_size, stride and ceil_mode");
    REFUSED(KN_ERR_ARGUMENT, kn_fractional_max_pool2d(x, .kernel_size = 2), "either output_size or output_ratio");
    REFUSED(KN_ERR_SHAPE, kn_fractional_max_pool2d(x, .kernel_size = 3, .output_size = 3),
            "3 windows of height 3 do not fit");
    kn_tensor *pooled = kn_max_pool2d_with_indices(x, &places, .kernel_size = 2);
    REFUSED(KN_ERR_ARGUMENT, kn_max_unpool2d(pooled, places, .kernel_size = 2, .output_sizes = {7, 4}),
            "output_size 7 (height) must be from 3 to 5");
    REFUSED(KN_ERR_SHAPE, kn_max_unpool2d(x, places, .kernel_size = 2), "indices must have the input's shape");
    REFUSED(KN_ERR_ARGUMENT, kn_nn_zero_pad2d(KN_SHAPE(1, 2)), "ZeroPad2d: padding has 2 numbers; it needs 1 or 4");
    REFUSED(KN_ERR_ARGUMENT, kn_nn_pixel_shuffle(0), "PixelShuffle: upscale_factor (0) must be at least 1");
    REFUSED(KN_ERR_ARGUMENT, kn_nn_upsample(.size = 0), "Upsample: one of size and scale_factor");
    REFUSED(
        KN_ERR_ARGUMENT,
        kn_nn_conv_transpose2d(.in_channels = 1, .out_channels = 1, .kernel_size = 2, .padding_mode = KN_PAD_REFLECT),
        "padding_mode must be zeros for transposed convolution, not reflect");
    REFUSED(KN_ERR_ARGUMENT, kn_nn_adaptive_avg_pool1d(-2), "output_size (-2, length) must be at least 1, or -1");
    REFUSED(KN_ERR_SHAPE, kn_bilinear(grid, grid, kn_reshape(x, KN_SHAPE(5, 4, 4)), NULL),
            "expected inputs [..., in1]");
}

TENSOR_TEST(a_place_outside_is_an_error)
{
    kn_tensor *x = ramp(KN_SHAPE(1, 1, 2)),
              *places = kn_from_data(((int64_t[]){1, 4}), KN_SHAPE(1, 1, 2), .dtype = KN_I64);
    float values[4];
    kn_tensor *y = kn_max_unpool1d(x, places, .kernel_size = 2);
    assert_non_null(y);
    assert_int_not_equal(kn_read(y, values, sizeof values), KN_OK);
    assert_non_null(strstr(kn_error_message(), "4"));
    kn_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(layers_print_as_in_pytorch),         TEST(layers_are_their_functions),
                                       TEST(pooling_with_indices_and_unpooling), TEST(fractional_pooling_draws),
                                       TEST(padding_modes_of_convolutions),      TEST(bad_parameters_are_refused),
                                       TEST(a_place_outside_is_an_error)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
