/* ops/gemm/update.c - matrix products of very short sums on CPU devices (cl/gemm/update.cl): outer products, gradients
 * of a layer's weights from a batch of one. */
#include "gemm/update.h"
#include "ops/gemm/gemm.h"

enum { SHORT_SUM = 4, LONG_ROW = 64 };
enum { PER_ITEM = 1 << 15, ITEMS_PER_CORE = 4 }; /* elements of C */

/* Rows of op(B) must be contiguous; the sum's length is a 32-bit number. */
bool kn_gemm_supports_update(const kn_limits *limits, const void *problem)
{
    const kn_gemm_params *p = &((const kn_gemm_problem *)problem)->product;
    (void)limits;
    return !p->b.transposed && p->k <= INT32_MAX;
}

bool kn_gemm_prefers_update(const kn_limits *limits, const void *problem)
{
    const kn_gemm_params *p = &((const kn_gemm_problem *)problem)->product;
    return limits->is_cpu && p->k <= SHORT_SUM && p->n >= LONG_ROW;
}

kn_status kn_gemm_update(kn_stream *stream, const void *problem_)
{
    const kn_gemm_problem *problem = problem_;
    const kn_gemm_params *p = &problem->product;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    const kn_gemm_layout a = kn_gemm_operand_layout(&p->a), b = kn_gemm_operand_layout(&p->b),
                         c = kn_gemm_operand_layout(&p->c);
    const int64_t rows = p->m * p->batch;
    const int64_t items = kn_min_i64(kn_div_up(rows * p->n, PER_ITEM), ITEMS_PER_CORE * (int64_t)limits->compute_units);
    const kn_gemm_update_size size = {
        .m = p->m, .n = p->n, .batch = p->batch, .rows_per_item = kn_div_up(rows, items), .k = (int32_t)p->k};
    char options[KN_GEMM_OPTIONS];
    kn_gemm_finish finish;
    return kn_run(stream, .source = "gemm/update.cl", .kernel = "gemm_update", .operation = "gemm",
                  .options = kn_gemm_vector_options(options, limits, p->f64), .dims = 1,
                  .global = {(size_t)kn_div_up(rows, size.rows_per_item)}, .local = {1},
                  KN_ARGS(kn_gemm_arg(p, &p->a), kn_gemm_arg(p, &p->b), kn_gemm_bias_arg(problem),
                          kn_gemm_arg(p, &p->c), kn_arg_struct(&size, sizeof size), kn_arg_struct(&a, sizeof a),
                          kn_arg_struct(&b, sizeof b), kn_arg_struct(&c, sizeof c),
                          kn_gemm_finish_arg(&finish, problem)));
}
