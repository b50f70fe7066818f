/* gemm.c - matrix products: squares, DeepBench's shapes, the layers of a perceptron forward and backward, batches (the
 * two products of attention); operands plain or transposed; some in bf16. For GPUs also large squares in other
 * precisions: TF32 allowed, f16, f64. */
#include "bench.h"

static kn_tensor *matmul(kn_tensor *const *x, const double *parameters)
{
    (void)parameters;
    return kn_matmul(x[0], x[1]);
}

static kn_tensor *matmul_nt(kn_tensor *const *x, const double *parameters)
{
    (void)parameters;
    return kn_matmul(x[0], kn_transpose(x[1], -2, -1));
}

#define SIZE(type) (type == KN_F64 ? 8.0 : type == KN_F16 || type == KN_BF16 ? 2.0 : 4.0)
#define NAMED(group, m, n, k, type, suffix, a_transposed, b_transposed, tf32_)                                         \
    {                                                                                                                  \
        .name = group "gemm/" #m "x" #n "x" #k suffix, .shape = #m "x" #n "x" #k, .dtype = type,                       \
        .flops = 2.0 * m * n * k, .bytes = SIZE(type) * ((double)m * k + (double)k * n + (double)m * n),               \
        BENCH_OPERATION,                                                                                               \
        .operation = &(const bench_operation){                                                                         \
            .name = "matmul",                                                                                          \
            .apply = matmul,                                                                                           \
            .inputs = {{.ndim = 2, .shape = {m, k}, .fill = BENCH_UNIFORM, .transposed = a_transposed},                \
                       {.ndim = 2, .shape = {k, n}, .fill = BENCH_UNIFORM, .transposed = b_transposed}},               \
            .tf32 = tf32_},                                                                                            \
    }
#define PRODUCT(m, n, k, type, suffix, a_transposed, b_transposed)                                                     \
    NAMED("", m, n, k, type, suffix, a_transposed, b_transposed, false)
#define GEMM(m, n, k) PRODUCT(m, n, k, KN_F32, "", false, false)
#define GEMM_F64(m, n, k) PRODUCT(m, n, k, KN_F64, "/f64", false, false)
#define GEMM_TRANSPOSED(m, n, k)                                                                                       \
    PRODUCT(m, n, k, KN_F32, "/nt", false, true), PRODUCT(m, n, k, KN_F32, "/tn", true, false),                        \
        PRODUCT(m, n, k, KN_F32, "/tt", true, true)

#define LARGE(m, n, k)                                                                                                 \
    NAMED("gpu/", m, n, k, KN_F32, "", false, false, false),                                                           \
        NAMED("gpu/", m, n, k, KN_F32, "/tf32", false, false, true),                                                   \
        NAMED("gpu/", m, n, k, KN_F16, "/f16", false, false, false)

#define GEMM_BF16(m, n, k, suffix, a_transposed, b_transposed)                                                         \
    NAMED("bf16/", m, n, k, KN_BF16, suffix, a_transposed, b_transposed, false)

#define BATCHED(count, m, n, k, suffix, op, ...)                                                                       \
    {                                                                                                                  \
        .name = "gemm/batched/" #count "x" #m "x" #n "x" #k suffix, .shape = #count "x" #m "x" #n "x" #k,              \
        .dtype = KN_F32, .flops = 2.0 * count * m * n * k,                                                             \
        .bytes = 4.0 * count * ((double)m * k + (double)k * n + (double)m * n), BENCH_OPERATION,                       \
        .operation =                                                                                                   \
            &(const bench_operation){.name = #op,                                                                      \
                                     .apply = op,                                                                      \
                                     .inputs = {{.ndim = 3, .shape = {count, m, k}, .fill = BENCH_UNIFORM},            \
                                                {.ndim = 3, .shape = {count, __VA_ARGS__}, .fill = BENCH_UNIFORM}}},   \
    }

static const bench_case cases[] = {
    GEMM(64, 64, 64),
    GEMM(128, 128, 128),
    GEMM(256, 256, 256),
    GEMM(512, 512, 512),
    GEMM(1024, 1024, 1024),
    GEMM(2048, 2048, 2048),
    GEMM(4096, 4096, 4096),
    GEMM_TRANSPOSED(1024, 1024, 1024),
    GEMM_F64(512, 512, 512),
    GEMM_F64(1024, 1024, 1024),
    GEMM_F64(2048, 2048, 2048),
    GEMM(1760, 16, 1760),
    GEMM(1760, 32, 1760),
    GEMM(1760, 64, 1760),
    GEMM(1760, 128, 1760),
    GEMM_TRANSPOSED(1760, 32, 1760),
    GEMM(2560, 64, 2560),
    GEMM_TRANSPOSED(2560, 64, 2560),
    GEMM(5124, 9124, 2560),
    GEMM(35, 8457, 2560),
    GEMM_TRANSPOSED(35, 8457, 2560),
    GEMM(1, 4096, 4096),
    GEMM(4096, 1, 4096),
    GEMM(4096, 4096, 16),
    PRODUCT(128, 512, 784, KN_F32, "/nt", false, true),
    PRODUCT(128, 512, 512, KN_F32, "", false, false),
    PRODUCT(512, 784, 128, KN_F32, "/tn", true, false),
    PRODUCT(10, 512, 128, KN_F32, "/tn", true, false),
    GEMM(2000, 1, 500),
    BATCHED(64, 128, 128, 64, "/nt", matmul_nt, 128, 64),
    BATCHED(64, 128, 64, 128, "", matmul, 128, 64),
    BATCHED(1000, 16, 16, 16, "", matmul, 16, 16),
    GEMM_BF16(256, 256, 256, "/nt", false, true),
    GEMM_BF16(1024, 1024, 1024, "", false, false),
    GEMM_BF16(1024, 1024, 1024, "/nt", false, true),
    GEMM_BF16(1024, 1024, 1024, "/tn", true, false),
    GEMM_BF16(2048, 2048, 2048, "", false, false),
    GEMM_BF16(1024, 1024, 256, "/nt", false, true),
    GEMM_BF16(1024, 256, 1024, "", false, false),
    GEMM_BF16(1024, 256, 1024, "/tn", true, false),
    GEMM_BF16(16, 4096, 4096, "/nt", false, true),
    GEMM_BF16(1, 4096, 4096, "/nt", false, true),
    NAMED("gpu/", 1024, 1024, 1024, KN_F32, "/tf32", false, false, true),
    NAMED("gpu/", 1024, 1024, 1024, KN_F16, "/f16", false, false, false),
    LARGE(4096, 4096, 4096),
    LARGE(8192, 8192, 8192),
    NAMED("gpu/", 4096, 4096, 4096, KN_F32, "/nt", false, true, false),
    NAMED("gpu/", 4096, 4096, 4096, KN_F32, "/tn", true, false, false),
    NAMED("gpu/", 4096, 4096, 4096, KN_F64, "/f64", false, false, false),
};
const bench_list bench_gemm = {cases, sizeof cases / sizeof cases[0]};
