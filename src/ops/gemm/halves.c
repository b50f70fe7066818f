/* ops/gemm/halves.c - f16 matrix products on tensor cores (cl/gemm/halves.cl). */
#include <stdio.h>

#include "ops/gemm/blocked.h"
#include "ops/gemm/gemm.h"

enum { WORD_HALVES = 2, MAX_STAGES = 4 };

/* The number of slices in local memory: as many as fit, at least two (kn_block_fits). */
static int64_t stages_of(const kn_limits *limits, const kn_block_shape *s)
{
    return kn_min_i64(MAX_STAGES, (int64_t)limits->local_memory / kn_block_slice_bytes(s, KN_BLOCK_F16));
}

const char *kn_gemm_halves_options(char *buffer, const kn_limits *limits, const kn_block_shape *s, bool a_along_k,
                                   bool b_along_k)
{
    snprintf(buffer, KN_BLOCK_OPTIONS,
             "-DQ=%d -DBM=%d -DBN=%d -DBK=%d -DWARP_M=%d -DWARP_N=%d -DSTAGES=%d -DA_ALONG_K=%d -DB_ALONG_K=%d "
             "-DPTX=%d",
             kn_block_quantum(KN_BLOCK_F16), s->rows, s->columns, WORD_HALVES * s->k_step, s->item_rows,
             s->item_columns, (int)stages_of(limits, s), a_along_k, b_along_k, limits->ptx_capability >= 80 ? 80 : 75);
    return buffer;
}

bool kn_gemm_supports_halves(const kn_limits *limits, int64_t m, int64_t n, int64_t k)
{
    return k < INT32_MAX - 1024 && kn_choose_block(limits, KN_BLOCK_F16, m, n, 1) != NULL;
}

kn_status kn_gemm_halves(kn_stream *stream, const kn_gemm_problem *problem)
{
    const kn_gemm_params *p = &problem->product;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    const kn_block_shape *s = kn_choose_block(limits, KN_BLOCK_F16, p->m, p->n, p->batch);
    const size_t items = (size_t)kn_block_items(s);
    const int quantum = kn_block_quantum(KN_BLOCK_F16);
    const kn_gemm_layout a = kn_gemm_operand_layout(&p->a), b = kn_gemm_operand_layout(&p->b);
    const kn_bounds bounds = kn_bounds_of(problem->activation);
    char options[KN_BLOCK_OPTIONS];
    if (p->m == 0 || p->n == 0 || p->batch == 0)
        return KN_OK;
    return kn_run(stream, .source = "gemm/halves.cl", .kernel = "gemm_halves", .operation = "gemm",
                  .options = kn_gemm_halves_options(options, limits, s, !p->a.transposed, p->b.transposed), .dims = 1,
                  .global = {(size_t)(kn_div_up(p->n, s->columns) * kn_div_up(p->m, s->rows) * p->batch) * items},
                  .local = {items},
                  KN_ARGS(kn_gemm_sized_arg(&p->a, KN_GEMM_HALF), kn_gemm_sized_arg(&p->b, KN_GEMM_HALF),
                          kn_gemm_sized_arg(&p->c, KN_GEMM_HALF), kn_gemm_sized_bias_arg(problem, KN_GEMM_HALF),
                          kn_arg_i32(problem->bias != NULL), kn_arg_i64(p->m), kn_arg_i64(p->n), kn_arg_i32(p->k),
                          kn_arg_struct(&a, sizeof a), kn_arg_struct(&b, sizeof b), kn_arg_i64(p->c.ld),
                          kn_arg_i64(p->c.batch_stride), kn_arg_f32(p->alpha), kn_arg_f32(p->beta),
                          kn_gemm_aligned(&p->a, quantum), kn_gemm_aligned(&p->b, quantum),
                          kn_gemm_aligned(&p->c, WORD_HALVES), kn_arg_f32(bounds.low), kn_arg_f32(bounds.high)));
}
