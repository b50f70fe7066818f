/* softmax.c - softmax and its logarithm along rows and along channels, forward and backward. Bytes: forward the input
 * and the output; backward both gradients and the output. For GPUs 168 to 256 MiB. */
#include "bench.h"

static kn_tensor *softmax(kn_tensor *const *x, const double *p) { return kn_softmax(x[0], (int)p[0]); }
static kn_tensor *log_softmax(kn_tensor *const *x, const double *p) { return kn_log_softmax(x[0], (int)p[0]); }

/* clang-format off */
#define MATRIX(rows, columns) {.ndim = 2, .shape = {rows, columns}}
#define IMAGES(n, c, h, w) {.ndim = 4, .shape = {n, c, h, w}}
/* clang-format on */

#define CASE(group, function, label, text, count, passes, wanted, ...)                                                 \
    {                                                                                                                  \
        .name = group #function "/" text label, .shape = text, .dtype = KN_F32, .flops = 5.0 * count,                  \
        .bytes = 4.0 * passes * count, BENCH_OPERATION,                                                                \
        .operation = &(const bench_operation){                                                                         \
            .name = #function, .apply = function, .inputs = {__VA_ARGS__}, .parameters = {1}, .gradients = wanted},    \
    }
#define BOTH(group, function, text, count, ...)                                                                        \
    CASE(group, function, "/fwd", text, count, 2, 0, __VA_ARGS__),                                                     \
        CASE(group, function, "/bwd", text, count, 3, 1, __VA_ARGS__)
#define SHAPES(function)                                                                                               \
    BOTH("", function, "128x10", 1280, MATRIX(128, 10)), BOTH("", function, "4096x1024", 4194304, MATRIX(4096, 1024)), \
        BOTH("", function, "256x32000", 8192000, MATRIX(256, 32000)),                                                  \
        BOTH("", function, "8x21x128x128", 2752512, IMAGES(8, 21, 128, 128)),                                          \
        BOTH("gpu/", function, "65536x1024", 67108864, MATRIX(65536, 1024)),                                           \
        BOTH("gpu/", function, "2048x32000", 65536000, MATRIX(2048, 32000)),                                           \
        BOTH("gpu/", function, "128x21x128x128", 44040192, IMAGES(128, 21, 128, 128))

static const bench_case cases[] = {
    SHAPES(softmax),
    SHAPES(log_softmax),
};
const bench_list bench_softmax = {cases, sizeof cases / sizeof cases[0]};
