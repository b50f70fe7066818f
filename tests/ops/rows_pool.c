/* rows_pool.c - pooling of signals and volumes, padding that differs by side, and indices of maxima. */
#include "ops/rows.h"

#define BUILD(op)                                                                                                      \
    static kn_tensor *build_##op(kn_tensor *const *x, const void *params) { return kn_##op##_with(x[0], params); }
#define BUILD_WITH_INDICES(op)                                                                                         \
    static kn_tensor *build_##op##_with_indices(kn_tensor *const *x, const void *params)                               \
    {                                                                                                                  \
        kn_tensor *indices = NULL;                                                                                     \
        return kn_##op##_with_indices_with(x[0], &indices, params);                                                    \
    }
#define BUILD_ADAPTIVE(op, ...)                                                                                        \
    static kn_tensor *build_##op(kn_tensor *const *x, const void *params)                                              \
    {                                                                                                                  \
        const int64_t *n = params;                                                                                     \
        return kn_##op(x[0], __VA_ARGS__);                                                                             \
    }
#define BUILD_ADAPTIVE_WITH_INDICES(op, ...)                                                                           \
    static kn_tensor *build_##op##_with_indices(kn_tensor *const *x, const void *params)                               \
    {                                                                                                                  \
        const int64_t *n = params;                                                                                     \
        kn_tensor *indices = NULL;                                                                                     \
        return kn_##op##_with_indices(x[0], __VA_ARGS__, &indices);                                                    \
    }
BUILD(max_pool1d)
BUILD(max_pool2d)
BUILD(max_pool3d)
BUILD(avg_pool1d)
BUILD(avg_pool2d)
BUILD(avg_pool3d)
BUILD_WITH_INDICES(max_pool1d)
BUILD_WITH_INDICES(max_pool2d)
BUILD_WITH_INDICES(max_pool3d)
BUILD_ADAPTIVE(adaptive_max_pool1d, n[0])
BUILD_ADAPTIVE(adaptive_max_pool3d, n[0], n[1], n[2])
BUILD_ADAPTIVE(adaptive_avg_pool1d, n[0])
BUILD_ADAPTIVE(adaptive_avg_pool3d, n[0], n[1], n[2])
BUILD_ADAPTIVE_WITH_INDICES(adaptive_max_pool1d, n[0])
BUILD_ADAPTIVE_WITH_INDICES(adaptive_max_pool2d, n[0], n[1])
BUILD_ADAPTIVE_WITH_INDICES(adaptive_max_pool3d, n[0], n[1], n[2])

/* lp_pool, with the norm's type behind the parameters. */
typedef struct lp_params {
    kn_pool_params pool;
    double norm_type;
} lp_params;
#define BUILD_LP(op)                                                                                                   \
    static kn_tensor *build_##op(kn_tensor *const *x, const void *params)                                              \
    {                                                                                                                  \
        const lp_params *p = params;                                                                                   \
        return kn_##op##_with(x[0], p->norm_type, &p->pool);                                                           \
    }
BUILD_LP(lp_pool1d)
BUILD_LP(lp_pool2d)
BUILD_LP(lp_pool3d)

/* Places that are all different: those of a max pooling. */
static kn_tensor *build_max_unpool1d(kn_tensor *const *x, const void *params)
{
    kn_tensor *indices = NULL;
    (void)kn_max_pool1d_with_indices(x[1], &indices, .kernel_size = 2);
    return kn_max_unpool1d_with(x[0], indices, params);
}
static kn_tensor *build_max_unpool2d(kn_tensor *const *x, const void *params)
{
    kn_tensor *indices = NULL;
    (void)kn_max_pool2d_with_indices(x[1], &indices, .kernel_sizes = {2, 3});
    return kn_max_unpool2d_with(x[0], indices, params);
}
static kn_tensor *build_max_unpool2d_at(kn_tensor *const *x, const void *params)
{
    return kn_max_unpool2d_with(x[0], x[1], params);
}
static kn_tensor *build_max_unpool3d(kn_tensor *const *x, const void *params)
{
    kn_tensor *indices = NULL;
    (void)kn_max_pool3d_with_indices(x[1], &indices, .kernel_size = 2);
    return kn_max_unpool3d_with(x[0], indices, params);
}

static kn_tensor *build_fractional_max_pool2d(kn_tensor *const *x, const void *params)
{
    kn_fractional_max_pool_params p = *(const kn_fractional_max_pool_params *)params;
    p.samples = x[1];
    return kn_fractional_max_pool2d_with(x[0], &p);
}
static kn_tensor *build_fractional_max_pool3d(kn_tensor *const *x, const void *params)
{
    kn_fractional_max_pool_params p = *(const kn_fractional_max_pool_params *)params;
    p.samples = x[1];
    return kn_fractional_max_pool3d_with(x[0], &p);
}

/* clang-format off */
#define LP(p, ...) &(const lp_params){{KN_POOL_DEFAULTS, __VA_ARGS__}, p}
#define PLACED(...) {.fill = FILL_DISTINCT, .low = -2, .high = 2, .constant = true, OP_SHAPE(__VA_ARGS__)}
#define UNPOOL(...) &(const kn_max_unpool_params){__VA_ARGS__}
#define FRACTIONAL(...) &(const kn_fractional_max_pool_params){__VA_ARGS__}
#define POOL(...) &(const kn_pool_params){KN_POOL_DEFAULTS, __VA_ARGS__}
#define SIZE(...) (const int64_t[]){__VA_ARGS__}
#define EVERYTHING_1D .kernel_size = 3, .stride = 2, .padding = 1, .paddings_after = {0}, .ceil_mode = true
#define EVERYTHING_3D .kernel_sizes = {2, 3, 3}, .strides = {1, 2, 1}, .paddings = {1, 0, 1}, .paddings_after = {0, 1, 1}, .ceil_mode = true

OP_ROWS_BEGIN
static const op_row rows[] = {
    {"max_pool1d/2", build_max_pool1d, {DISTINCT(2, 3, 9)}, POOL(.kernel_size = 2), .layouts = true},
    {"max_pool1d/without_batch", build_max_pool1d, {DISTINCT(3, 9)}, POOL(.kernel_size = 3, .stride = 1)},
    {"max_pool1d/one_element", build_max_pool1d, {DISTINCT(1, 1, 1)}, POOL(.kernel_size = 1)},
    {"max_pool1d/no_batch", build_max_pool1d, {FLOATS(0, 2, 6)}, POOL(.kernel_size = 2)},
    {"max_pool1d/everything", build_max_pool1d, {DISTINCT(2, 5, 37)}, POOL(EVERYTHING_1D, .dilation = 3), .layouts = true},
    {"max_pool1d/relu", build_max_pool1d, {DISTINCT(2, 3, 17)}, POOL(.kernel_size = 2, .activation = KN_ACTIVATION_RELU)},
    {"max_pool1d/long", build_max_pool1d, {DISTINCT(3, 2, 2053)}, POOL(.kernel_size = 300, .stride = 7)},
    {"max_pool1d/whole_row", build_max_pool1d, {DISTINCT(2, 3, 65)}, POOL(.kernel_size = 65)},
    {"max_pool2d/whole_plane", build_max_pool2d, {DISTINCT(2, 3, 7, 7)}, POOL(.kernel_size = 7)},
    {"max_pool2d/long_lines", build_max_pool2d, {DISTINCT(2, 3, 9, 70)}, POOL(.kernel_sizes = {3, 17}, .strides = {2, 13}, .paddings = {1, 8}, .dilations = {2, 1}, .ceil_mode = true), .layouts = true},
    {"max_pool2d/sides", build_max_pool2d, {DISTINCT(2, 3, 7, 8)}, POOL(.kernel_size = 3, .stride = 2, .paddings = {1, 0}, .paddings_after = {0, 1})},
    {"max_pool2d/behind_only", build_max_pool2d, {DISTINCT(2, 3, 6, 8)}, POOL(.kernel_size = 2, .paddings_after = {1, 1})},
    {"max_pool3d/2", build_max_pool3d, {DISTINCT(2, 3, 4, 6, 8)}, POOL(.kernel_size = 2), .layouts = true},
    {"max_pool3d/ragged", build_max_pool3d, {DISTINCT(1, 2, 5, 7, 3)}, POOL(.kernel_size = 3, .stride = 2, .padding = 1)},
    {"max_pool3d/without_batch", build_max_pool3d, {DISTINCT(2, 3, 5, 4)}, POOL(.kernel_size = 2, .stride = 1)},
    {"max_pool3d/one_element", build_max_pool3d, {DISTINCT(1, 1, 1, 1, 1)}, POOL(.kernel_size = 1)},
    {"max_pool3d/no_batch", build_max_pool3d, {FLOATS(0, 2, 3, 4, 5)}, POOL(.kernel_size = 2)},
    {"max_pool3d/slice_by_slice", build_max_pool3d, {DISTINCT(2, 3, 5, 6, 8)}, POOL(.kernel_sizes = {1, 2, 2})},
    {"max_pool3d/across_slices", build_max_pool3d, {DISTINCT(2, 3, 7, 2, 3)}, POOL(.kernel_sizes = {3, 1, 1}, .strides = {2, 1, 1})},
    {"max_pool3d/everything", build_max_pool3d, {DISTINCT(2, 3, 5, 8, 7)}, POOL(EVERYTHING_3D, .dilations = {3, 1, 2}), .layouts = true},
    {"max_pool3d/large_window", build_max_pool3d, {DISTINCT(2, 1, 8, 9, 10)}, POOL(.kernel_size = 7, .stride = 2)},
    {"max_pool3d/long_lines", build_max_pool3d, {DISTINCT(2, 2, 4, 5, 40)}, POOL(.kernel_sizes = {2, 3, 17}, .strides = {1, 2, 15}, .paddings = {1, 1, 3}, .dilations = {2, 1, 1})},
    {"max_pool1d/planes", build_max_pool1d, {DISTINCT(2, 9, 23)}, POOL(EVERYTHING_1D, .dilation = 3)},
    {"max_pool3d/planes", build_max_pool3d, {DISTINCT(2, 9, 5, 8, 7)}, POOL(EVERYTHING_3D, .dilations = {3, 1, 2})},
    {"avg_pool3d/planes", build_avg_pool3d, {FLOATS(2, 9, 5, 8, 7)}, POOL(EVERYTHING_3D, .count_include_pad = false)},
    {"adaptive_avg_pool3d/planes", build_adaptive_avg_pool3d, {FLOATS(2, 9, 5, 7, 4)}, SIZE(3, 2, 3)},
    {"max_pool3d/relu", build_max_pool3d, {DISTINCT(2, 3, 4, 5, 6)}, POOL(.kernel_size = 2, .activation = KN_ACTIVATION_RELU)},

    {"max_pool1d_with_indices/everything", build_max_pool1d_with_indices, {DISTINCT(2, 5, 37)}, POOL(EVERYTHING_1D, .dilation = 3), .layouts = true},
    {"max_pool1d_with_indices/long", build_max_pool1d_with_indices, {DISTINCT(2, 3, 97)}, POOL(.kernel_size = 17, .padding = 8, .ceil_mode = true)},
    {"max_pool3d_with_indices/whole", build_max_pool3d_with_indices, {DISTINCT(3, 5, 4, 6)}, POOL(.kernel_sizes = {5, 4, 6})},
    {"max_pool1d_with_indices/no_batch", build_max_pool1d_with_indices, {FLOATS(0, 2, 6)}, POOL(.kernel_size = 2)},
    {"max_pool2d_with_indices/2", build_max_pool2d_with_indices, {DISTINCT(2, 3, 6, 8)}, POOL(.kernel_size = 2), .layouts = true},
    {"max_pool2d_with_indices/overlap", build_max_pool2d_with_indices, {DISTINCT(2, 3, 9, 11)}, POOL(.kernel_size = 3, .stride = 1, .padding = 1)},
    {"max_pool2d_with_indices/only_padding", build_max_pool2d_with_indices, {DISTINCT(1, 1, 1, 5)}, POOL(.kernel_size = 2, .stride = 1, .padding = 1, .dilation = 2), .no_gradient = true},
    {"max_pool3d_with_indices/everything", build_max_pool3d_with_indices, {DISTINCT(2, 3, 5, 8, 7)}, POOL(EVERYTHING_3D, .dilations = {3, 1, 2}), .layouts = true},
    {"max_pool3d_with_indices/slice_by_slice", build_max_pool3d_with_indices, {DISTINCT(2, 3, 5, 6, 8)}, POOL(.kernel_sizes = {1, 2, 2})},

    {"avg_pool1d/2", build_avg_pool1d, {FLOATS(2, 3, 9)}, POOL(.kernel_size = 2), .layouts = true},
    {"avg_pool1d/everything", build_avg_pool1d, {FLOATS(2, 5, 37)}, POOL(EVERYTHING_1D), .layouts = true},
    {"avg_pool1d/without_pad", build_avg_pool1d, {FLOATS(2, 5, 37)}, POOL(EVERYTHING_1D, .count_include_pad = false)},
    {"avg_pool1d/no_batch", build_avg_pool1d, {FLOATS(0, 2, 6)}, POOL(.kernel_size = 2)},
    {"avg_pool1d/whole_row", build_avg_pool1d, {FLOATS(2, 3, 300)}, POOL(.kernel_size = 300)},
    {"avg_pool2d/whole_plane", build_avg_pool2d, {FLOATS(2, 3, 7, 7)}, POOL(.kernel_size = 7)},
    {"avg_pool2d/long_lines", build_avg_pool2d, {FLOATS(2, 3, 9, 70)}, POOL(.kernel_sizes = {3, 17}, .strides = {2, 13}, .paddings = {1, 8}, .ceil_mode = true, .count_include_pad = false), .layouts = true},
    {"avg_pool3d/long_lines", build_avg_pool3d, {FLOATS(2, 2, 4, 5, 40)}, POOL(.kernel_sizes = {2, 3, 17}, .strides = {1, 2, 15}, .paddings = {1, 1, 3})},
    {"avg_pool1d/wide_windows", build_avg_pool1d, {FLOATS(2, 1, 300)}, POOL(.kernel_size = 140, .stride = 2, .padding = 3)},
    {"avg_pool1d/many_windows", build_avg_pool1d, {FLOATS(2, 1, 500)}, POOL(.kernel_size = 3, .stride = 4, .padding = 1)},
    {"avg_pool2d/far_windows", build_avg_pool2d, {FLOATS(3, 5, 333)}, POOL(.kernel_sizes = {2, 6}, .strides = {2, 5}, .paddings = {1, 0})},
    {"avg_pool2d/sides", build_avg_pool2d, {FLOATS(2, 3, 7, 8)}, POOL(.kernel_size = 3, .stride = 2, .paddings = {1, 0}, .paddings_after = {0, 1})},
    {"avg_pool2d/sides_without_pad", build_avg_pool2d, {FLOATS(2, 3, 7, 8)},
     POOL(.kernel_size = 3, .stride = 1, .paddings = {1, 0}, .paddings_after = {0, 1}, .count_include_pad = false)},
    {"avg_pool3d/2", build_avg_pool3d, {FLOATS(2, 3, 4, 6, 8)}, POOL(.kernel_size = 2), .layouts = true},
    {"avg_pool3d/one_element", build_avg_pool3d, {FLOATS(1, 1, 1, 1, 1)}, POOL(.kernel_size = 1)},
    {"avg_pool3d/no_batch", build_avg_pool3d, {FLOATS(0, 2, 3, 4, 5)}, POOL(.kernel_size = 2)},
    {"avg_pool3d/everything", build_avg_pool3d, {FLOATS(2, 3, 5, 8, 7)}, POOL(EVERYTHING_3D), .layouts = true},
    {"avg_pool3d/without_pad", build_avg_pool3d, {FLOATS(2, 3, 5, 8, 7)}, POOL(EVERYTHING_3D, .count_include_pad = false)},
    {"avg_pool3d/divisor", build_avg_pool3d, {FLOATS(2, 3, 5, 8, 7)}, POOL(EVERYTHING_3D, .divisor_override = 5)},
    {"avg_pool3d/slice_by_slice", build_avg_pool3d, {FLOATS(2, 3, 5, 6, 8)}, POOL(.kernel_sizes = {1, 2, 2})},

    {"adaptive_max_pool1d/uneven", build_adaptive_max_pool1d, {DISTINCT(2, 3, 11)}, SIZE(4), .layouts = true},
    {"adaptive_max_pool1d_with_indices/long", build_adaptive_max_pool1d_with_indices, {DISTINCT(2, 3, 100)}, SIZE(3)},
    {"adaptive_max_pool2d_with_indices/wide", build_adaptive_max_pool2d_with_indices, {DISTINCT(3, 7, 70)}, SIZE(3, 2)},
    {"adaptive_max_pool1d/to_1", build_adaptive_max_pool1d, {DISTINCT(2, 3, 37)}, SIZE(1)},
    {"adaptive_max_pool1d/no_batch", build_adaptive_max_pool1d, {FLOATS(0, 3, 11)}, SIZE(4)},
    {"adaptive_max_pool3d/uneven", build_adaptive_max_pool3d, {DISTINCT(2, 3, 5, 7, 4)}, SIZE(3, 2, 3), .layouts = true},
    {"adaptive_max_pool3d/to_1", build_adaptive_max_pool3d, {DISTINCT(2, 3, 3, 4, 5)}, SIZE(1, 1, 1)},
    {"adaptive_max_pool3d/to_a_row", build_adaptive_max_pool3d, {DISTINCT(2, 3, 3, 4, 5)}, SIZE(1, 1, 3)},
    {"adaptive_max_pool3d/enlarge", build_adaptive_max_pool3d, {DISTINCT(1, 2, 1, 2, 3)}, SIZE(3, 5, 4)},
    {"adaptive_max_pool1d_with_indices/uneven", build_adaptive_max_pool1d_with_indices, {DISTINCT(2, 3, 11)}, SIZE(4)},
    {"adaptive_max_pool2d_with_indices/uneven", build_adaptive_max_pool2d_with_indices, {DISTINCT(2, 3, 11, 6)}, SIZE(4, 5), .layouts = true},
    {"adaptive_max_pool2d_with_indices/lines", build_adaptive_max_pool2d_with_indices, {DISTINCT(2, 9, 70)}, SIZE(3, 5)},
    {"adaptive_max_pool2d_with_indices/to_1", build_adaptive_max_pool2d_with_indices, {DISTINCT(2, 3, 11, 6)}, SIZE(1, 1)},
    {"adaptive_max_pool3d_with_indices/uneven", build_adaptive_max_pool3d_with_indices, {DISTINCT(2, 3, 5, 7, 4)}, SIZE(3, 2, 3)},
    {"adaptive_max_pool3d_with_indices/to_1", build_adaptive_max_pool3d_with_indices, {DISTINCT(2, 3, 3, 4, 5)}, SIZE(1, 1, 1)},
    {"adaptive_avg_pool1d/uneven", build_adaptive_avg_pool1d, {FLOATS(2, 3, 11)}, SIZE(4), .layouts = true},
    {"adaptive_avg_pool1d/long", build_adaptive_avg_pool1d, {FLOATS(2, 3, 100)}, SIZE(7)},
    {"adaptive_avg_pool1d/longer", build_adaptive_avg_pool1d, {FLOATS(2, 3, 13)}, SIZE(30)},
    {"adaptive_avg_pool1d/to_1", build_adaptive_avg_pool1d, {FLOATS(2, 3, 37)}, SIZE(1)},
    {"adaptive_avg_pool3d/uneven", build_adaptive_avg_pool3d, {FLOATS(2, 3, 5, 7, 4)}, SIZE(3, 2, 3), .layouts = true},
    {"adaptive_avg_pool3d/to_1", build_adaptive_avg_pool3d, {FLOATS(2, 3, 3, 4, 5)}, SIZE(1, 1, 1)},
    {"adaptive_avg_pool3d/enlarge", build_adaptive_avg_pool3d, {FLOATS(1, 2, 1, 2, 3)}, SIZE(3, 5, 4)},
    {"adaptive_avg_pool3d/keeping", build_adaptive_avg_pool3d, {FLOATS(2, 3, 5, 7, 4)}, SIZE(-1, 2, -1)},
    {"adaptive_avg_pool3d/no_batch", build_adaptive_avg_pool3d, {FLOATS(0, 2, 3, 4, 5)}, SIZE(2, 2, 2)},

    {"max_unpool1d/sizes", build_max_unpool1d, {FLOATS(2, 3, 4), PLACED(2, 3, 9)}, UNPOOL(.kernel_size = 2, .output_sizes = {9})},
    {"max_unpool2d/sizes", build_max_unpool2d, {FLOATS(2, 3, 4, 3), PLACED(2, 3, 8, 9)}, UNPOOL(.kernel_sizes = {2, 3})},
    {"max_unpool2d/without_batch", build_max_unpool2d, {FLOATS(3, 4, 3), PLACED(3, 8, 9)}, UNPOOL(.kernel_sizes = {2, 3}), .full = true},
    {"max_unpool2d/no_batch", build_max_unpool2d, {FLOATS(0, 3, 4, 3), PLACED(0, 3, 8, 9)}, UNPOOL(.kernel_sizes = {2, 3}), .full = true},
    {"max_unpool2d/one_place", build_max_unpool2d_at, {FLOATS(2, 3, 7, 9), INDICES(5, 2, 3, 7, 9)}, UNPOOL(.kernel_size = 2), .no_gradient = true},
    {"max_unpool3d/sizes", build_max_unpool3d, {FLOATS(2, 1, 2, 3, 2), PLACED(2, 1, 4, 6, 4)}, UNPOOL(.kernel_size = 2)},
    {"lp_pool1d/2", build_lp_pool1d, {FLOATS_IN(0.5, 2, 2, 3, 9)}, LP(2, .kernel_size = 3, .stride = 2, .ceil_mode = true)},
    {"lp_pool2d/3", build_lp_pool2d, {FLOATS_IN(0.5, 2, 2, 3, 6, 5)}, LP(3, .kernel_sizes = {2, 3}), .full = true},
    {"lp_pool3d/1", build_lp_pool3d, {FLOATS_IN(0.5, 2, 1, 2, 4, 5, 4)}, LP(1, .kernel_size = 2), .full = true},
    {"fractional_max_pool2d/size", build_fractional_max_pool2d, {DISTINCT(2, 3, 9, 11), CONSTANTS_IN(0, 1, 2, 3, 2)}, FRACTIONAL(.kernel_sizes = {2, 3}, .output_sizes = {5, 7})},
    {"fractional_max_pool2d/whole", build_fractional_max_pool2d, {DISTINCT(2, 3, 4, 5), CONSTANTS_IN(0, 1, 2, 3, 2)}, FRACTIONAL(.kernel_sizes = {4, 1}, .output_sizes = {1, 5}), .full = true},
    {"fractional_max_pool3d/ratio", build_fractional_max_pool3d, {DISTINCT(2, 1, 6, 7, 8), CONSTANTS_IN(0, 1, 2, 1, 3)}, FRACTIONAL(.kernel_size = 2, .output_ratio = 0.7)},
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(pool_rows, rows, .has_golden = true, .engine = "max_pool2d max_pool3d avg_pool3d");
