/* ops/gemm/update.c - matrix products of very short sums on CPU devices (cl/gemm/update.cl): outer products, gradients
 * of a layer's weights from a batch of one. */
#include "gemm/update.h"
#include "ops/gemm/gemm.h"

enum { SHORT_SUM = 4, LONG_ROW = 64 };
enum { PER_ITEM = 1 << 15, ITEMS_PER_CORE = 4 }; /* elements of C */
enum { COLUMNS = 1024 };                         /* those of a work-item are a multiple, so that vectors are whole */

/* The product as the kernel computes it: a column, whose rows of op(A) are not contiguous, as the row of the transposed
 * product, op(B)^T op(A)^T. Not with a bias, which is one number for a column. */
static kn_gemm_params product_of(const kn_gemm_problem *problem)
{
    kn_gemm_params p = problem->product;
    if (p.n != 1 || p.batch != 1 || !p.a.transposed || p.c.ld != 1 || problem->bias)
        return p;
    const kn_gemm_operand a = p.a;
    p.a = p.b;
    p.b = a;
    p.a.transposed = !p.a.transposed;
    p.b.transposed = false;
    p.n = p.m;
    p.m = 1;
    p.c.ld = p.n;
    return p;
}

/* Rows of op(B) must be contiguous; the sum's length is a 32-bit number. */
bool kn_gemm_supports_update(const kn_limits *limits, const void *problem)
{
    const kn_gemm_params p = product_of(problem);
    (void)limits;
    return !p.b.transposed && p.k <= INT32_MAX;
}

bool kn_gemm_prefers_update(const kn_limits *limits, const void *problem)
{
    const kn_gemm_params p = product_of(problem);
    return limits->is_cpu && p.k <= SHORT_SUM && p.n >= LONG_ROW;
}

/* Rows are divided among work-items, and columns where rows are too few. */
static kn_gemm_update_size size_of(const kn_gemm_params *p, const kn_limits *limits)
{
    const int64_t rows = p->m * p->batch;
    const int64_t items = kn_min_i64(kn_div_up(rows * p->n, PER_ITEM), ITEMS_PER_CORE * (int64_t)limits->compute_units);
    const int64_t parts = kn_max_i64(items / rows, 1);
    return (kn_gemm_update_size){.m = p->m,
                                 .n = p->n,
                                 .batch = p->batch,
                                 .rows_per_item = kn_div_up(rows, kn_min_i64(items, rows)),
                                 .columns_per_item = kn_round_up_i64(kn_div_up(p->n, parts), COLUMNS),
                                 .k = (int32_t)p->k};
}

kn_status kn_gemm_update(kn_stream *stream, const void *problem_)
{
    const kn_gemm_problem *problem = problem_;
    const kn_gemm_params p = product_of(problem);
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    const kn_gemm_layout a = kn_gemm_operand_layout(&p.a), b = kn_gemm_operand_layout(&p.b),
                         c = kn_gemm_operand_layout(&p.c);
    const kn_gemm_update_size size = size_of(&p, limits);
    char options[KN_GEMM_OPTIONS];
    kn_gemm_finish finish;
    return kn_run(
        stream, .source = "gemm/update.cl", .kernel = "gemm_update", .operation = "gemm",
        .options = kn_gemm_vector_options(options, limits, p.f64), .dims = 2,
        .global = {(size_t)kn_div_up(p.m * p.batch, size.rows_per_item), (size_t)kn_div_up(p.n, size.columns_per_item)},
        .local = {1, 1},
        KN_ARGS(kn_gemm_arg(&p, &p.a), kn_gemm_arg(&p, &p.b), kn_gemm_bias_arg(problem), kn_gemm_arg(&p, &p.c),
                kn_arg_struct(&size, sizeof size), kn_arg_struct(&a, sizeof a), kn_arg_struct(&b, sizeof b),
                kn_arg_struct(&c, sizeof c), kn_gemm_finish_arg(&finish, problem)));
}
