/* ops/gemm_blocked.c - matrix multiplication on GPUs: blocks of C by work-groups, through local memory
 * (cl/gemm/blocked.cl). */
#include <stdio.h>

#include "ops/gemm.h"

/* A block of rows x columns of C, in steps of k_step; item_rows x item_columns of it per work-item. */
typedef struct block_shape {
    int rows, columns, k_step, item_rows, item_columns;
    double
        efficiency; /* of the multiplication itself, against the largest: small blocks read local memory more often */
} block_shape;

/* 128 x 128 results of f32 take 17 KiB of local memory and 64 registers for the sums. Multiples of 4 throughout, which
 * the kernel's vectors of 16 bytes ask for. */
static const block_shape shapes[] = {
    {128, 128, 8, 8, 8, 1.0}, {64, 64, 16, 4, 4, 0.7},  {32, 32, 32, 4, 4, 0.4},
    {16, 64, 16, 4, 4, 0.35}, {64, 16, 16, 4, 4, 0.35},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int work_items(const block_shape *s) { return s->rows / s->item_rows * (s->columns / s->item_columns); }

/* Two slices of each operand, their rows padded by a vector. */
static size_t local_bytes(const block_shape *s, bool f64)
{
    const int pad = 2 * (f64 ? 2 : 4);
    return (size_t)(2 * s->k_step * (s->rows + s->columns + pad)) * (f64 ? 8 : 4);
}

static bool fits(const block_shape *s, const kn_limits *limits, bool f64)
{
    return local_bytes(s, f64) <= limits->local_memory && (size_t)work_items(s) <= limits->max_work_group_size;
}

/* The blocks are computed in rounds, one block per compute unit in each; the last round is as long as the others. The
 * shape whose rounds take least; NULL where none fits the device. */
static const block_shape *choose_shape(const kn_limits *limits, const kn_gemm_params *p)
{
    const block_shape *best = NULL;
    double least = 0;
    for (int i = 0; i < SHAPES; i++) {
        const block_shape *s = &shapes[i];
        if (!fits(s, limits, p->f64))
            continue;
        int64_t blocks = div_up(p->m, s->rows) * div_up(p->n, s->columns) * p->batch;
        double rounds = (double)div_up(blocks, limits->compute_units > 0 ? limits->compute_units : 1);
        double cost = rounds * s->rows * s->columns / s->efficiency;
        if (!best || cost < least) {
            best = s;
            least = cost;
        }
    }
    return best;
}

/* Whether all that the kernel reads as vectors of 16 bytes starts on such a boundary. */
static bool aligned(const kn_gemm_operand *x, int quantum)
{
    return x->offset % quantum == 0 && x->ld % quantum == 0 && x->batch_stride % quantum == 0;
}

bool kn_gemm_supports_blocked(const kn_limits *limits, const void *problem)
{
    return choose_shape(limits, &((const kn_gemm_problem *)problem)->product) != NULL;
}

/* Until it has been measured beside CLBlast on a GPU, benchmark mode and KOINE_IMPL choose it, nothing else does. */
bool kn_gemm_prefers_blocked(const kn_limits *limits, const void *problem)
{
    (void)limits;
    (void)problem;
    return false;
}

static kn_arg real(bool f64, double value) { return f64 ? kn_arg_f64(value) : kn_arg_f32(value); }

kn_status kn_gemm_blocked(kn_stream *stream, const void *problem_)
{
    const kn_gemm_problem *problem = problem_;
    const kn_gemm_params *p = &problem->product;
    const block_shape *s = choose_shape(kn_device_limits(kn_stream_device(stream)), p);
    const int64_t element = p->f64 ? 8 : 4;
    const int quantum = p->f64 ? 2 : 4;
    const kn_gemm_layout a = kn_gemm_operand_layout(&p->a), b = kn_gemm_operand_layout(&p->b);
    const kn_cut cut = kn_cut_of(problem->activation);
    kn_buffer *bias = problem->bias ? problem->bias : p->b.buffer;
    char options[KN_GEMM_OPTIONS];
    snprintf(options, sizeof options, "%s -DQ=%d -DBM=%d -DBN=%d -DBK=%d -DTM=%d -DTN=%d -DA_ALONG_K=%d -DB_ALONG_K=%d",
             p->f64 ? "-DT=double -DKN_USE_F64" : "-DT=float", quantum, s->rows, s->columns, s->k_step, s->item_rows,
             s->item_columns, !p->a.transposed, p->b.transposed);
    return kn_run(
        stream, .source = "gemm/blocked.cl", .kernel = "gemm_blocked", .operation = "gemm", .options = options,
        .dims = 3,
        .global = {(size_t)(div_up(p->n, s->columns) * work_items(s)), (size_t)div_up(p->m, s->rows), (size_t)p->batch},
        .local = {(size_t)work_items(s), 1, 1},
        KN_ARGS(kn_arg_buffer(p->a.buffer, p->a.offset * element), kn_arg_buffer(p->b.buffer, p->b.offset * element),
                kn_arg_buffer(bias, problem->bias ? problem->bias_offset * element : 0),
                kn_arg_buffer(p->c.buffer, p->c.offset * element), kn_arg_i64(p->m), kn_arg_i64(p->n), kn_arg_i64(p->k),
                kn_arg_struct(&a, sizeof a), kn_arg_struct(&b, sizeof b), kn_arg_i64(p->c.ld),
                kn_arg_i64(p->c.batch_stride), real(p->f64, p->alpha), real(p->f64, p->beta),
                kn_arg_i32(problem->bias != NULL), kn_arg_i32(aligned(&p->a, quantum)),
                kn_arg_i32(aligned(&p->b, quantum)), kn_arg_i32(aligned(&p->c, quantum)), real(p->f64, cut.low),
                real(p->f64, cut.high)));
}
