/* ops/gemm/any.c - matrix multiplication on any device: CLBlast, and the reference kernel. */
#include "ops/gemm/gemm.h"

#include <limits.h>

static size_t choose_items(kn_stream *stream, const kn_gemm_params *p)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    int64_t elements = p->m * p->n * p->batch;
    return limits->is_cpu ? (size_t)kn_min_i64(elements, 16 * limits->compute_units)
                          : kn_work_items(limits, elements, 1);
}

kn_status kn_gemm_reference(kn_stream *stream, const void *problem_)
{
    const kn_gemm_problem *problem = problem_;
    const kn_gemm_params *p = &problem->product;
    kn_gemm_layout a = kn_gemm_operand_layout(&p->a), b = kn_gemm_operand_layout(&p->b),
                   c = kn_gemm_operand_layout(&p->c);
    kn_gemm_finish finish;
    return kn_run(stream, .source = "gemm/reference.cl", .kernel = "gemm_reference", .operation = "gemm",
                  .options = kn_options_f64_or_f32(p->f64), .dims = 1, .global = {choose_items(stream, p)},
                  KN_ARGS(kn_gemm_arg(p, &p->a), kn_gemm_arg(p, &p->b), kn_gemm_bias_arg(problem),
                          kn_gemm_arg(p, &p->c), kn_arg_i64(p->m), kn_arg_i64(p->n), kn_arg_i64(p->k),
                          kn_arg_i64(p->batch), kn_arg_struct(&a, sizeof a), kn_arg_struct(&b, sizeof b),
                          kn_arg_struct(&c, sizeof c), kn_gemm_finish_arg(&finish, problem)));
}

/* --- CLBlast ------------------------------------------------------------------------------------------------------ */

static bool below_2_31(const kn_gemm_operand *x, int64_t rows, int64_t columns, int64_t batch)
{
    double last = (double)x->offset + (double)x->batch_stride * (double)(batch - 1) +
                  (double)x->ld * (double)(rows - 1) + (double)columns;
    return last < (double)INT_MAX;
}

/* CLBlast counts elements in 32 bits. */
bool kn_gemm_supports_clblast(const kn_limits *limits, const void *problem_)
{
    const kn_gemm_problem *problem = problem_;
    const kn_gemm_params *p = &problem->product;
    (void)limits;
    return below_2_31(&p->a, p->a.transposed ? p->k : p->m, p->a.transposed ? p->m : p->k, p->batch) &&
           below_2_31(&p->b, p->b.transposed ? p->n : p->k, p->b.transposed ? p->k : p->n, p->batch) &&
           below_2_31(&p->c, p->m, p->n, p->batch);
}

static kn_status cut_result(kn_stream *stream, const kn_gemm_problem *problem)
{
    const kn_gemm_params *p = &problem->product;
    kn_gemm_layout c = kn_gemm_operand_layout(&p->c);
    kn_bounds bounds = kn_bounds_of(problem->activation);
    return kn_run(stream, .source = "gemm/reference.cl", .kernel = "gemm_cut", .operation = "gemm",
                  .options = kn_options_f64_or_f32(p->f64), .dims = 1, .global = {choose_items(stream, p)},
                  KN_ARGS(kn_gemm_arg(p, &p->c), kn_arg_i64(p->m), kn_arg_i64(p->n), kn_arg_i64(p->batch),
                          kn_arg_struct(&c, sizeof c), kn_arg_f64_or_f32(p->f64, bounds.low),
                          kn_arg_f64_or_f32(p->f64, bounds.high)));
}

kn_status kn_gemm_clblast(kn_stream *stream, const void *problem_)
{
    const kn_gemm_problem *problem = problem_;
    kn_gemm_params p = problem->product;
    if (p.k == 0) /* CLBlast does not accept empty sums */
        return kn_gemm_reference(stream, problem);
    if (problem->bias) { /* CLBlast has no bias: C is set to beta C + bias first */
        kn_gemm_layout c = kn_gemm_operand_layout(&p.c);
        KN_TRY(kn_run(stream, .source = "gemm/reference.cl", .kernel = "gemm_start_with_bias", .operation = "gemm",
                      .options = kn_options_f64_or_f32(p.f64), .dims = 1, .global = {choose_items(stream, &p)},
                      KN_ARGS(kn_gemm_bias_arg(problem), kn_gemm_arg(&p, &p.c), kn_arg_i64(p.m), kn_arg_i64(p.n),
                              kn_arg_i64(p.batch), kn_arg_struct(&c, sizeof c), kn_arg_f64_or_f32(p.f64, p.beta))));
        p.beta = 1;
    }
    KN_TRY(kn_clblast_gemm(stream, &p));
    return problem->activation == KN_ACTIVATION_NONE ? KN_OK : cut_result(stream, problem);
}
