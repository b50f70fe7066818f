/* gemm.c - matrix products: squares, DeepBench's shapes. size: m, n, k. */
#include <stdlib.h>

#include "bench.h"

typedef struct operands {
    kn_tensor *a, *b;
} operands;

static kn_status setup(const bench_case *self, bench_state *state)
{
    operands *o = calloc(1, sizeof *o);
    if (!o)
        return KN_ERR_MEMORY;
    state->data = o;
    const kn_tensor_options options = {.dtype = self->dtype, .device = state->device};
    KN_SCOPE
    {
        o->a = kn_retain(kn_rand_with(2, (int64_t[]){self->size[0], self->size[2]}, &options));
        o->b = kn_retain(kn_rand_with(2, (int64_t[]){self->size[2], self->size[1]}, &options));
    }
    return o->a && o->b ? KN_OK : kn_error_status();
}

static kn_status run(const bench_case *self, bench_state *state)
{
    (void)self;
    operands *o = state->data;
    kn_status status = KN_ERR_MEMORY;
    KN_SCOPE { status = kn_matmul(o->a, o->b) ? KN_OK : kn_error_status(); }
    return status;
}

static void teardown(bench_state *state)
{
    operands *o = state->data;
    if (!o)
        return;
    kn_release(o->a);
    kn_release(o->b);
    free(o);
}

#define GEMM(m, n, k, type, suffix)                                                                                    \
    {                                                                                                                  \
        .name = "gemm/" #m "x" #n "x" #k suffix, .shape = #m "x" #n "x" #k, .dtype = type, .flops = 2.0 * m * n * k,   \
        .bytes = (type == KN_F64 ? 8.0 : 4.0) * ((double)m * k + (double)k * n + (double)m * n), .setup = setup,       \
        .run = run, .teardown = teardown, .size = {m, n, k},                                                           \
    }

static const bench_case cases[] = {
    GEMM(64, 64, 64, KN_F32, ""),       GEMM(128, 128, 128, KN_F32, ""),        GEMM(256, 256, 256, KN_F32, ""),
    GEMM(512, 512, 512, KN_F32, ""),    GEMM(1024, 1024, 1024, KN_F32, ""),     GEMM(2048, 2048, 2048, KN_F32, ""),
    GEMM(4096, 4096, 4096, KN_F32, ""), GEMM(1024, 1024, 1024, KN_F64, "/f64"), GEMM(1760, 16, 1760, KN_F32, ""),
    GEMM(1760, 32, 1760, KN_F32, ""),   GEMM(1760, 64, 1760, KN_F32, ""),       GEMM(1760, 128, 1760, KN_F32, ""),
    GEMM(2560, 64, 2560, KN_F32, ""),   GEMM(35, 8457, 2560, KN_F32, ""),
};
const bench_list bench_gemm = {cases, sizeof cases / sizeof cases[0]};
