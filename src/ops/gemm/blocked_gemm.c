/* ops/gemm/blocked_gemm.c - matrix multiplication on GPUs: work-groups compute blocks of C through local memory
 * (cl/gemm/blocked.cl), with ordinary multiply-adds or tensor cores. */
#include "ops/gemm/blocked.h"
#include "ops/gemm/gemm.h"

static const kn_block_shape *choose(const kn_limits *limits, kn_block_arithmetic arithmetic, const kn_gemm_params *p)
{
    return kn_choose_block(limits, arithmetic, p->m, p->n, p->batch);
}

bool kn_gemm_supports_blocked(const kn_limits *limits, const void *problem)
{
    const kn_gemm_params *p = &((const kn_gemm_problem *)problem)->product;
    return choose(limits, kn_block_plain(p->f64), p) != NULL;
}

bool kn_gemm_supports_tensor(const kn_limits *limits, const void *problem)
{
    const kn_gemm_problem *p = problem;
    return !p->full_precision && !p->product.f64 && choose(limits, KN_BLOCK_TF32, &p->product) != NULL;
}

/* Few rows or columns leave most of a block empty: use CLBlast. Not measured against CLBlast on a GPU yet, which has no
 * parameters for recent ones; benchmark mode corrects the choice. */
bool kn_gemm_prefers_blocked(const kn_limits *limits, const void *problem)
{
    const kn_gemm_params *p = &((const kn_gemm_problem *)problem)->product;
    return kn_block_pays(limits, p->m, p->n);
}

static kn_status multiply(kn_stream *stream, const kn_gemm_problem *problem, kn_block_arithmetic arithmetic)
{
    const kn_gemm_params *p = &problem->product;
    const kn_block_shape *s = choose(kn_device_limits(kn_stream_device(stream)), arithmetic, p);
    if (s == NULL) /* a trial of tensor cores on a device that has none; else `supports` was asked */
        return kn_fail(KN_ERR_DEVICE, "the device has no instructions for these blocks");
    const size_t items = (size_t)kn_block_items(s);
    const int quantum = kn_block_quantum(arithmetic);
    const kn_gemm_layout a = kn_gemm_operand_layout(&p->a), b = kn_gemm_operand_layout(&p->b);
    const kn_bounds bounds = kn_bounds_of(problem->activation);
    char options[KN_BLOCK_OPTIONS];
    return kn_run(stream, .source = "gemm/blocked.cl", .kernel = "gemm_blocked", .operation = "gemm",
                  .options = kn_block_options(options, s, arithmetic, !p->a.transposed, p->b.transposed, ""), .dims = 1,
                  .global = {(size_t)(kn_div_up(p->n, s->columns) * kn_div_up(p->m, s->rows) * p->batch) * items},
                  .local = {items},
                  KN_ARGS(kn_gemm_arg(p, &p->a), kn_gemm_arg(p, &p->b), kn_gemm_bias_arg(problem),
                          kn_gemm_arg(p, &p->c), kn_arg_i64(p->m), kn_arg_i64(p->n), kn_arg_i64(p->k),
                          kn_arg_struct(&a, sizeof a), kn_arg_struct(&b, sizeof b), kn_arg_i64(p->c.ld),
                          kn_arg_i64(p->c.batch_stride), kn_arg_f64_or_f32(p->f64, p->alpha),
                          kn_arg_f64_or_f32(p->f64, p->beta), kn_arg_i32(problem->bias != NULL),
                          kn_gemm_aligned(&p->a, quantum), kn_gemm_aligned(&p->b, quantum),
                          kn_gemm_aligned(&p->c, quantum), kn_arg_f64_or_f32(p->f64, bounds.low),
                          kn_arg_f64_or_f32(p->f64, bounds.high)));
}

kn_status kn_gemm_blocked(kn_stream *stream, const void *problem)
{
    return multiply(stream, problem, kn_block_plain(((const kn_gemm_problem *)problem)->product.f64));
}

kn_status kn_gemm_tensor(kn_stream *stream, const void *problem) { return multiply(stream, problem, KN_BLOCK_TF32); }
