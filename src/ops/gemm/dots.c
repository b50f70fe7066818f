/* ops/gemm/dots.c - matrix products on CPU devices of few rows times a transposed matrix, read in place
 * (cl/gemm/dots.cl): a linear layer on a small batch, or a small layer. */
#include "ops/gemm/gemm.h"

enum { TILE_COLUMNS = 4 }; /* DOT_COLUMNS of the kernel */
enum { FEW_ROWS = 64 };    /* above this, packing B pays */
enum { FEW_RESULTS = 16 * 1024 };
enum { LONG_SUM = 256 }; /* below this, adding the lanes of a sum is too expensive */

/* Both operands must be contiguous along k. */
bool kn_gemm_supports_dots(const kn_limits *limits, const void *problem)
{
    const kn_gemm_params *p = &((const kn_gemm_problem *)problem)->product;
    (void)limits;
    return p->k <= 1 || ((!p->a.transposed || p->a.ld == 1) && (p->b.transposed || p->b.ld == 1));
}

bool kn_gemm_prefers_dots(const kn_limits *limits, const void *problem)
{
    const kn_gemm_params *p = &((const kn_gemm_problem *)problem)->product;
    return limits->is_cpu && p->k >= LONG_SUM && (p->m <= FEW_ROWS || p->m <= FEW_RESULTS / p->n);
}

/* About 32 work-items per compute unit, each a multiple of the tile width. */
static int64_t choose_columns_per_item(const kn_limits *limits, const kn_gemm_params *p)
{
    int64_t tiles = (p->n + TILE_COLUMNS - 1) / TILE_COLUMNS, most = 32 * limits->compute_units;
    int64_t tiles_per_item = tiles * p->batch / most;
    tiles_per_item = tiles_per_item < tiles ? tiles_per_item : tiles;
    return (tiles_per_item > 1 ? tiles_per_item : 1) * TILE_COLUMNS;
}

kn_status kn_gemm_dots(kn_stream *stream, const void *problem_)
{
    const kn_gemm_problem *problem = problem_;
    const kn_gemm_params *p = &problem->product;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    char options[KN_GEMM_OPTIONS];
    kn_gemm_finish finish;
    int64_t columns = choose_columns_per_item(limits, p);
    kn_gemm_layout a = kn_gemm_operand_layout(&p->a), b = kn_gemm_operand_layout(&p->b);
    return kn_run(stream, .source = "gemm/dots.cl", .kernel = "gemm_dots", .operation = "gemm",
                  .options = kn_gemm_vector_options(options, limits, p->f64), .dims = 2,
                  .global = {(size_t)((p->n + columns - 1) / columns), (size_t)p->batch}, .local = {1, 1},
                  KN_ARGS(kn_gemm_arg(p, &p->a), kn_gemm_arg(p, &p->b), kn_gemm_bias_arg(problem),
                          kn_gemm_arg(p, &p->c), kn_arg_i64(p->m), kn_arg_i64(p->n), kn_arg_i64(p->k),
                          kn_arg_i64(a.row_stride), kn_arg_i64(a.batch_stride), kn_arg_i64(b.col_stride),
                          kn_arg_i64(b.batch_stride), kn_arg_i64(p->c.ld), kn_arg_i64(p->c.batch_stride),
                          kn_arg_i64(columns), kn_gemm_finish_arg(&finish, problem)));
}
