/* rows_norm.c - batch and layer normalisation. Running estimates are tested in test_norm.c. */
#include "ops/rows.h"

/* Inputs: x, weight, bias, running_mean, running_var. */
static kn_tensor *build_batch_norm(kn_tensor *const *x, const void *params)
{
    kn_batch_norm_params own = *(const kn_batch_norm_params *)params;
    own.weight = x[1];
    own.bias = x[2];
    own.running_mean = x[3];
    own.running_var = x[4];
    return kn_batch_norm_with(x[0], &own);
}

static kn_tensor *build_batch_norm_bias(kn_tensor *const *x, const void *params)
{
    kn_batch_norm_params own = *(const kn_batch_norm_params *)params;
    own.bias = x[1];
    return kn_batch_norm_with(x[0], &own);
}

typedef struct layer_case {
    int ndim; /* of the normalised shape: the last dimensions of x */
    double eps;
} layer_case;

static kn_tensor *build_layer_norm(kn_tensor *const *x, const void *params)
{
    const layer_case *c = params;
    return kn_layer_norm_with(x[0], c->ndim, kn_shape(x[0]) + kn_ndim(x[0]) - c->ndim,
                              &(kn_layer_norm_params){.weight = x[1], .bias = x[2], .eps = c->eps});
}

static kn_tensor *build_layer_norm_bias(kn_tensor *const *x, const void *params)
{
    const layer_case *c = params;
    return kn_layer_norm_with(x[0], c->ndim, kn_shape(x[0]) + kn_ndim(x[0]) - c->ndim,
                              &(kn_layer_norm_params){.bias = x[1], .eps = c->eps});
}

typedef struct group_case {
    int64_t groups;
    double eps;
} group_case;

static kn_tensor *build_group_norm(kn_tensor *const *x, const void *params)
{
    const group_case *c = params;
    return kn_group_norm(x[0], c->groups, .weight = x[1], .bias = x[2], .eps = c->eps);
}

static kn_tensor *build_rms_norm(kn_tensor *const *x, const void *params)
{
    const layer_case *c = params;
    return kn_rms_norm_with(x[0], c->ndim, kn_shape(x[0]) + kn_ndim(x[0]) - c->ndim,
                            &(kn_rms_norm_params){.weight = x[1], .eps = c->eps});
}

/* The statistics too, which the harness compares with the reference's. */
static kn_tensor *build_batch_norm_statistics(kn_tensor *const *x, const void *params)
{
    kn_batch_norm_params own = *(const kn_batch_norm_params *)params;
    kn_tensor *mean, *rstd;
    own.running_mean = x[1];
    own.running_var = x[2];
    own.mean = &mean;
    own.rstd = &rstd;
    return kn_batch_norm_with(x[0], &own);
}

static kn_tensor *build_layer_norm_statistics(kn_tensor *const *x, const void *params)
{
    const layer_case *c = params;
    kn_tensor *mean, *rstd;
    return kn_layer_norm_with(x[0], c->ndim, kn_shape(x[0]) + kn_ndim(x[0]) - c->ndim,
                              &(kn_layer_norm_params){.eps = c->eps, .mean = &mean, .rstd = &rstd});
}

static kn_tensor *build_layer_norm_rstd(kn_tensor *const *x, const void *params)
{
    const layer_case *c = params;
    kn_tensor *rstd;
    return kn_layer_norm_with(x[0], c->ndim, kn_shape(x[0]) + kn_ndim(x[0]) - c->ndim,
                              &(kn_layer_norm_params){.eps = c->eps, .rstd = &rstd});
}

/* clang-format off */
#define BN(...) &(const kn_batch_norm_params){KN_BATCH_NORM_DEFAULTS, __VA_ARGS__}
#define TRAIN BN(.training = true)
#define TRAIN_RELU BN(.training = true, .activation = KN_ACTIVATION_RELU)
#define TRAIN_RELU6 BN(.training = true, .activation = KN_ACTIVATION_RELU6)
#define EVAL BN(.training = false)
#define GN(count) &(const group_case){.groups = count, .eps = 1e-5}
#define LN(dims) &(const layer_case){.ndim = dims, .eps = 1e-5}
#define X(...) FLOATS_IN(-2, 3, __VA_ARGS__)
#define W(...) FLOATS_IN(0.2, 2, __VA_ARGS__)
#define B(...) FLOATS(__VA_ARGS__)
#define MEAN(c) CONSTANTS_IN(-1, 1, c)
#define VAR(c) CONSTANTS_IN(0.1, 2, c)
/* A shape with C channels in both modes. */
#define BOTH_MODES(name, c, reduction, ...)                                                                            \
    {"batch_norm/train_" name, build_batch_norm, {X(__VA_ARGS__), W(c), B(c)}, TRAIN, reduction},                      \
    {"batch_norm/eval_" name, build_batch_norm, {X(__VA_ARGS__), W(c), B(c), MEAN(c), VAR(c)}, EVAL, reduction}

OP_ROWS_BEGIN
static const op_row rows[] = {
    {"batch_norm/plain", build_batch_norm, {X(5, 3)}, TRAIN, 5},
    {"batch_norm/weight", build_batch_norm, {X(5, 3), W(3)}, TRAIN, 5},
    {"batch_norm/bias", build_batch_norm_bias, {X(5, 3, 2), B(3)}, TRAIN, 10},
    {"batch_norm/eps", build_batch_norm, {X(5, 3), W(3), B(3)}, BN(.training = true, .eps = 0.5), 5},
    {"batch_norm/layouts", build_batch_norm, {X(4, 3, 5), W(3), B(3)}, TRAIN, 20, .layouts = true},
    {"batch_norm/layouts_eval", build_batch_norm, {X(4, 3, 5), W(3), B(3), MEAN(3), VAR(3)}, EVAL, 20, .layouts = true},
    {"batch_norm/eval_plain", build_batch_norm, {X(5, 3), FLOATS(3), FLOATS(3), MEAN(3), VAR(3)}, EVAL, 5},
    {"batch_norm/eval_one_value", build_batch_norm, {X(1, 3), W(3), B(3), MEAN(3), VAR(3)}, EVAL},
    BOTH_MODES("two_values", 3, 2, 2, 3),
    BOTH_MODES("one_image", 5, 35, 1, 5, 7, 5),
    BOTH_MODES("one_channel", 1, 91, 7, 1, 13),
    BOTH_MODES("one_of_each", 1, 2, 2, 1),
    BOTH_MODES("images", 4, 54, 3, 4, 3, 6),
    BOTH_MODES("volumes", 2, 24, 3, 2, 2, 2, 2),
    BOTH_MODES("vector", 16, 37, 37, 16),
    BOTH_MODES("prime_channels", 67, 11, 11, 67),
    BOTH_MODES("many_channels", 131, 9, 9, 131, 1, 1),
    BOTH_MODES("pairs", 37, 26, 13, 37, 2),
    BOTH_MODES("planes_4x4", 35, 208, 13, 35, 4, 4),
    BOTH_MODES("planes_7x7", 19, 441, 9, 19, 7, 7),
    BOTH_MODES("planes_63", 17, 630, 10, 17, 63),
    BOTH_MODES("planes_8x8", 5, 192, 3, 5, 8, 8),
    BOTH_MODES("planes_14x14", 9, 784, 4, 9, 14, 14),
    BOTH_MODES("planes_17x19", 3, 969, 3, 3, 17, 19),
    BOTH_MODES("long", 3, 40000, 2, 3, 20011),
    BOTH_MODES("long_batch", 3, 1031, 1031, 3),
    BOTH_MODES("chunks_of_planes", 2, 24000, 120, 2, 10, 20),
    BOTH_MODES("long_tiles", 20, 3000, 613, 20, 5),
    BOTH_MODES("wide", 40, 2400, 24, 40, 10, 10),
    {"batch_norm/relu", build_batch_norm, {X(5, 3), W(3), B(3)}, TRAIN_RELU, 5},
    {"batch_norm/relu_eval", build_batch_norm, {X(4, 3, 5), W(3), B(3), MEAN(3), VAR(3)}, BN(.activation = KN_ACTIVATION_RELU), 20, .layouts = true},
    {"batch_norm/relu_plain", build_batch_norm, {X(5, 3)}, TRAIN_RELU, 5},
    {"batch_norm/relu_bias", build_batch_norm_bias, {X(5, 3, 2), B(3)}, TRAIN_RELU, 10},
    {"batch_norm/relu_layouts", build_batch_norm, {X(4, 3, 5), W(3), B(3)}, TRAIN_RELU, 20, .layouts = true},
    {"batch_norm/relu_planes_4x4", build_batch_norm, {X(13, 35, 4, 4), W(35), B(35)}, TRAIN_RELU, 208},
    {"batch_norm/relu_planes_17x19", build_batch_norm, {X(3, 3, 17, 19), W(3), B(3)}, TRAIN_RELU, 969},
    {"batch_norm/relu6_vector", build_batch_norm, {X(37, 16), FLOATS_IN(3, 9, 16), B(16)}, TRAIN_RELU6, 37},
    {"batch_norm/relu6_images", build_batch_norm, {X(3, 4, 9, 10), FLOATS_IN(3, 9, 4), B(4)}, TRAIN_RELU6, 270},
    {"batch_norm/empty_batch", build_batch_norm, {X(0, 3, 4), W(3), B(3)}, TRAIN},
    {"batch_norm/empty_plane", build_batch_norm, {X(2, 3, 0), W(3), B(3), MEAN(3), VAR(3)}, EVAL},
    {"batch_norm/no_channels", build_batch_norm, {X(2, 0), W(0), B(0)}, TRAIN},
    {"batch_norm/statistics", build_batch_norm_statistics, {X(5, 3, 7)}, TRAIN, 35, .layouts = true},
    {"batch_norm/statistics_planes", build_batch_norm_statistics, {X(3, 5, 17, 19)}, TRAIN, 969},
    {"batch_norm/statistics_eval", build_batch_norm_statistics, {X(5, 3, 7), MEAN(3), VAR(3)}, EVAL, 35},
    {"batch_norm/statistics_empty", build_batch_norm_statistics, {X(0, 3, 4)}, TRAIN},
    {"layer_norm/statistics", build_layer_norm_statistics, {X(5, 3, 7)}, LN(1), 7, .layouts = true},
    {"layer_norm/statistics_two_dims", build_layer_norm_statistics, {X(5, 3, 7)}, LN(2), 21},
    {"layer_norm/statistics_long", build_layer_norm_statistics, {X(3, 9001)}, LN(1), 9001, .on_cpu = true},
    {"layer_norm/statistics_no_rows", build_layer_norm_statistics, {X(0, 4)}, LN(1)},
    {"layer_norm/statistics_no_columns", build_layer_norm_statistics, {X(3, 0)}, LN(1)},
    {"layer_norm/rstd", build_layer_norm_rstd, {X(5, 3)}, LN(1), 3},
    {"layer_norm/plain", build_layer_norm, {X(5, 3)}, LN(1), 3},
    {"layer_norm/weight", build_layer_norm, {X(5, 3), W(3)}, LN(1), 3, .on_cpu = true},
    {"layer_norm/bias", build_layer_norm_bias, {X(5, 3), B(3)}, LN(1), 5},
    {"layer_norm/matrix", build_layer_norm, {X(4, 7), W(7), B(7)}, LN(1), 7, .layouts = true},
    {"layer_norm/two_dims", build_layer_norm, {X(3, 2, 5), W(2, 5), B(2, 5)}, LN(2), 10, .layouts = true},
    {"layer_norm/all_dims", build_layer_norm, {X(3, 5), W(3, 5), B(3, 5)}, LN(2), 15},
    {"layer_norm/vector", build_layer_norm, {X(9), W(9), B(9)}, LN(1), 9},
    {"layer_norm/one_row", build_layer_norm, {X(1, 300), W(300), B(300)}, LN(1), 300},
    {"layer_norm/row_of_one", build_layer_norm, {X(5, 1), W(1), B(1)}, LN(1), 5},
    {"layer_norm/row_of_two", build_layer_norm, {X(33, 2), W(2), B(2)}, LN(1), 33, .on_cpu = true},
    {"layer_norm/row_of_17", build_layer_norm, {X(31, 17), W(17), B(17)}, LN(1), 31},
    {"layer_norm/row_of_64", build_layer_norm, {X(13, 64), W(64), B(64)}, LN(1), 64},
    {"layer_norm/row_of_259", build_layer_norm, {X(70, 259), W(259), B(259)}, LN(1), 259},
    {"layer_norm/row_of_32", build_layer_norm, {X(70, 32), W(32), B(32)}, LN(1), 70, .on_cpu = true},
    {"layer_norm/row_of_33", build_layer_norm, {X(70, 33), W(33), B(33)}, LN(1), 70},
    {"layer_norm/row_of_4096", build_layer_norm, {X(3, 4096), W(4096), B(4096)}, LN(1), 4096, .on_cpu = true},
    {"layer_norm/row_of_4097", build_layer_norm, {X(2, 4097), W(4097), B(4097)}, LN(1), 4097},
    {"layer_norm/long", build_layer_norm, {X(3, 9001), W(9001), B(9001)}, LN(1), 9001},
    {"layer_norm/many_rows", build_layer_norm, {X(17000, 3), W(3), B(3)}, LN(1), 17000},
    {"layer_norm/no_rows", build_layer_norm, {X(0, 4), W(4), B(4)}, LN(1)},
    {"rms_norm/matrix", build_rms_norm, {X(4, 7), W(7)}, LN(1), 7, .layouts = true},
    {"rms_norm/plain", build_rms_norm, {X(5, 3)}, LN(1), 3, .full = true},
    {"rms_norm/two_dims", build_rms_norm, {X(3, 2, 5), W(2, 5)}, LN(2), 10, .full = true},
    {"rms_norm/row_of_259", build_rms_norm, {X(70, 259), W(259)}, LN(1), 259, .on_cpu = true},
    {"rms_norm/long", build_rms_norm, {X(3, 9001), W(9001)}, LN(1), 9001, .full = true},
    {"rms_norm/no_rows", build_rms_norm, {X(0, 4), W(4)}, LN(1)},
    {"group_norm/images", build_group_norm, {X(3, 6, 5, 7), W(6), B(6)}, GN(3), 105, .layouts = true},
    {"group_norm/plain", build_group_norm, {X(3, 6, 5)}, GN(2), 15},
    {"group_norm/weight", build_group_norm, {X(3, 6, 5), W(6)}, GN(3), 15, .full = true},
    {"group_norm/instances", build_group_norm, {X(2, 5, 37), W(5), B(5)}, GN(5), 74},
    {"group_norm/one_group", build_group_norm, {X(2, 5, 64), W(5), B(5)}, GN(1), 320},
    {"group_norm/rows", build_group_norm, {X(7, 12), W(12), B(12)}, GN(4), 7},
    {"group_norm/pairs", build_group_norm, {X(3, 34, 2), W(34), B(34)}, GN(2), 34, .full = true},
    {"group_norm/long", build_group_norm, {X(2, 4, 3001), W(4), B(4)}, GN(2), 6002},
    {"group_norm/many", build_group_norm, {X(300, 8, 9), W(8), B(8)}, GN(4), 2700, .full = true},
    {"group_norm/empty_batch", build_group_norm, {X(0, 4, 3), W(4), B(4)}, GN(2)},
    {"group_norm/empty_plane", build_group_norm, {X(2, 4, 0), W(4), B(4)}, GN(2)},
    {"layer_norm/no_columns", build_layer_norm, {X(3, 0), W(0), B(0)}, LN(1)},
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(norm_rows, rows, .has_golden = true, .engine = "batch_norm layer_norm");
