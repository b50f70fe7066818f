/* ops/gemm/dots.c - matrix products on CPU devices of few rows times a transposed matrix, read in place
 * (cl/gemm/dots.cl): a linear layer on a small batch, or a small layer. */
#include "ops/gemm/gemm.h"
#include "ops/gemm/tile.h"

enum { TILE_COLUMNS = 4 }; /* DOT_COLUMNS of the kernel */

/* Both operands must be contiguous along k. */
bool kn_gemm_supports_dots(const kn_limits *limits, const void *problem)
{
    const kn_gemm_params *p = &((const kn_gemm_problem *)problem)->product;
    (void)limits;
    return p->k <= 1 || ((!p->a.transposed || p->a.ld == 1) && (p->b.transposed || p->b.ld == 1));
}

/* In multiplications, measured on an Intel Xeon: adding a lane of a sum, and staging an element of B for tiles. */
#define LANE 12.5
#define STAGING 15.0
#define SLOWER 1.1 /* than multiplications of tiles, since rows of B are not aligned */

bool kn_gemm_prefers_dots(const kn_limits *limits, const void *problem)
{
    const kn_gemm_params *p = &((const kn_gemm_problem *)problem)->product;
    if (!limits->is_cpu)
        return false;
    const kn_tile_product tiles = kn_tile_product_of(problem, false);
    const double lanes = LANE * kn_limits_vector_width(limits, p->f64), k = (double)p->k, batch = (double)p->batch;
    const double results = (double)p->m * (double)kn_round_up_i64(p->n, TILE_COLUMNS) * batch;
    return SLOWER * results * (k + lanes) < kn_tile_cost(limits, &tiles) + STAGING * (double)p->n * k * batch;
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
