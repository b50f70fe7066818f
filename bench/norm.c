/* norm.c - normalisation of batches in training, of layers, root mean squares and groups, forward and backward
 * (gradients of the input, the weight and the bias). Bytes: forward reads the input and writes the output; backward
 * reads the input and the gradient and writes a gradient. A second pass over the input, unavoidable if it does not fit
 * in the cache, is not counted. */
#include "bench.h"

static kn_tensor *batch_norm(kn_tensor *const *x, const double *p)
{
    (void)p;
    return kn_batch_norm(x[0], .weight = x[1], .bias = x[2], .running_mean = x[3], .running_var = x[4],
                         .training = true);
}

static kn_tensor *layer_norm(kn_tensor *const *x, const double *p)
{
    return kn_layer_norm(x[0], KN_SHAPE((int64_t)p[0]), .weight = x[1], .bias = x[2]);
}

static kn_tensor *rms_norm(kn_tensor *const *x, const double *p)
{
    return kn_rms_norm(x[0], KN_SHAPE((int64_t)p[0]), .weight = x[1], .eps = 1e-5);
}

static kn_tensor *group_norm(kn_tensor *const *x, const double *p)
{
    return kn_group_norm(x[0], (int64_t)p[0], .weight = x[1], .bias = x[2]);
}

#define CASE(group, function, text, label, count, passes, each, wanted, parameter, ...)                                \
    {                                                                                                                  \
        .name = group #function "/" text label, .shape = text, .dtype = KN_F32, .flops = (each) * (double)(count),     \
        .bytes = 4.0 * passes * (count), BENCH_OPERATION,                                                              \
        .operation = &(const bench_operation){.name = #function,                                                       \
                                              .apply = function,                                                       \
                                              .inputs = {__VA_ARGS__},                                                 \
                                              .parameters = {parameter},                                               \
                                              .gradients = wanted},                                                    \
    }
#define BOTH(group, function, text, count, parameter, ...)                                                             \
    CASE(group, function, text, "/fwd", count, 2, 8, 0, parameter, __VA_ARGS__),                                       \
        CASE(group, function, text, "/bwd", count, 3, 12, 7, parameter, __VA_ARGS__)

/* clang-format off */
#define CHANNELS(c, with) {.ndim = 1, .shape = {c}, .fill = with}
#define BATCH(group, n, c, h, w)                                                                                       \
    BOTH(group, batch_norm, #n "x" #c "x" #h "x" #w, (double)n * c * h * w, 0,                                         \
         {.ndim = 4, .shape = {n, c, h, w}}, CHANNELS(c, BENCH_UNIFORM), CHANNELS(c, BENCH_NORMAL),                    \
         CHANNELS(c, BENCH_ZEROS), CHANNELS(c, BENCH_ONES))
#define LAYER(group, rows, columns)                                                                                    \
    BOTH(group, layer_norm, #rows "x" #columns, (double)rows * columns, columns,                                       \
         {.ndim = 2, .shape = {rows, columns}}, CHANNELS(columns, BENCH_UNIFORM), CHANNELS(columns, BENCH_NORMAL))
/* clang-format on */

/* clang-format off */
#define RMS(rows, columns)                                                                                             \
    BOTH("", rms_norm, #rows "x" #columns, (double)rows * columns, columns,                                            \
         {.ndim = 2, .shape = {rows, columns}}, CHANNELS(columns, BENCH_UNIFORM))
#define GROUP(n, c, h, w, groups)                                                                                      \
    BOTH("", group_norm, #n "x" #c "x" #h "x" #w, (double)n * c * h * w, groups, {.ndim = 4, .shape = {n, c, h, w}},   \
         CHANNELS(c, BENCH_UNIFORM), CHANNELS(c, BENCH_NORMAL))
#define ROWS_OF_BATCH(n, c)                                                                                            \
    BOTH("", batch_norm, #n "x" #c, (double)n * c, 0, {.ndim = 2, .shape = {n, c}},                                    \
         CHANNELS(c, BENCH_UNIFORM), CHANNELS(c, BENCH_NORMAL), CHANNELS(c, BENCH_ZEROS), CHANNELS(c, BENCH_ONES))
/* clang-format on */

static const bench_case cases[] = {
    BATCH("", 32, 64, 32, 32),
    BATCH("", 32, 512, 4, 4),
    BATCH("", 128, 512, 4, 4),
    BATCH("", 32, 256, 14, 14),
    BATCH("", 8, 64, 112, 112),
    BATCH("", 8, 256, 56, 56),
    ROWS_OF_BATCH(4096, 256),
    LAYER("", 1024, 256),
    LAYER("", 4096, 1024),
    LAYER("", 16384, 64),
    LAYER("", 64, 4096),
    RMS(4096, 1024),
    RMS(1024, 256),
    GROUP(32, 64, 32, 32, 8),
    GROUP(8, 256, 56, 56, 32),
    BATCH("gpu/", 64, 64, 112, 112),
    BATCH("gpu/", 64, 256, 56, 56),
    BATCH("gpu/", 128, 1024, 14, 14),
    LAYER("gpu/", 65536, 1024),
    LAYER("gpu/", 8192, 8192),
};
const bench_list bench_norm = {cases, sizeof cases / sizeof cases[0]};
