/* pooling.c - pooling of images, forward and backward: the one after ResNet-50's stem, VGG's halving, and the mean over
 * each image at a network's end. Bytes: forward reads the input and writes the output; backward reads the output's
 * gradient and writes the input's. (Looking up the positions of the maxima is not counted.) */
#include "bench.h"

static kn_tensor *max_pool2d(kn_tensor *const *x, const double *p)
{
    return kn_max_pool2d(x[0], .kernel_size = (int64_t)p[0], .stride = (int64_t)p[1], .padding = (int64_t)p[2]);
}

static kn_tensor *image_mean(kn_tensor *const *x, const double *p)
{
    (void)p;
    return kn_adaptive_avg_pool2d(x[0], 1, 1);
}

#define CASE(label, function, pass, n, c, h, w, out, wanted, ...)                                                      \
    {                                                                                                                  \
        .name = label "/" #n "x" #c "x" #h "x" #w pass, .shape = #n "x" #c "x" #h "x" #w, .dtype = KN_F32,             \
        .bytes = 4.0 * n * c * ((double)h * w + (double)(out) * (out)), BENCH_OPERATION,                               \
        .operation = &(const bench_operation){.name = #function,                                                       \
                                              .apply = function,                                                       \
                                              .inputs = {{.ndim = 4, .shape = {n, c, h, w}}},                          \
                                              .parameters = {__VA_ARGS__},                                             \
                                              .gradients = wanted},                                                    \
    }
#define BOTH(label, function, n, c, h, w, out, ...)                                                                    \
    CASE(label, function, "/fwd", n, c, h, w, out, 0, __VA_ARGS__),                                                    \
        CASE(label, function, "/bwd", n, c, h, w, out, 1, __VA_ARGS__)

static const bench_case cases[] = {
    BOTH("pool/max_3s2", max_pool2d, 8, 64, 112, 112, 56, 3, 2, 1),
    BOTH("pool/max_2", max_pool2d, 8, 128, 112, 112, 56, 2, 2, 0),
    BOTH("pool/mean", image_mean, 8, 2048, 7, 7, 1, 0),
    BOTH("gpu/pool/max_3s2", max_pool2d, 64, 64, 112, 112, 56, 3, 2, 1),
    BOTH("gpu/pool/max_2", max_pool2d, 32, 128, 112, 112, 56, 2, 2, 0),
    BOTH("gpu/pool/mean", image_mean, 256, 2048, 7, 7, 1, 0),
};
const bench_list bench_pooling = {cases, sizeof cases / sizeof cases[0]};
