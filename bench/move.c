/* move.c - copies of transposed views, and in other orders: pure data movement. */
#include "bench.h"

static kn_tensor *transpose(kn_tensor *const *x, const double *p)
{
    return kn_contiguous(kn_transpose(x[0], (int)p[0], (int)p[1]));
}

/* N, C, H, W to N, H, W, C. */
static kn_tensor *channels_last(kn_tensor *const *x, const double *p)
{
    (void)p;
    return kn_contiguous(kn_permute(x[0], (const int[]){0, 2, 3, 1}));
}

static kn_tensor *flip(kn_tensor *const *x, const double *p) { return kn_flip(x[0], (const int[]){(int)p[0]}, 1); }
static kn_tensor *roll(kn_tensor *const *x, const double *p)
{
    return kn_roll(x[0], 1, (const int64_t[]){(int64_t)p[0]}, (const int[]){(int)p[1]});
}
static kn_tensor *tril(kn_tensor *const *x, const double *p) { return kn_tril(x[0], (int64_t)p[0]); }

#define CASE(label, type, text, count, function, input_shape, ...)                                                     \
    {                                                                                                                  \
        .name = label, .shape = text, .dtype = type, .bytes = (type == KN_F64 ? 16.0 : 8.0) * count, BENCH_OPERATION,  \
        .operation = &(const bench_operation){                                                                         \
            .name = #function, .apply = function, .inputs = {input_shape}, .parameters = {__VA_ARGS__}},               \
    }
/* clang-format off */
#define MATRIX(rows, columns) {.ndim = 2, .shape = {rows, columns}}
#define IMAGES(n, c, h, w) {.ndim = 4, .shape = {n, c, h, w}}
#define BATCH(n, rows, columns) {.ndim = 3, .shape = {n, rows, columns}}
/* clang-format on */

static const bench_case cases[] = {
    CASE("transpose/512x512", KN_F32, "512x512", 512 * 512, transpose, MATRIX(512, 512), 0, 1),
    CASE("transpose/4096x4096", KN_F32, "4096x4096", 4096 * 4096, transpose, MATRIX(4096, 4096), 0, 1),
    CASE("transpose/4096x4096/f64", KN_F64, "4096x4096", 4096 * 4096, transpose, MATRIX(4096, 4096), 0, 1),
    CASE("transpose/1000000x3", KN_F32, "1000000x3", 3000000, transpose, MATRIX(1000000, 3), 0, 1),
    CASE("transpose/64x1024x128", KN_F32, "64x1024x128", 64 * 1024 * 128, transpose, BATCH(64, 1024, 128), 1, 2),
    CASE("transpose/heads", KN_F32, "128x1024x64, first two", 64 * 1024 * 128, transpose, BATCH(128, 1024, 64), 0, 1),
    CASE("transpose/channels_last", KN_F32, "8x256x56x56", 8 * 256 * 56 * 56, channels_last, IMAGES(8, 256, 56, 56), 0),
    CASE("move/flip", KN_F32, "1000x1000", 1e6, flip, MATRIX(1000, 1000), 1),
    CASE("move/flip/rows", KN_F32, "1000x1000", 1e6, flip, MATRIX(1000, 1000), 0),
    CASE("move/roll", KN_F32, "1000x1000", 1e6, roll, MATRIX(1000, 1000), 100, 1),
    CASE("move/tril", KN_F32, "1000x1000", 1e6, tril, MATRIX(1000, 1000), 0),
    CASE("gpu/transpose/8192x8192", KN_F32, "8192x8192", 8192 * 8192, transpose, MATRIX(8192, 8192), 0, 1),
    CASE("gpu/transpose/8192x4096/f64", KN_F64, "8192x4096", 8192 * 4096, transpose, MATRIX(8192, 4096), 0, 1),
    CASE("gpu/transpose/heads", KN_F32, "1024x1024x64, first two", 1024 * 1024 * 64, transpose, BATCH(1024, 1024, 64),
         0, 1),
    CASE("gpu/transpose/channels_last", KN_F32, "64x256x56x56", 64 * 256 * 56 * 56, channels_last,
         IMAGES(64, 256, 56, 56), 0),
};
const bench_list bench_move = {cases, sizeof cases / sizeof cases[0]};
