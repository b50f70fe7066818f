/* ops/gemm/dots.c - matrix products on CPU devices of few rows times a transposed matrix, read in place
 * (cl/gemm/dots.cl), also of bf16: a linear layer on a small batch, or a small layer. */
#include <stdio.h>
#include <string.h>

#include "ops/gemm/gemm.h"
#include "ops/gemm/tile.h"

enum { TILE_COLUMNS = 4, COLUMNS_OF_ONE_ROW = 16 }; /* DOT_COLUMNS of the kernel */

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

/* Instead of tiles. */
static bool pays(const kn_limits *limits, const kn_tile_product *x)
{
    const double lanes = LANE * kn_limits_vector_width(limits, x->f64), k = (double)x->k, batch = (double)x->batch;
    const double results = (double)x->m * (double)kn_round_up_i64(x->n, TILE_COLUMNS) * batch;
    return SLOWER * results * (k + lanes) < kn_tile_cost(limits, x) + STAGING * (double)x->n * k * batch;
}

bool kn_gemm_prefers_dots(const kn_limits *limits, const void *problem)
{
    if (!limits->is_cpu)
        return false;
    const kn_tile_product x = kn_tile_product_of(problem, false);
    return pays(limits, &x);
}

bool kn_gemm_pair_dots_pay(const kn_limits *limits, int64_t m, int64_t n, int64_t k, int64_t batch)
{
    const kn_tile_product words = {.m = m, .n = n, .k = kn_div_up(k, 2), .batch = batch};
    return pays(limits, &words);
}

/* One row of pairs has wide tiles, as far as their sums fit in the registers: it takes 0.7 to 0.9 of the time. Of f32,
 * which memory keeps waiting anyway, as long. */
static int64_t tile_columns(const kn_limits *limits, const kn_gemm_params *p, bool pairs)
{
    const bool many = limits->vector_registers >= 32 || kn_limits_vector_width(limits, false) >= COLUMNS_OF_ONE_ROW;
    return !pairs || p->m > 1 ? TILE_COLUMNS : many ? COLUMNS_OF_ONE_ROW : COLUMNS_OF_ONE_ROW / 2;
}

/* About 32 work-items per compute unit, each a multiple of the tile width. */
static int64_t choose_columns_per_item(const kn_limits *limits, const kn_gemm_params *p, int64_t tile)
{
    int64_t tiles = (p->n + tile - 1) / tile, most = 32 * limits->compute_units;
    int64_t tiles_per_item = tiles * p->batch / most;
    tiles_per_item = tiles_per_item < tiles ? tiles_per_item : tiles;
    return (tiles_per_item > 1 ? tiles_per_item : 1) * tile;
}

static kn_status multiply(kn_stream *stream, const kn_gemm_problem *problem, bool pairs)
{
    const kn_gemm_params *p = &problem->product;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    char options[KN_GEMM_OPTIONS];
    kn_gemm_finish finish;
    const int64_t size = pairs ? KN_GEMM_HALF : kn_gemm_element(p);
    const int64_t tile = tile_columns(limits, p, pairs), columns = choose_columns_per_item(limits, p, tile);
    kn_gemm_layout a = kn_gemm_operand_layout(&p->a), b = kn_gemm_operand_layout(&p->b);
    kn_gemm_vector_options(options, limits, p->f64);
    if (pairs)
        strcat(options, limits->multiplies_pairs ? " -DBFLOAT -DDOTS" : " -DBFLOAT");
    if (tile != TILE_COLUMNS)
        snprintf(options + strlen(options), sizeof options - strlen(options), " -DONE_ROW=%d", (int)tile);
    return kn_run(stream, .source = "gemm/dots.cl", .kernel = "gemm_dots", .operation = "gemm", .options = options,
                  .dims = 2, .global = {(size_t)((p->n + columns - 1) / columns), (size_t)p->batch}, .local = {1, 1},
                  KN_ARGS(kn_gemm_sized_arg(&p->a, size), kn_gemm_sized_arg(&p->b, size),
                          kn_gemm_sized_bias_arg(problem, size), kn_gemm_sized_arg(&p->c, size), kn_arg_i64(p->m),
                          kn_arg_i64(p->n), kn_arg_i64(p->k), kn_arg_i64(a.row_stride), kn_arg_i64(a.batch_stride),
                          kn_arg_i64(b.col_stride), kn_arg_i64(b.batch_stride), kn_arg_i64(p->c.ld),
                          kn_arg_i64(p->c.batch_stride), kn_arg_i64(columns), kn_gemm_finish_arg(&finish, problem)));
}

kn_status kn_gemm_dots(kn_stream *stream, const void *problem) { return multiply(stream, problem, false); }

/* One column is computed as one row, whose elements are divided among work-items. */
static kn_gemm_problem turn_column(const kn_gemm_problem *problem)
{
    kn_gemm_problem turned = *problem;
    kn_gemm_params *p = &turned.product;
    p->m = 1;
    p->n = problem->product.m;
    p->a = problem->product.b;
    p->a.transposed = false;
    p->b = problem->product.a;
    p->b.transposed = true;
    p->c.ld = p->n;
    return turned;
}

kn_status kn_gemm_pair_dots(kn_stream *stream, const kn_gemm_problem *problem)
{
    const kn_gemm_params *p = &problem->product;
    if (!kn_gemm_supports_dots(NULL, problem)) /* a copy, because elements overlapped or batches have several strides */
        return kn_gemm_pairs(stream, problem);
    const bool turns = p->n == 1 && p->c.ld == 1 && !p->a.transposed && !problem->bias;
    const kn_gemm_problem turned = turns ? turn_column(problem) : *problem;
    return multiply(stream, &turned, true);
}
