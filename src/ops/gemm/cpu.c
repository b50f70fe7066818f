/* ops/gemm/cpu.c - matrix multiplication on CPU devices, in tiles whose sums stay in registers (cl/gemm/tile.cl): from
 * packed panels, or in one launch that reads the operands in place. */
#include "gemm/tile.h"
#include "ops/gemm/tile.h"

/* PoCL assigns halves of the remaining work, the first a little more than half: with fewer units per compute unit a
 * core idles at the end. */
enum { UNITS_PER_CORE = 64, STAGING_ITEMS_PER_CORE = 32 };
enum { ROWS_PER_UNIT = 96, ROWS_PER_UNIT_SHORT = 48 }; /* at most: their pages fit in the first-level TLB */
enum { K_BLOCK_BYTES = 4096 };                         /* of a row of A; a block of B's panel is then 128 to 192 KiB */
enum { IN_PLACE_BYTES = 1 << 18 };                     /* of a block of B's panel read in place */
enum { STAGED_BYTES = 1 << 16 };                       /* of a block that is copied first */
enum { SHORT_SUM = 256 };                              /* such a block stays in the level-2 cache whatever its stride */
enum { B_IN_CACHE = 1 << 18 };                         /* bytes of B that leave room in the level-2 cache */

/* Blocks of k of nearly equal size, each at most `most` long. */
static int64_t choose_k_block(int64_t k, int64_t most)
{
    int64_t blocks = kn_max_i64(1, kn_div_up(k, most));
    return kn_div_up(kn_div_up(k, blocks), 16) * 16;
}

/* Units of at least `least` tiles of rows, but small enough that there are enough units. If all of B stays in cache, C
 * is written along its rows. */
static void choose_unit(const kn_limits *limits, const kn_tile_product *x, kn_tile_shape tile, int64_t least,
                        kn_tile_blocking *cut)
{
    int64_t tiles = kn_div_up(x->m, tile.rows), panels = kn_div_up(x->n, kn_tile_columns(tile));
    int64_t wanted = UNITS_PER_CORE * limits->compute_units;
    bool small_b = x->n * x->k * (x->f64 ? 8 : 4) <= B_IN_CACHE;
    int64_t most_rows = small_b ? tile.rows : x->k <= SHORT_SUM ? ROWS_PER_UNIT_SHORT : ROWS_PER_UNIT;
    int64_t chosen = kn_max_i64(least, kn_min_i64(tiles * panels * x->batch / wanted, most_rows / tile.rows));
    int64_t row_blocks = kn_div_up(tiles, kn_max_i64(1, chosen));
    cut->rows_per_unit = kn_div_up(tiles, row_blocks) * tile.rows; /* nearly equal */
    cut->panels_per_unit = small_b ? kn_max_i64(1, kn_min_i64(panels, row_blocks * panels * x->batch / wanted)) : 1;
}

static int64_t count_units(const kn_tile_product *x, kn_tile_shape tile, kn_tile_blocking cut)
{
    return kn_div_up(x->m, cut.rows_per_unit) * kn_div_up(x->n, kn_tile_columns(tile) * cut.panels_per_unit) * x->batch;
}

/* --- packed ------------------------------------------------------------------------------------------------------- */

enum { PACK_BLOCK = 128 };

/* Allocates the operand's panels. A repeated matrix is packed once. */
static kn_status prepare_panels(kn_stream *stream, const kn_tile_product *x, kn_tile_operand *operand,
                                kn_gemm_pack_job *job)
{
    int64_t batch = operand->layout.batch_stride == 0 ? 1 : x->batch;
    job->length = x->k;
    job->batch_stride = operand->layout.batch_stride;
    job->panels = kn_div_up(job->width, job->panel_width);
    job->block = PACK_BLOCK;
    job->blocks = kn_div_up(x->k, PACK_BLOCK);
    job->items = batch * job->blocks * job->panels;
    return kn_buffer_alloc(&operand->panels, stream,
                           (size_t)(batch * job->panels * x->k * job->panel_width * (x->f64 ? 8 : 4)));
}

static void use_panels(kn_tile_operand *operand, const kn_gemm_pack_job *job)
{
    operand->buffer = operand->panels;
    operand->offset = 0;
    operand->layout.batch_stride = job->batch_stride == 0 ? 0 : job->panels * job->length * job->panel_width;
}

/* Packs B always, and A if it is column-major: rows of A are read in place as fast as from panels. One launch. */
static kn_status pack(kn_stream *stream, kn_tile_product *x, kn_tile_shape tile)
{
    char options[KN_GEMM_OPTIONS];
    int64_t element = x->f64 ? 8 : 4;
    kn_tile_operand *a = &x->a, *b = &x->b;
    kn_gemm_pack_job a_job = {.width = x->m,
                              .length_stride = a->layout.col_stride,
                              .width_stride = a->layout.row_stride,
                              .panel_width = tile.rows};
    kn_gemm_pack_job b_job = {.width = x->n,
                              .length_stride = b->layout.row_stride,
                              .width_stride = b->layout.col_stride,
                              .panel_width = kn_tile_columns(tile)};
    if (a->layout.col_stride != 1)
        KN_TRY(prepare_panels(stream, x, a, &a_job));
    KN_TRY(prepare_panels(stream, x, b, &b_job));
    KN_TRY(kn_run(stream, .source = "gemm/tile.cl", .kernel = "gemm_pack", .operation = "gemm",
                  .options = kn_tile_options(options, tile, x->f64), .dims = 1,
                  .global = {(size_t)(a_job.items + b_job.items)}, .local = {1},
                  KN_ARGS(kn_arg_buffer(a->buffer, a->offset * element),
                          kn_arg_buffer(a->panels ? a->panels : b->panels, 0), kn_arg_struct(&a_job, sizeof a_job),
                          kn_arg_buffer(b->buffer, b->offset * element), kn_arg_buffer(b->panels, 0),
                          kn_arg_struct(&b_job, sizeof b_job))));
    if (a->panels)
        use_panels(a, &a_job);
    use_panels(b, &b_job);
    return KN_OK;
}

bool kn_gemm_prefers_packed(const kn_limits *limits, const void *problem)
{
    (void)problem;
    return limits->is_cpu;
}

kn_status kn_gemm_packed(kn_stream *stream, const void *problem)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    kn_tile_product x = kn_tile_product_of(problem, false);
    kn_tile_shape tile = kn_tile_choose(limits, &x);
    kn_tile_blocking cut = {.k_block = choose_k_block(x.k, K_BLOCK_BYTES / (x.f64 ? 8 : 4)), .units_per_item = 1};
    if (x.k == 0) /* nothing to pack */
        return kn_gemm_direct(stream, problem);
    choose_unit(limits, &x, tile, 1, &cut);
    kn_status status = pack(stream, &x, tile);
    if (status == KN_OK)
        status = kn_tile_multiply(stream, &x, tile, cut);
    kn_buffer_free(x.a.panels);
    kn_buffer_free(x.b.panels);
    return status;
}

/* --- direct ------------------------------------------------------------------------------------------------------- */

enum { FEW_ROWS = 128 }; /* of A: they fit in one unit, so that B is read, and staged, once */
/* For rows of B further apart than a page: each access to a row is used for several panels, and a block has few enough
 * rows for the TLB to keep them until the next access. */
enum { PAGES_IN_TLB = 512, PANELS_PER_PAGE = 4 };
enum { MIN_SUM_TO_TURN = 64 }; /* below, storing C across its rows costs too much */

/* A column-major A would have to be packed; if B has few columns, the product is transposed, and vectors run along A's
 * columns. */
static bool should_turn(const kn_gemm_params *p)
{
    return p->a.transposed && p->a.ld > 1 && p->n < p->m && p->n <= FEW_ROWS && p->k >= MIN_SUM_TO_TURN;
}

/* One launch instead of two pays if the product takes no longer than a launch or two, if B is read so few times that
 * packing it is most of the work, and if the matrices are small anyway. */
bool kn_gemm_prefers_direct(const kn_limits *limits, const void *problem)
{
    const kn_gemm_params *p = &((const kn_gemm_problem *)problem)->product;
    bool small = (double)p->m * (double)p->n * (double)p->k <= 17e6, used_once = p->m <= FEW_ROWS || should_turn(p);
    bool in_cache = p->k <= SHORT_SUM && !p->b.transposed && p->m <= 2048 && p->n <= 2048;
    return limits->is_cpu && (small || used_once || in_cache);
}

static kn_tile_blocking cut_direct(const kn_limits *limits, const kn_tile_product *x, kn_tile_shape tile)
{
    int64_t element = x->f64 ? 8 : 4, columns = kn_tile_columns(tile);
    bool staged = x->b.layout.col_stride != 1, far_apart = !staged && x->b.layout.row_stride * element >= 4096;
    kn_tile_blocking cut = {.units_per_item = 1};
    int64_t in_place = far_apart ? PAGES_IN_TLB : IN_PLACE_BYTES / (columns * element);
    cut.k_block = choose_k_block(x->k, staged ? STAGED_BYTES / (columns * element) : in_place);
    /* Each row block stages B again, which eight tiles amortize. */
    choose_unit(limits, x, tile, staged ? 8 : 1, &cut);
    if (far_apart && x->k > cut.k_block)
        cut.panels_per_unit = kn_min_i64(kn_div_up(x->n, columns), PANELS_PER_PAGE);
    int64_t items = (staged ? STAGING_ITEMS_PER_CORE : UNITS_PER_CORE) * limits->compute_units;
    cut.units_per_item = kn_max_i64(1, kn_div_up(count_units(x, tile, cut), items));
    return cut;
}

kn_status kn_gemm_direct(kn_stream *stream, const void *problem_)
{
    const kn_gemm_problem *problem = problem_;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    kn_tile_product x = kn_tile_product_of(problem, should_turn(&problem->product));
    kn_tile_shape tile = kn_tile_choose(limits, &x);
    return kn_tile_multiply(stream, &x, tile, cut_direct(limits, &x, tile));
}
