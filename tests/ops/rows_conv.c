/* rows_conv.c - convolution of signals and volumes, transposed convolution, and padding that differs by side. */
#include "ops/rows.h"

#define BUILD(op)                                                                                                      \
    static kn_tensor *build_##op(kn_tensor *const *x, const void *params)                                              \
    {                                                                                                                  \
        return kn_##op##_with(x[0], x[1], x[2], params);                                                               \
    }
BUILD(conv1d)
BUILD(conv2d)
BUILD(conv3d)
BUILD(conv_transpose1d)
BUILD(conv_transpose2d)
BUILD(conv_transpose3d)

/* clang-format off */
#define CONV(...) &(const kn_conv_params){KN_CONV_DEFAULTS, __VA_ARGS__}
#define RELU(...) CONV(__VA_ARGS__, .activation = KN_ACTIVATION_RELU)
#define PLAIN CONV(.padding = 0)
#define TABLES .tables = "conv2d conv2d_backward_data conv2d_backward_weights gemm"

OP_ROWS_BEGIN
static const op_row rows[] = {
    {"conv1d/plain", build_conv1d, {FLOATS(2, 3, 11), FLOATS(4, 3, 3), FLOATS(4)}, PLAIN, .layouts = true, TABLES},
    {"conv1d/no_bias", build_conv1d, {FLOATS(3, 5, 37), FLOATS_IN(-0.3, 0.3, 7, 5, 5)}, CONV(.padding = 2), 111, TABLES,
     .on_cpu = true},
    {"conv1d/one_element", build_conv1d, {FLOATS(1, 1, 1), FLOATS(1, 1, 1), FLOATS(1)}, PLAIN, TABLES, .on_cpu = true},
    {"conv1d/without_batch", build_conv1d, {FLOATS(3, 9), FLOATS(2, 3, 4), FLOATS(2)}, CONV(.stride = 2), TABLES},
    {"conv1d/no_batch", build_conv1d, {FLOATS(0, 3, 9), FLOATS(2, 3, 4), FLOATS(2)}, PLAIN, TABLES},
    {"conv1d/no_channels", build_conv1d, {FLOATS(2, 0, 9), FLOATS(3, 0, 4), FLOATS(3)}, PLAIN, TABLES},
    {"conv1d/pointwise", build_conv1d, {FLOATS(3, 33, 17), FLOATS_IN(-0.2, 0.2, 19, 33, 1), FLOATS(19)}, PLAIN, 60, TABLES},
    {"conv1d/dilation_beyond", build_conv1d, {FLOATS(2, 3, 5), FLOATS(4, 3, 2), FLOATS(4)},
     CONV(.dilation = 7, .padding = 3), TABLES},
    {"conv1d/depthwise", build_conv1d, {FLOATS(2, 13, 41), FLOATS(13, 1, 7), FLOATS(13)},
     CONV(.groups = 13, .padding = 3), 82, TABLES, .on_cpu = true},
    {"conv1d/depthwise_long", build_conv1d, {FLOATS(2, 5, 130), FLOATS_IN(-0.3, 0.3, 5, 1, 9), FLOATS(5)},
     CONV(.groups = 5, .padding = 3, .dilation = 2), 240, TABLES, .on_cpu = true},
    {"conv1d/depthwise_longer", build_conv1d, {FLOATS(1, 17, 283), FLOATS(17, 1, 3), FLOATS(17)},
     CONV(.groups = 17, .padding = 1), 283, TABLES, .on_cpu = true},
    {"conv1d/depthwise_31_taps", build_conv1d, {FLOATS(2, 17, 67), FLOATS_IN(-0.2, 0.2, 17, 1, 31), FLOATS(17)},
     CONV(.groups = 17, .padding = 12), 118, TABLES, .on_cpu = true},
    {"conv1d/sides", build_conv1d, {FLOATS(2, 3, 10), FLOATS(5, 3, 3), FLOATS(5)},
     CONV(.padding = 2, .paddings_after = {0}), TABLES},
    {"conv1d/behind_only", build_conv1d, {FLOATS(2, 3, 10), FLOATS(5, 3, 3)}, CONV(.paddings_after = {9}, .stride = 3), TABLES},
    {"conv1d/same", build_conv1d, {FLOATS(1, 2, 8), FLOATS(3, 2, 4), FLOATS(3)},
     CONV(.padding = KN_PADDING_SAME, .dilation = 3), TABLES},
    {"conv1d/relu", build_conv1d, {FLOATS(3, 17, 29), FLOATS_IN(-0.2, 0.2, 35, 17, 3), FLOATS(35)}, RELU(.padding = 1), 90, TABLES,
     .on_cpu = true},
    {"conv1d/long", build_conv1d, {FLOATS(1, 2, 2053), FLOATS(3, 2, 9), FLOATS(3)}, CONV(.stride = 4, .padding = 4), 514, TABLES,
     .on_cpu = true},
    {"conv1d/in_parts", build_conv1d, {FLOATS(2, 3, 4703), FLOATS(70, 3, 5), FLOATS(70)}, CONV(.stride = 2, .padding = 1), 4702,
     TABLES, .on_cpu = true},
    {"conv1d/many_channels", build_conv1d, {FLOATS(2, 67, 31), FLOATS_IN(-0.1, 0.1, 71, 67, 3), FLOATS(71)},
     CONV(.padding = 1), 213, TABLES, .on_cpu = true},

    {"conv2d/sides", build_conv2d, {FLOATS(2, 3, 7, 8), FLOATS(5, 3, 3, 3), FLOATS(5)},
     CONV(.paddings = {1, 0}, .paddings_after = {0, 2}), 100, .layouts = true, TABLES},
    {"conv2d/sides_1x1", build_conv2d, {FLOATS(2, 18, 5, 6), FLOATS_IN(-0.3, 0.3, 17, 18, 1, 1), FLOATS(17)},
     CONV(.paddings = {2, 1}, .paddings_after = {0, 0}), 98, TABLES, .on_cpu = true},
    {"conv2d/sides_many_channels", build_conv2d, {FLOATS(3, 34, 9, 7), FLOATS_IN(-0.1, 0.1, 35, 34, 3, 3), FLOATS(35)},
     CONV(.paddings = {0, 2}, .paddings_after = {2, 0}), 306, TABLES, .on_cpu = true},
    {"conv2d/sides_strided", build_conv2d, {FLOATS(2, 5, 9, 21), FLOATS(7, 5, 5, 3)},
     CONV(.strides = {2, 3}, .paddings = {3, 0}, .paddings_after = {0, 7}), 100, TABLES, .on_cpu = true},
    {"conv2d/sides_depthwise", build_conv2d, {FLOATS(2, 17, 9, 18), FLOATS(17, 1, 3, 3), FLOATS(17)},
     CONV(.groups = 17, .paddings = {1, 1}, .paddings_after = {0, 0}), 288, TABLES},
    {"conv2d/sides_depthwise_beyond", build_conv2d, {FLOATS(2, 17, 6, 6), FLOATS(17, 1, 3, 3), FLOATS(17)},
     CONV(.groups = 17, .stride = 2, .padding = 1, .paddings_after = {5, 6}), 60, TABLES, .on_cpu = true},
    {"conv2d/sides_small_images", build_conv2d, {FLOATS(17, 18, 5, 5), FLOATS_IN(-0.1, 0.1, 20, 18, 3, 3), FLOATS(20)},
     CONV(.padding = 1, .paddings_after = {0, 2}), 425, TABLES, .on_cpu = true},
    {"conv2d/sides_5x5", build_conv2d, {FLOATS(2, 33, 8, 9), FLOATS_IN(-0.1, 0.1, 34, 33, 5, 5)},
     CONV(.padding = 0, .paddings_after = {3, 4}), 900, TABLES, .on_cpu = true},

    {"conv2d/in_chunks", build_conv2d, {FLOATS(2, 130, 9, 11), FLOATS_IN(-0.1, 0.1, 3, 130, 3, 3), FLOATS(3)},
     CONV(.stride = 2, .padding = 1), 1170, TABLES, .on_cpu = true},
    {"conv2d/in_parts_of_images", build_conv2d, {FLOATS(37, 5, 6, 7), FLOATS(66, 5, 3, 3), FLOATS(66)},
     CONV(.stride = 2, .padding = 1), 444, TABLES, .on_cpu = true},

    {"conv3d/plain", build_conv3d, {FLOATS(2, 3, 5, 4, 6), FLOATS(4, 3, 3, 2, 3), FLOATS(4)}, PLAIN, 80, .layouts = true, TABLES},
    {"conv3d/no_bias", build_conv3d, {FLOATS(1, 2, 4, 5, 3), FLOATS(3, 2, 2, 3, 2)}, CONV(.padding = 1), 100, TABLES, .on_cpu = true},
    {"conv3d/one_element", build_conv3d, {FLOATS(1, 1, 1, 1, 1), FLOATS(1, 1, 1, 1, 1), FLOATS(1)}, PLAIN, TABLES},
    {"conv3d/without_batch", build_conv3d, {FLOATS(2, 3, 4, 5), FLOATS(3, 2, 2, 2, 2), FLOATS(3)}, PLAIN, TABLES, .on_cpu = true},
    {"conv3d/no_batch", build_conv3d, {FLOATS(0, 2, 3, 4, 5), FLOATS(3, 2, 2, 2, 2), FLOATS(3)}, PLAIN, TABLES},
    {"conv3d/no_channels", build_conv3d, {FLOATS(2, 0, 3, 4, 5), FLOATS(3, 0, 2, 2, 2), FLOATS(3)}, PLAIN, TABLES},
    {"conv3d/pointwise", build_conv3d, {FLOATS(2, 19, 3, 5, 7), FLOATS_IN(-0.2, 0.2, 17, 19, 1, 1, 1), FLOATS(17)}, PLAIN, 210,
     TABLES},
    {"conv3d/pointwise_strided", build_conv3d, {FLOATS(2, 5, 3, 5, 7), FLOATS(3, 5, 1, 1, 1), FLOATS(3)},
     CONV(.strides = {2, 1, 3}), TABLES, .on_cpu = true},
    {"conv3d/of_one_slice", build_conv3d, {FLOATS(2, 5, 1, 9, 17), FLOATS(7, 5, 1, 3, 3), FLOATS(7)}, CONV(.paddings = {0, 1, 1}),
     306, TABLES, .on_cpu = true},
    {"conv3d/slice_by_slice", build_conv3d, {FLOATS(2, 3, 4, 6, 5), FLOATS(4, 3, 1, 3, 3)}, CONV(.paddings = {0, 1, 0}), 150, TABLES},
    {"conv3d/across_slices", build_conv3d, {FLOATS(2, 3, 7, 2, 3), FLOATS(4, 3, 3, 1, 1), FLOATS(4)}, CONV(.strides = {2, 1, 1}), TABLES},
    {"conv3d/along_the_depth", build_conv3d, {FLOATS(2, 3, 8, 3, 5), FLOATS(4, 3, 3, 1, 1), FLOATS(4)},
     CONV(.paddings = {3, 0, 0}, .paddings_after = {1, 0, 0}, .dilations = {2, 1, 1}), 240, TABLES},
    {"conv3d/one_output_of_strides", build_conv3d, {FLOATS(2, 3, 4, 1, 3), FLOATS(4, 3, 3, 1, 1)},
     CONV(.strides = {3, 1, 1}, .paddings = {0, 1, 0}), TABLES},
    {"conv3d/all_slices", build_conv3d, {FLOATS(3, 2, 4, 5, 6), FLOATS(5, 2, 4, 3, 3), FLOATS(5)}, CONV(.paddings = {0, 1, 1}), 90, TABLES},
    {"conv3d/many_channels", build_conv3d, {FLOATS(2, 33, 4, 9, 10), FLOATS_IN(-0.05, 0.05, 34, 33, 3, 3, 3), FLOATS(34)},
     CONV(.padding = 1, .stride = 1), 918, TABLES, .on_cpu = true},
    {"conv3d/in_chunks", build_conv3d, {FLOATS(2, 45, 5, 7, 9), FLOATS_IN(-0.1, 0.1, 5, 45, 3, 3, 3), FLOATS(5)},
     CONV(.padding = 1, .stride = 2), 1215, TABLES, .on_cpu = true},
    {"conv3d/stride_beyond_kernel", build_conv3d, {FLOATS(2, 3, 8, 6, 7), FLOATS(4, 3, 2, 3, 3)}, CONV(.strides = {3, 1, 2}), 100, TABLES},
    {"conv3d/large_slices", build_conv3d, {FLOATS(1, 2, 5, 1000, 900), FLOATS(1, 2, 2, 1, 1), FLOATS(1)},
     CONV(.strides = {1, 2, 1}), 1800000, .full = true, .on_cpu = true},
    {"conv3d/everything", build_conv3d, {FLOATS(2, 4, 7, 9, 8), FLOATS(6, 2, 3, 2, 3), FLOATS(6)},
     CONV(.strides = {2, 3, 1}, .paddings = {2, 1, 0}, .paddings_after = {1, 0, 3}, .dilations = {1, 2, 3}, .groups = 2), 100,
     .layouts = true, TABLES},
    {"conv3d/dilation_beyond", build_conv3d, {FLOATS(1, 2, 3, 3, 3), FLOATS(2, 2, 2, 2, 2)}, CONV(.dilation = 4, .padding = 2), TABLES, .on_cpu = true},
    {"conv3d/depthwise", build_conv3d, {FLOATS(2, 7, 5, 4, 6), FLOATS(7, 1, 3, 3, 3), FLOATS(7)}, CONV(.groups = 7, .padding = 1),
     240, TABLES, .on_cpu = true},
    {"conv3d/same", build_conv3d, {FLOATS(1, 2, 4, 5, 6), FLOATS(3, 2, 2, 3, 4), FLOATS(3)}, CONV(.padding = KN_PADDING_SAME), 120, TABLES},
    {"conv3d/relu", build_conv3d, {FLOATS(2, 13, 4, 5, 6), FLOATS_IN(-0.1, 0.1, 17, 13, 3, 3, 3), FLOATS(17)}, RELU(.padding = 1), 351,
     TABLES, .on_cpu = true},

    {"conv_transpose1d/plain", build_conv_transpose1d, {FLOATS(2, 3, 7), FLOATS(3, 4, 3), FLOATS(4)}, PLAIN, .layouts = true, TABLES},
    {"conv_transpose1d/no_bias", build_conv_transpose1d, {FLOATS(3, 5, 9), FLOATS(5, 7, 4)}, CONV(.stride = 2, .padding = 1), 60, TABLES},
    {"conv_transpose1d/one_element", build_conv_transpose1d, {FLOATS(1, 1, 1), FLOATS(1, 1, 1), FLOATS(1)}, PLAIN, TABLES},
    {"conv_transpose1d/without_batch", build_conv_transpose1d, {FLOATS(3, 5), FLOATS(3, 2, 4), FLOATS(2)}, PLAIN, TABLES},
    {"conv_transpose1d/no_batch", build_conv_transpose1d, {FLOATS(0, 3, 5), FLOATS(3, 2, 4), FLOATS(2)}, PLAIN, TABLES},
    {"conv_transpose1d/everything", build_conv_transpose1d, {FLOATS(2, 6, 8), FLOATS(6, 3, 3), FLOATS(6)},
     CONV(.stride = 3, .padding = 2, .output_padding = 2, .dilation = 2, .groups = 2), .layouts = true, TABLES, .on_cpu = true},
    {"conv_transpose1d/output_padding_beyond_stride", build_conv_transpose1d, {FLOATS(2, 3, 5), FLOATS(3, 4, 3), FLOATS(4)},
     CONV(.stride = 2, .output_padding = 4, .dilation = 5), TABLES, .on_cpu = true},
    {"conv_transpose1d/relu", build_conv_transpose1d, {FLOATS(2, 9, 13), FLOATS(9, 17, 5), FLOATS(17)}, RELU(.stride = 2), 60, TABLES,
     .on_cpu = true},

    {"conv_transpose2d/plain", build_conv_transpose2d, {FLOATS(2, 3, 5, 4), FLOATS(3, 4, 3, 3), FLOATS(4)}, PLAIN, 60, .layouts = true,
     TABLES},
    {"conv_transpose2d/no_bias", build_conv_transpose2d, {FLOATS(2, 5, 7, 9), FLOATS(5, 3, 4, 4)}, CONV(.stride = 2, .padding = 1), 126,
     TABLES},
    {"conv_transpose2d/one_pixel", build_conv_transpose2d, {FLOATS(1, 1, 1, 1), FLOATS(1, 1, 1, 1), FLOATS(1)}, PLAIN, TABLES},
    {"conv_transpose2d/no_batch", build_conv_transpose2d, {FLOATS(0, 3, 5, 4), FLOATS(3, 4, 3, 3), FLOATS(4)}, PLAIN, TABLES},
    {"conv_transpose2d/1x1", build_conv_transpose2d, {FLOATS(2, 19, 7, 5), FLOATS_IN(-0.2, 0.2, 19, 33, 1, 1), FLOATS(33)}, PLAIN, 70,
     TABLES, .on_cpu = true},
    {"conv_transpose2d/output_padding", build_conv_transpose2d, {FLOATS(2, 3, 4, 5), FLOATS(3, 5, 3, 3), FLOATS(5)},
     CONV(.strides = {2, 3}, .padding = 1, .output_paddings = {1, 2}), 150, TABLES},
    {"conv_transpose2d/apart", build_conv_transpose2d, {FLOATS(2, 17, 5, 6), FLOATS_IN(-0.3, 0.3, 17, 5, 2, 3), FLOATS(5)},
     CONV(.strides = {3, 3}, .output_padding = 1), 255, TABLES, .on_cpu = true},
    {"conv_transpose2d/output_padding_beyond_stride", build_conv_transpose2d, {FLOATS(2, 3, 4, 5), FLOATS(3, 5, 2, 3), FLOATS(5)},
     CONV(.output_paddings = {2, 1}, .dilation = 3), 120, TABLES, .on_cpu = true},
    {"conv_transpose2d/groups", build_conv_transpose2d, {FLOATS(2, 6, 5, 4), FLOATS(6, 2, 3, 2), FLOATS(4)}, CONV(.groups = 2), 60, TABLES},
    {"conv_transpose2d/depthwise", build_conv_transpose2d, {FLOATS(2, 17, 6, 7), FLOATS(17, 1, 3, 3), FLOATS(17)},
     CONV(.groups = 17, .stride = 2, .padding = 1), 250, TABLES, .on_cpu = true},
    {"conv_transpose2d/padding_beyond", build_conv_transpose2d, {FLOATS(2, 3, 6, 7), FLOATS(3, 4, 2, 3), FLOATS(4)},
     CONV(.padding = 2), TABLES},
    {"conv_transpose2d/sides", build_conv_transpose2d, {FLOATS(2, 3, 6, 7), FLOATS(3, 4, 3, 3), FLOATS(4)},
     CONV(.paddings = {1, 0}, .paddings_after = {0, 2}), 84, TABLES, .on_cpu = true},
    {"conv_transpose2d/everything", build_conv_transpose2d, {FLOATS(2, 4, 5, 6), FLOATS(4, 3, 3, 2), FLOATS(6)},
     CONV(.strides = {2, 3}, .paddings = {2, 1}, .output_paddings = {1, 2}, .dilations = {2, 1}, .groups = 2), 200, .layouts = true,
     TABLES},
    {"conv_transpose2d/many_channels", build_conv_transpose2d, {FLOATS(2, 66, 7, 9), FLOATS_IN(-0.1, 0.1, 66, 35, 3, 3), FLOATS(35)},
     CONV(.padding = 1), 594, TABLES, .on_cpu = true},
    {"conv_transpose2d/relu", build_conv_transpose2d, {FLOATS(2, 17, 9, 8), FLOATS_IN(-0.3, 0.3, 17, 9, 3, 3), FLOATS(9)},
     RELU(.stride = 2), 300, TABLES, .on_cpu = true},
    {"conv_transpose2d/f16", build_conv_transpose2d, {WHOLE(KN_F16, -3, 3, 2, 3, 5, 6), WHOLE(KN_F16, -3, 3, 3, 4, 3, 3), WHOLE(KN_F16, -9, 9, 4)},
     CONV(.padding = 1), .no_gradient = true, .layouts = true, .on_cpu = true},

    {"conv_transpose3d/plain", build_conv_transpose3d, {FLOATS(2, 3, 3, 4, 2), FLOATS(3, 4, 2, 3, 3), FLOATS(4)}, PLAIN, 120, .layouts = true,
     TABLES, .on_cpu = true},
    {"conv_transpose3d/one_element", build_conv_transpose3d, {FLOATS(1, 1, 1, 1, 1), FLOATS(1, 1, 1, 1, 1), FLOATS(1)}, PLAIN, TABLES},
    {"conv_transpose3d/no_batch", build_conv_transpose3d, {FLOATS(0, 3, 3, 4, 2), FLOATS(3, 4, 2, 3, 3), FLOATS(4)}, PLAIN, TABLES},
    {"conv_transpose3d/of_one_slice", build_conv_transpose3d, {FLOATS(2, 3, 1, 3, 2), FLOATS(3, 3, 2, 1, 1)},
     CONV(.strides = {2, 1, 1}, .paddings = {0, 1, 0}, .output_paddings = {1, 0, 0}), TABLES},
    {"conv_transpose3d/pointwise", build_conv_transpose3d, {FLOATS(2, 7, 3, 4, 5), FLOATS(7, 5, 1, 1, 1), FLOATS(5)}, PLAIN, 120, TABLES},
    {"conv_transpose3d/everything", build_conv_transpose3d, {FLOATS(2, 4, 3, 2, 4), FLOATS(4, 3, 2, 3, 2), FLOATS(6)},
     CONV(.strides = {2, 1, 3}, .paddings = {1, 0, 1}, .output_paddings = {1, 0, 2}, .dilations = {1, 2, 1}, .groups = 2), 200,
     .layouts = true, TABLES},
    {"conv_transpose3d/depthwise", build_conv_transpose3d, {FLOATS(2, 5, 3, 4, 3), FLOATS(5, 1, 3, 3, 3)},
     CONV(.groups = 5, .stride = 2, .padding = 1, .output_padding = 1), 150, TABLES, .on_cpu = true},
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(conv_rows, rows);
