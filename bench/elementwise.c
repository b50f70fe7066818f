/* elementwise.c - elementwise operations and dropout: in cache (2^18 elements), in memory (2^24), and for GPUs, whose
 * caches have tens of MiB, 2^26. Bytes: each operation of the chain reads each input and writes each output once. */
#include "bench.h"

static kn_tensor *add(kn_tensor *const *x, const double *p) { return (void)p, kn_add(x[0], x[1]); }
static kn_tensor *mul(kn_tensor *const *x, const double *p) { return (void)p, kn_mul(x[0], x[1]); }
static kn_tensor *multiply_by(kn_tensor *const *x, const double *p) { return kn_mul_scalar(x[0], p[0]); }
static kn_tensor *relu(kn_tensor *const *x, const double *p) { return (void)p, kn_relu(x[0]); }
static kn_tensor *exponential(kn_tensor *const *x, const double *p) { return (void)p, kn_exp(x[0]); }
static kn_tensor *to_float32(kn_tensor *const *x, const double *p) { return (void)p, kn_to_dtype(x[0], KN_F32); }
static kn_tensor *to_float16(kn_tensor *const *x, const double *p) { return (void)p, kn_to_dtype(x[0], KN_F16); }
static kn_tensor *dropout(kn_tensor *const *x, const double *p) { return kn_dropout(x[0], .p = p[0]); }

/* The tanh approximation of GELU as a chain of unfused operations: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715
 * x^3))). */
static kn_tensor *gelu_chain(kn_tensor *const *x, const double *p)
{
    (void)p;
    kn_tensor *inner = kn_add(x[0], kn_mul_scalar(kn_pow_scalar(x[0], 3), 0.044715));
    kn_tensor *gate = kn_add_scalar(kn_tanh(kn_mul_scalar(inner, 0.7978845608028654)), 1);
    return kn_mul(kn_mul_scalar(x[0], 0.5), gate);
}

#define SMALL 262144
#define LARGE 16777216
#define LARGEST 67108864
#define VECTOR(n)                                                                                                      \
    {                                                                                                                  \
        .ndim = 1, .shape = { n }                                                                                      \
    }

/* `passes`: tensors of n elements read or written; `each`: operations per element. */
#define CASE(label, function, n, passes, each, wanted, ...)                                                            \
    {                                                                                                                  \
        .name = label, .shape = #n, .dtype = KN_F32, .flops = (each) * (double)n, .bytes = 4.0 * passes * n,           \
        BENCH_OPERATION,                                                                                               \
        .operation = &(const bench_operation){.name = #function, .apply = function, .gradients = wanted, __VA_ARGS__}, \
    }
#define SIZES(label, function, passes, each, wanted, parameter, ...)                                                   \
    CASE("elementwise/" label "/small", function, 262144, passes, each, wanted, .parameters = {parameter},             \
         __VA_ARGS__(SMALL)),                                                                                          \
        CASE("elementwise/" label "/large", function, 16777216, passes, each, wanted, .parameters = {parameter},       \
             __VA_ARGS__(LARGE)),                                                                                      \
        CASE("gpu/elementwise/" label, function, 67108864, passes, each, wanted, .parameters = {parameter},            \
             __VA_ARGS__(LARGEST))
#define DROPOUT(label, n)                                                                                              \
    {                                                                                                                  \
        .name = label, .shape = #n, .dtype = KN_F32, .bytes = 8.0 * n, BENCH_OPERATION,                                \
        .operation =                                                                                                   \
            &(const bench_operation){.name = "dropout", .apply = dropout, .inputs = {VECTOR(n)}, .parameters = {0.5}}, \
    }
#define ONE(n) .inputs = {VECTOR(n)}
#define TWO(n) .inputs = {VECTOR(n), VECTOR(n)}
#define ROWS_AND_ROW(n) .inputs = {{.ndim = 2, .shape = {n / 1024, 1024}}, {.ndim = 1, .shape = {1024}}}

/* float16 in memory. `moved`: bytes per element. */
#define HALF(label, function, type, moved, ...)                                                                        \
    {                                                                                                                  \
        .name = "half/" label, .shape = "4194304", .dtype = type, .flops = 4194304, .bytes = 4194304.0 * (moved),      \
        BENCH_OPERATION,                                                                                               \
        .operation = &(const bench_operation){.name = #function, .apply = function, __VA_ARGS__(4194304)},             \
    }

/* A tensor [i, j, k] times one that broadcasts in some dimensions. */
#define BROADCAST(label, i, j, k, ...)                                                                                 \
    {                                                                                                                  \
        .name = "elementwise/broadcast_mul/" label, .shape = #i "x" #j "x" #k, .dtype = KN_F32,                        \
        .flops = (double)i * j * k, .bytes = 8.0 * i * j * k, BENCH_OPERATION,                                         \
        .operation = &(const bench_operation){                                                                         \
            .name = "mul",                                                                                             \
            .apply = mul,                                                                                              \
            .inputs = {{.ndim = 3, .shape = {i, j, k}}, {.ndim = 3, .shape = {__VA_ARGS__}}}},                         \
    }

/* Matrices, some of which are stored by columns. `passes`: matrices read or written. */
#define MATRIX(is_transposed)                                                                                          \
    {                                                                                                                  \
        .ndim = 2, .shape = {1024, 1024}, .transposed = is_transposed                                                  \
    }
#define MATRICES(label, function, passes, ...)                                                                         \
    {                                                                                                                  \
        .name = "elementwise/" label, .shape = "1024x1024", .dtype = KN_F32, .flops = 1024 * 1024,                     \
        .bytes = 4.0 * passes * 1024 * 1024, BENCH_OPERATION,                                                          \
        .operation = &(const bench_operation){.name = #function, .apply = function, .inputs = {__VA_ARGS__}},          \
    }

static const bench_case cases[] = {
    SIZES("add", add, 3, 1, 0, 0, TWO),
    SIZES("mul_scalar", multiply_by, 2, 1, 0, 2.5, ONE),
    SIZES("relu", relu, 2, 1, 0, 0, ONE),
    SIZES("relu/backward", relu, 3, 1, 1, 0, ONE),
    SIZES("exp", exponential, 2, 1, 0, 0, ONE),
    SIZES("gelu_chain", gelu_chain, 18, 8, 0, 0, ONE),
    SIZES("broadcast_add", add, 2, 1, 0, 0, ROWS_AND_ROW),
    SIZES("broadcast_add/backward", add, 1, 1, 2, 0, ROWS_AND_ROW),
    BROADCAST("inner", 64, 64, 1024, 64, 64, 1),
    BROADCAST("middle", 64, 64, 1024, 64, 1, 1024),
    BROADCAST("outer", 64, 64, 1024, 1, 64, 1024),
    BROADCAST("short_inner", 65536, 16, 4, 65536, 16, 1),
    BROADCAST("short_middle", 65536, 8, 7, 65536, 1, 7),
    BROADCAST("short_outer", 60000, 10, 7, 1, 1, 7),
    MATRICES("exp/transposed", exponential, 2, MATRIX(true)),
    MATRICES("add/transposed", add, 3, MATRIX(true), MATRIX(true)),
    MATRICES("add/one_transposed", add, 3, MATRIX(false), MATRIX(true)),
    HALF("add", add, KN_F16, 6, TWO),
    HALF("relu", relu, KN_F16, 4, ONE),
    HALF("exp", exponential, KN_F16, 4, ONE),
    HALF("to_float32", to_float32, KN_F16, 6, ONE),
    HALF("from_float32", to_float16, KN_F32, 6, ONE),
    DROPOUT("dropout", 16777216),
    DROPOUT("gpu/dropout", 67108864),
};
const bench_list bench_elementwise = {cases, sizeof cases / sizeof cases[0]};
