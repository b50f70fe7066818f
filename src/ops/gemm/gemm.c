/* ops/gemm/gemm.c - the table of matrix multiplication implementations, and their common code. */
#include "ops/gemm/gemm.h"

#include <stdio.h>
#include <string.h>

#include "ops/gemm/blocked.h"
#include "ops/gemm/instructions.h"

#define ROW(id, devices)                                                                                               \
    {                                                                                                                  \
        .name = #id, .supports = kn_gemm_supports_##id, .prefers = kn_gemm_prefers_##id, .run = kn_gemm_##id,          \
        .timed_on = devices                                                                                            \
    }

static const kn_implementation rows[] = {
    ROW(inner, KN_TIMED_ON_CPUS),
    ROW(skinny, KN_TIMED_ON_CPUS),
    ROW(row, KN_TIMED_ON_CPUS),
    ROW(split, KN_TIMED_ANYWHERE),
    ROW(dots, KN_TIMED_ON_CPUS),
    ROW(update, KN_TIMED_ON_CPUS),
    {.name = "small", .prefers = kn_gemm_prefers_small, .run = kn_gemm_small, .timed_on = KN_TIMED_ON_CPUS},
    {.name = "tiles", .prefers = kn_gemm_prefers_tiles, .run = kn_gemm_tiles, .timed_on = KN_TIMED_ON_CPUS},
    ROW(thin, KN_TIMED_ON_OTHERS),
    {.name = "tensor",
     .supports = kn_gemm_supports_tensor,
     .prefers = kn_gemm_prefers_blocked,
     .works = kn_tensor_cores_work,
     .run = kn_gemm_tensor,
     .timed_on = KN_TIMED_ON_OTHERS,
     .reduced_precision = KN_USES_TF32},
    ROW(blocked, KN_TIMED_ON_OTHERS),
    {.name = "clblast", .supports = kn_gemm_supports_clblast, .run = kn_gemm_clblast, .timed_on = KN_TIMED_ON_OTHERS},
    {.name = "reference", .run = kn_gemm_reference, .timed_on = KN_TIMED_ON_OTHERS},
};

/* A product that accumulates into C gives another result when run again, and the last candidate tried would have said
 * that the sums are done. */
static int describe(const void *problem_, int64_t numbers[KN_PROBLEM_NUMBERS])
{
    const kn_gemm_problem *problem = problem_;
    const kn_gemm_params *p = &problem->product;
    const int64_t all[] = {p->f64,
                           p->m,
                           p->n,
                           p->k,
                           p->batch,
                           p->alpha == 1,
                           problem->bias != NULL,
                           problem->activation,
                           problem->full_precision,
                           p->a.transposed,
                           p->a.ld,
                           p->a.batch_stride,
                           p->b.transposed,
                           p->b.ld,
                           p->b.batch_stride,
                           p->c.ld,
                           p->c.batch_stride};
    if (p->beta != 0 || problem->sums)
        return 0;
    memcpy(numbers, all, sizeof all);
    return (int)(sizeof all / sizeof all[0]);
}

const kn_implementation_table kn_gemm_implementations =
    KN_IMPLEMENTATION_TABLE("gemm", rows, KN_FAMILY_MATMUL, describe);

kn_gemm_layout kn_gemm_operand_layout(const kn_gemm_operand *operand)
{
    return (kn_gemm_layout){
        .row_stride = operand->transposed ? 1 : operand->ld,
        .col_stride = operand->transposed ? operand->ld : 1,
        .batch_stride = operand->batch_stride,
    };
}

const char *kn_gemm_vector_options(char *buffer, const kn_limits *limits, bool f64)
{
    snprintf(buffer, KN_GEMM_OPTIONS, "%s -DVW=%d -DREGISTERS=%d", kn_options_f64_or_f32(f64),
             kn_limits_vector_width(limits, f64), limits->vector_registers);
    return buffer;
}

kn_arg kn_gemm_finish_arg(kn_gemm_finish *storage, const kn_gemm_problem *problem)
{
    const kn_gemm_params *p = &problem->product;
    kn_bounds bounds = kn_bounds_of(problem->activation);
    int has_bias = problem->bias != NULL;
    *storage = (kn_gemm_finish){0};
    if (p->f64) {
        storage->f64 = (kn_gemm_finish_f64){p->alpha, p->beta, bounds.low, bounds.high, has_bias, 0};
        return kn_arg_struct(&storage->f64, sizeof storage->f64);
    }
    storage->f32 =
        (kn_gemm_finish_f32){(float)p->alpha, (float)p->beta, (float)bounds.low, (float)bounds.high, has_bias, 0};
    return kn_arg_struct(&storage->f32, sizeof storage->f32);
}

kn_status kn_gemm(kn_stream *stream, const kn_gemm_problem *problem)
{
    const kn_gemm_params *p = &problem->product;
    if (p->m == 0 || p->n == 0 || p->batch == 0)
        return KN_OK;
    return kn_run_implementation(&kn_gemm_implementations, stream, problem);
}
