/* rows_pool2d.c - max, average and adaptive pooling. */
#include "ops/rows.h"

static kn_tensor *build_max(kn_tensor *const *x, const void *params) { return kn_max_pool2d_with(x[0], params); }

static kn_tensor *build_avg(kn_tensor *const *x, const void *params) { return kn_avg_pool2d_with(x[0], params); }

static kn_tensor *build_adaptive_max(kn_tensor *const *x, const void *params)
{
    const int64_t *size = params;
    return kn_adaptive_max_pool2d(x[0], size[0], size[1]);
}

static kn_tensor *build_adaptive_avg(kn_tensor *const *x, const void *params)
{
    const int64_t *size = params;
    return kn_adaptive_avg_pool2d(x[0], size[0], size[1]);
}

/* clang-format off */
#define POOL(...) &(const kn_pool_params){KN_POOL_DEFAULTS, __VA_ARGS__}
/* Values from -3 in steps of 6 / `per_six` (even), so that 0 and 6 are midway between two values. */
#define BEYOND_SIX(steps, per_six, ...) {.fill = FILL_DISTINCT, .low = -3, .high = -3 + steps * 6.0 / per_six, OP_SHAPE(__VA_ARGS__)}
#define SIZE(height, width) (const int64_t[]){height, width}

OP_ROWS_BEGIN
static const op_row rows[] = {
    {"max_pool2d/2", build_max, {DISTINCT(2, 3, 6, 8)}, POOL(.kernel_size = 2), .layouts = true},
    {"max_pool2d/ragged", build_max, {DISTINCT(1, 2, 7, 9)}, POOL(.kernel_size = 2)},
    {"max_pool2d/3_stride_2_padding_1", build_max, {DISTINCT(1, 2, 7, 6)},
     POOL(.kernel_size = 3, .stride = 2, .padding = 1)},
    {"max_pool2d/overlap", build_max, {DISTINCT(1, 2, 5, 5)}, POOL(.kernel_size = 3, .stride = 1)},
    {"max_pool2d/ceil", build_max, {DISTINCT(1, 2, 8, 7)}, POOL(.kernel_size = 3, .stride = 2, .ceil_mode = true)},
    {"max_pool2d/ceil_padding", build_max, {DISTINCT(1, 2, 6, 6)},
     POOL(.kernel_size = 2, .stride = 3, .padding = 1, .ceil_mode = true)},
    {"max_pool2d/dilation", build_max, {DISTINCT(1, 1, 8, 9)}, POOL(.kernel_size = 3, .stride = 1, .dilation = 2)},
    {"max_pool2d/everything", build_max, {DISTINCT(2, 2, 11, 13)},
     POOL(.kernel_sizes = {3, 2}, .strides = {2, 1}, .paddings = {1, 0}, .dilations = {1, 2}, .ceil_mode = true),
     .layouts = true},
    {"max_pool2d/one_pixel", build_max, {DISTINCT(1, 1, 1, 1)}, POOL(.kernel_size = 1)},
    {"max_pool2d/no_batch", build_max, {FLOATS(0, 2, 6, 6)}, POOL(.kernel_size = 2)},
    {"max_pool2d/2_padding_1", build_max, {DISTINCT(2, 2, 9, 8)}, POOL(.kernel_size = 2, .padding = 1)},
    {"max_pool2d/2_stride_1", build_max, {DISTINCT(1, 3, 6, 7)}, POOL(.kernel_size = 2, .stride = 1)},
    {"max_pool2d/3_stride_1_padding_1", build_max, {DISTINCT(1, 2, 11, 7)}, POOL(.kernel_size = 3, .stride = 1, .padding = 1)},
    {"max_pool2d/relu", build_max, {DISTINCT(2, 3, 6, 8)}, POOL(.kernel_size = 2, .activation = KN_ACTIVATION_RELU), .layouts = true},
    {"max_pool2d/relu_3_stride_2_padding_1", build_max, {DISTINCT(1, 2, 17, 16)},
     POOL(.kernel_size = 3, .stride = 2, .padding = 1, .activation = KN_ACTIVATION_RELU)},
    {"max_pool2d/relu6", build_max, {BEYOND_SIX(234, 116, 1, 2, 9, 13)},
     POOL(.kernel_sizes = {1, 2}, .stride = 1, .activation = KN_ACTIVATION_RELU6)},
    {"avg_pool2d/relu", build_avg, {FLOATS(2, 3, 6, 8)}, POOL(.kernel_size = 2, .activation = KN_ACTIVATION_RELU)},
    {"max_pool2d/planes", build_max, {DISTINCT(2, 17, 7, 6)}, POOL(.kernel_size = 3, .stride = 2, .padding = 1), .layouts = true},
    {"max_pool2d/planes_dilation", build_max, {DISTINCT(3, 13, 11, 13)},
     POOL(.kernel_sizes = {3, 2}, .strides = {2, 1}, .paddings = {1, 0}, .dilations = {1, 2}, .ceil_mode = true)},
    {"max_pool2d/planes_relu6", build_max, {BEYOND_SIX(1008, 116, 1, 16, 9, 7)},
     POOL(.kernel_size = 2, .stride = 1, .activation = KN_ACTIVATION_RELU6)},
    {"max_pool2d/planes_wide", build_max, {DISTINCT(5, 32, 16, 19)}, POOL(.kernel_size = 3, .stride = 1, .padding = 1)},
    {"avg_pool2d/planes", build_avg, {FLOATS(2, 17, 7, 6)}, POOL(.kernel_size = 3, .stride = 2, .padding = 1), .layouts = true},
    {"avg_pool2d/planes_ceil", build_avg, {FLOATS(1, 33, 6, 6)},
     POOL(.kernel_size = 3, .stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false)},
    {"avg_pool2d/planes_far", build_avg, {FLOATS(1, 16, 5, 33)}, POOL(.kernel_sizes = {2, 3}, .strides = {3, 5}, .divisor_override = 5)},
    {"max_pool2d/seed_1", build_max, {DISTINCT(3, 32, 26, 26)}, POOL(.kernel_size = 2)},
    {"max_pool2d/seed_2", build_max, {DISTINCT(3, 64, 9, 9)}, POOL(.kernel_size = 2)},
    {"avg_pool2d/2", build_avg, {FLOATS(2, 3, 6, 8)}, POOL(.kernel_size = 2), .layouts = true},
    {"avg_pool2d/3_stride_2_padding_1", build_avg, {FLOATS(1, 2, 7, 6)},
     POOL(.kernel_size = 3, .stride = 2, .padding = 1)},
    {"avg_pool2d/without_pad", build_avg, {FLOATS(1, 2, 7, 6)},
     POOL(.kernel_size = 3, .stride = 2, .padding = 1, .count_include_pad = false)},
    {"avg_pool2d/ceil", build_avg, {FLOATS(1, 2, 8, 7)}, POOL(.kernel_size = 3, .stride = 2, .ceil_mode = true)},
    {"avg_pool2d/ceil_padding", build_avg, {FLOATS(1, 2, 6, 6)},
     POOL(.kernel_size = 3, .stride = 2, .padding = 1, .ceil_mode = true)},
    {"avg_pool2d/ceil_without_pad", build_avg, {FLOATS(1, 2, 6, 6)},
     POOL(.kernel_size = 3, .stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false)},
    {"avg_pool2d/2_padding_1_without_pad", build_avg, {FLOATS(2, 2, 9, 8)},
     POOL(.kernel_size = 2, .padding = 1, .count_include_pad = false)},
    {"avg_pool2d/3_stride_1_padding_1", build_avg, {FLOATS(1, 2, 11, 7)},
     POOL(.kernel_size = 3, .stride = 1, .padding = 1, .divisor_override = 7)},
    {"avg_pool2d/divisor", build_avg, {FLOATS(1, 2, 6, 5)}, POOL(.kernel_sizes = {2, 3},
     .stride = 1, .padding = 1, .divisor_override = 5)},
    {"avg_pool2d/no_batch", build_avg, {FLOATS(0, 2, 6, 6)}, POOL(.kernel_size = 2)},
    {"avg_pool2d/large", build_avg, {FLOATS(3, 17, 23, 29)}, POOL(.kernel_size = 5, .stride = 3)},
    {"adaptive_max_pool2d/to_1", build_adaptive_max, {DISTINCT(2, 3, 4, 3)}, SIZE(1, 1), .layouts = true},
    {"adaptive_max_pool2d/uneven", build_adaptive_max, {DISTINCT(1, 2, 7, 9)}, SIZE(3, 5)},
    {"adaptive_max_pool2d/enlarge", build_adaptive_max, {DISTINCT(1, 2, 3, 4)}, SIZE(7, 3)},
    {"adaptive_max_pool2d/wide", build_adaptive_max, {DISTINCT(2, 3, 9, 53)}, SIZE(2, 2)},
    {"adaptive_max_pool2d/no_batch", build_adaptive_max, {FLOATS(0, 2, 3, 4)}, SIZE(1, 1)},
    {"adaptive_max_pool2d/seed", build_adaptive_max, {DISTINCT(128, 64, 4, 4)}, SIZE(1, 1)},
    {"adaptive_avg_pool2d/to_1", build_adaptive_avg, {FLOATS(2, 3, 4, 3)}, SIZE(1, 1), .layouts = true},
    {"adaptive_avg_pool2d/uneven", build_adaptive_avg, {FLOATS(1, 2, 7, 9)}, SIZE(3, 5)},
    {"adaptive_avg_pool2d/enlarge", build_adaptive_avg, {FLOATS(1, 2, 3, 4)}, SIZE(7, 3)},
    {"adaptive_avg_pool2d/wide", build_adaptive_avg, {FLOATS(2, 3, 9, 53)}, SIZE(2, 2)},
    {"adaptive_avg_pool2d/no_batch", build_adaptive_avg, {FLOATS(0, 2, 3, 4)}, SIZE(1, 1)},
    {"adaptive_avg_pool2d/planes", build_adaptive_avg, {FLOATS(1, 20, 7, 9)}, SIZE(3, 5), .layouts = true},
    {"adaptive_avg_pool2d/planes_enlarge", build_adaptive_avg, {FLOATS(2, 9, 3, 4)}, SIZE(7, 3)},
    {"adaptive_avg_pool2d/large", build_adaptive_avg, {FLOATS(5, 37, 13, 11)}, SIZE(2, 3)},
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(pool2d_rows, rows);
