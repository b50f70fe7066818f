/* ops/gemm_blocked.c - matrix multiplication on GPUs: blocks of C by work-groups, through local memory
 * (cl/gemm/blocked.cl). */
#include "ops/blocked.h"
#include "ops/gemm.h"

static const kn_block_shape *choose(const kn_limits *limits, const kn_gemm_params *p)
{
    return kn_choose_block(limits, p->f64, p->m, p->n, p->batch);
}

bool kn_gemm_supports_blocked(const kn_limits *limits, const void *problem)
{
    return choose(limits, &((const kn_gemm_problem *)problem)->product) != NULL;
}

/* Until it has been measured beside CLBlast on a GPU, benchmark mode and KOINE_IMPL choose it, nothing else does. */
bool kn_gemm_prefers_blocked(const kn_limits *limits, const void *problem)
{
    (void)limits;
    (void)problem;
    return false;
}

/* Whether all that the kernel reads or writes as vectors of 16 bytes starts on such a boundary. */
static kn_arg aligned(const kn_gemm_operand *x, bool f64)
{
    const int quantum = kn_block_quantum(f64);
    return kn_arg_i32(x->offset % quantum == 0 && x->ld % quantum == 0 && x->batch_stride % quantum == 0);
}

kn_status kn_gemm_blocked(kn_stream *stream, const void *problem_)
{
    const kn_gemm_problem *problem = problem_;
    const kn_gemm_params *p = &problem->product;
    const kn_block_shape *s = choose(kn_device_limits(kn_stream_device(stream)), p);
    const size_t items = (size_t)kn_block_items(s);
    const int64_t element = p->f64 ? 8 : 4;
    const kn_gemm_layout a = kn_gemm_operand_layout(&p->a), b = kn_gemm_operand_layout(&p->b);
    const kn_cut cut = kn_cut_of(problem->activation);
    kn_buffer *bias = problem->bias ? problem->bias : p->b.buffer;
    char options[KN_BLOCK_OPTIONS];
    return kn_run(
        stream, .source = "gemm/blocked.cl", .kernel = "gemm_blocked", .operation = "gemm",
        .options = kn_block_options(options, s, p->f64, !p->a.transposed, p->b.transposed, ""), .dims = 3,
        .global = {(size_t)kn_div_up(p->n, s->columns) * items, (size_t)kn_div_up(p->m, s->rows), (size_t)p->batch},
        .local = {items, 1, 1},
        KN_ARGS(kn_arg_buffer(p->a.buffer, p->a.offset * element), kn_arg_buffer(p->b.buffer, p->b.offset * element),
                kn_arg_buffer(bias, problem->bias ? problem->bias_offset * element : 0),
                kn_arg_buffer(p->c.buffer, p->c.offset * element), kn_arg_i64(p->m), kn_arg_i64(p->n), kn_arg_i64(p->k),
                kn_arg_struct(&a, sizeof a), kn_arg_struct(&b, sizeof b), kn_arg_i64(p->c.ld),
                kn_arg_i64(p->c.batch_stride), kn_arg_f64_or_f32(p->f64, p->alpha), kn_arg_f64_or_f32(p->f64, p->beta),
                kn_arg_i32(problem->bias != NULL), aligned(&p->a, p->f64), aligned(&p->b, p->f64),
                aligned(&p->c, p->f64), kn_arg_f64_or_f32(p->f64, cut.low), kn_arg_f64_or_f32(p->f64, cut.high)));
}
