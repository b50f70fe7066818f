/* rows_conv2d.c - convolution. */
#include "ops/rows.h"

static kn_tensor *build_conv2d(kn_tensor *const *x, const void *params)
{
    return kn_conv2d_with(x[0], x[1], x[2], params);
}

/* clang-format off */
#define CONV(...) &(const kn_conv2d_params){KN_CONV2D_DEFAULTS, __VA_ARGS__}
#define PLAIN CONV(.padding = 0)
#define TABLES .tables = "conv2d conv2d_backward_data conv2d_backward_weights gemm"

OP_ROWS_BEGIN
static const op_row rows[] = {
    {"conv2d/plain", build_conv2d, {FLOATS(2, 3, 7, 6), FLOATS(4, 3, 3, 3), FLOATS(4)}, PLAIN, 54, .layouts = true,
     TABLES},
    {"conv2d/no_bias", build_conv2d, {FLOATS(2, 3, 7, 6), FLOATS(4, 3, 3, 3)}, PLAIN, 54, TABLES},
    {"conv2d/tiny", build_conv2d, {FLOATS(1, 1, 3, 3), FLOATS(1, 1, 2, 2), FLOATS(1)}, PLAIN, 9, TABLES},
    {"conv2d/one_pixel", build_conv2d, {FLOATS(1, 1, 1, 1), FLOATS(1, 1, 1, 1), FLOATS(1)}, PLAIN, 1, TABLES},
    {"conv2d/1x1", build_conv2d, {FLOATS(2, 5, 4, 3), FLOATS(3, 5, 1, 1), FLOATS(3)}, PLAIN, 24, TABLES},
    {"conv2d/1x1_wide", build_conv2d, {FLOATS(2, 67, 9, 9), FLOATS(35, 67, 1, 1), FLOATS(35)}, PLAIN, 162, TABLES},
    {"conv2d/1x1_strided", build_conv2d, {FLOATS(2, 5, 7, 6), FLOATS(3, 5, 1, 1)}, CONV(.stride = 2), 24, TABLES},
    {"conv2d/kernel_is_image", build_conv2d, {FLOATS(3, 2, 4, 5), FLOATS(3, 2, 4, 5), FLOATS(3)}, PLAIN, 40, TABLES},
    {"conv2d/2x4", build_conv2d, {FLOATS(1, 2, 5, 7), FLOATS(3, 2, 2, 4), FLOATS(3)}, PLAIN, 16, TABLES},
    {"conv2d/stride_2", build_conv2d, {FLOATS(2, 2, 7, 8), FLOATS(3, 2, 3, 3), FLOATS(3)}, CONV(.stride = 2), 18,
     TABLES},
    {"conv2d/stride_3x2", build_conv2d, {FLOATS(1, 2, 9, 8), FLOATS(3, 2, 3, 2), FLOATS(3)},
     CONV(.stride_2d = {3, 2}), 18, TABLES},
    {"conv2d/stride_beyond_kernel", build_conv2d, {FLOATS(1, 2, 9, 9), FLOATS(2, 2, 2, 2)}, CONV(.stride = 4), 9,
     TABLES},
    {"conv2d/padding_1", build_conv2d, {FLOATS(2, 2, 5, 6), FLOATS(3, 2, 3, 3), FLOATS(3)}, CONV(.padding = 1), 60,
     TABLES},
    {"conv2d/padding_2x1", build_conv2d, {FLOATS(1, 2, 4, 5), FLOATS(3, 2, 3, 3)}, CONV(.padding_2d = {2, 1}), 30,
     TABLES},
    {"conv2d/padding_beyond", build_conv2d, {FLOATS(1, 1, 3, 3), FLOATS(2, 1, 2, 2), FLOATS(2)},
     CONV(.padding = 3), 64, TABLES},
    {"conv2d/dilation_2", build_conv2d, {FLOATS(1, 2, 8, 9), FLOATS(3, 2, 3, 3), FLOATS(3)}, CONV(.dilation = 2), 20,
     TABLES},
    {"conv2d/dilation_1x3", build_conv2d, {FLOATS(1, 2, 6, 9), FLOATS(2, 2, 2, 3)}, CONV(.dilation_2d = {1, 3}), 15,
     TABLES},
    {"conv2d/groups_2", build_conv2d, {FLOATS(1, 4, 6, 5), FLOATS(6, 2, 3, 3), FLOATS(6)}, CONV(.groups = 2), 18,
     TABLES},
    {"conv2d/depthwise", build_conv2d, {FLOATS(1, 5, 6, 5), FLOATS(5, 1, 3, 3), FLOATS(5)},
     CONV(.groups = 5, .padding = 1), 30, TABLES},
    {"conv2d/depthwise_twice", build_conv2d, {FLOATS(2, 3, 6, 5), FLOATS(6, 1, 3, 3)},
     CONV(.groups = 3, .stride = 2), 12, TABLES},
    {"conv2d/same", build_conv2d, {FLOATS(1, 2, 5, 6), FLOATS(3, 2, 3, 5), FLOATS(3)},
     CONV(.padding = KN_PADDING_SAME), 30, TABLES},
    {"conv2d/same_even", build_conv2d, {FLOATS(1, 2, 5, 6), FLOATS(3, 2, 2, 4)},
     CONV(.padding = KN_PADDING_SAME), 30, TABLES},
    {"conv2d/same_dilated", build_conv2d, {FLOATS(1, 2, 7, 6), FLOATS(2, 2, 4, 3)},
     CONV(.padding = KN_PADDING_SAME, .dilation = 2), 42, TABLES},
    {"conv2d/everything", build_conv2d, {FLOATS(2, 4, 11, 10), FLOATS(6, 2, 3, 2), FLOATS(6)},
     CONV(.stride_2d = {2, 3}, .padding_2d = {2, 1}, .dilation_2d = {2, 1}, .groups = 2), 50, .layouts = true, TABLES},
    {"conv2d/no_batch", build_conv2d, {FLOATS(0, 2, 5, 5), FLOATS(3, 2, 3, 3), FLOATS(3)}, PLAIN, TABLES},
    {"conv2d/odd_channels", build_conv2d, {FLOATS(3, 17, 9, 11), FLOATS_IN(-0.2, 0.2, 67, 17, 3, 3), FLOATS(67)},
     CONV(.padding = 1), 297, TABLES},
    {"conv2d/many_channels", build_conv2d, {FLOATS(2, 130, 5, 7), FLOATS_IN(-0.1, 0.1, 33, 130, 3, 3), FLOATS(33)},
     PLAIN, 1170, TABLES},
    {"conv2d/seed_1", build_conv2d, {FLOATS(5, 1, 28, 28), FLOATS(32, 1, 3, 3), FLOATS(32)}, PLAIN, 3380, TABLES},
    {"conv2d/seed_2", build_conv2d, {FLOATS(5, 32, 13, 13), FLOATS_IN(-0.1, 0.1, 64, 32, 5, 5), FLOATS(64)},
     PLAIN, 1600, TABLES},
    {"conv2d/image_net_stem", build_conv2d, {FLOATS(1, 3, 37, 41), FLOATS(24, 3, 7, 7)},
     CONV(.stride = 2, .padding = 3), 399, TABLES},
    {"conv2d/many_small_images", build_conv2d, {FLOATS(17, 18, 5, 5), FLOATS_IN(-0.1, 0.1, 20, 18, 3, 3), FLOATS(20)},
     CONV(.padding = 1), 425, TABLES},
    {"conv2d/many_small_strided", build_conv2d, {FLOATS(13, 33, 7, 6), FLOATS_IN(-0.1, 0.1, 35, 33, 3, 3)},
     CONV(.padding = 1, .stride = 2), 300, TABLES},
    {"conv2d/many_small_groups", build_conv2d, {FLOATS(12, 64, 4, 5), FLOATS_IN(-0.1, 0.1, 64, 32, 3, 3), FLOATS(64)},
     CONV(.padding = 1, .groups = 2), 288, TABLES},
    {"conv2d/many_small_dilated", build_conv2d, {FLOATS(24, 16, 6, 5), FLOATS_IN(-0.1, 0.1, 17, 16, 3, 3), FLOATS(17)},
     CONV(.padding = 2, .dilation = 2), 720, TABLES},
    {"conv2d/many_small_5x5", build_conv2d, {FLOATS(7, 48, 4, 4), FLOATS_IN(-0.1, 0.1, 24, 48, 5, 5), FLOATS(24)},
     CONV(.padding = 2), 1200, TABLES},
    {"conv2d/few_channels_in_rows", build_conv2d, {FLOATS(3, 5, 9, 37), FLOATS(7, 5, 3, 3), FLOATS(7)},
     CONV(.stride_2d = {2, 1}), 420, TABLES},
    {"conv2d/few_channels_5x5", build_conv2d, {FLOATS(2, 2, 19, 23), FLOATS(3, 2, 5, 5), FLOATS(3)},
     CONV(.padding = 2), 874, TABLES},
    {"conv2d/few_channels_dilated", build_conv2d, {FLOATS(2, 3, 13, 29), FLOATS(2, 3, 3, 3)},
     CONV(.padding = 2, .dilation = 2), 754, TABLES},
    {"conv2d/one_output_row", build_conv2d, {FLOATS(2, 3, 3, 45), FLOATS(5, 3, 3, 7), FLOATS(5)}, PLAIN, 78, TABLES},
    {"conv2d/depthwise_strided", build_conv2d, {FLOATS(3, 37, 9, 11), FLOATS(37, 1, 3, 3), FLOATS(37)},
     CONV(.groups = 37, .stride = 2, .padding = 1), 90, TABLES},
    {"conv2d/depthwise_5x5_dilated", build_conv2d, {FLOATS(2, 19, 11, 17), FLOATS(38, 1, 5, 5)},
     CONV(.groups = 19, .padding = 4, .dilation = 2), 374, TABLES},
    {"conv2d/no_input_channels", build_conv2d, {FLOATS(2, 0, 5, 5), FLOATS(3, 0, 3, 3), FLOATS(3)}, PLAIN, TABLES},
    {"conv2d/only_padding", build_conv2d, {FLOATS(1, 2, 0, 4), FLOATS(3, 2, 3, 3), FLOATS(3)},
     CONV(.padding = 2), 54, TABLES},
    {"conv2d/one_column", build_conv2d, {FLOATS(2, 3, 7, 1), FLOATS(3, 3, 3, 1), FLOATS(3)}, PLAIN, 14, TABLES},
    {"conv2d/two_columns", build_conv2d, {FLOATS(2, 3, 6, 2), FLOATS(5, 3, 3, 3), FLOATS(5)},
     CONV(.padding = 1), 45, TABLES},
    {"conv2d/three_columns", build_conv2d, {FLOATS(3, 2, 5, 3), FLOATS(3, 2, 2, 1), FLOATS(3)}, PLAIN, 36, TABLES},
    {"conv2d/stride_5", build_conv2d, {FLOATS(2, 2, 13, 12), FLOATS(3, 2, 7, 6), FLOATS(3)},
     CONV(.stride = 5, .padding = 3), 84, TABLES},
    {"conv2d/stride_6_beyond_image", build_conv2d, {FLOATS(2, 2, 5, 4), FLOATS(3, 2, 2, 2), FLOATS(3)},
     CONV(.stride = 6, .padding = 1), 16, TABLES},
    {"conv2d/wide_image", build_conv2d, {FLOATS(1, 2, 3, 1031), FLOATS(3, 2, 3, 3), FLOATS(3)},
     CONV(.padding = 1), 3093, TABLES},
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(conv2d_rows, rows);
