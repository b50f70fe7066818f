/* ops/gemm/cpu.c - matrix multiplication on CPU devices, in tiles whose sums stay in registers (cl/gemm/tile.cl): how
 * the work is divided. */
#include "ops/gemm/tile.h"

enum { PANEL_BYTES = 1 << 17 };       /* of a block of a panel of B */
enum { PANEL_BLOCK_BYTES = 1 << 20 }; /* of a block of panels: in the level-2 cache */
enum { STAGED_A_BYTES = 3 << 17 };    /* of a block of rows of A: with that in the level-2 cache */
enum { ROW_BLOCK = 48 };              /* in place: their pages fit in the first-level TLB */
enum { SHORT_SUM = 32 };              /* storing C takes longer: along its rows */
enum { FEW_ROWS = 128 };              /* or columns: staging the other operand costs as much as reading it in place */
enum { FEW_COLUMNS = 32 };            /* of C: staging A costs as much as it saves */
enum { FETCHED_ROWS = 512 };          /* or columns, if rows in place are fetched ahead */
enum { NEARBY = 2048 };               /* bytes between rows of B that few rows of A read as fast in place */
enum { MANY_ROWS = 512 };             /* of A: in place only if B's rows use all sets of the level-1 cache, */
enum { FEW_SETS = 1024 };             /* which those that are multiples of this apart do not, and A is in place */
enum { UNITS_PER_CORE = 4, ITEMS_PER_CORE = 64 };
enum { MIN_SUM_TO_TURN = 64 }; /* below, storing C across its rows costs too much */

/* A column-major A would have to be staged; if B has few columns, the product is transposed, and vectors run along A's
 * columns. */
static bool should_turn(const kn_gemm_params *p)
{
    return p->a.transposed && p->a.ld > 1 && p->n < p->m && p->n <= FEW_ROWS && p->k >= MIN_SUM_TO_TURN;
}

/* An A whose columns are contiguous: in place its strides are unknown, and elements of a row may be in different
 * pages. */
static bool stages_a(const kn_tile_product *x)
{
    return x->a.layout.row_stride == 1 && x->a.layout.col_stride != 1 && x->n > FEW_COLUMNS && !kn_tile_is_small(x);
}

/* Not a B with short rows, nor a small one for few rows, nor, if rows are fetched ahead, any for up to 512: those take
 * 0.6 to 1 of the time in place, more 1 to 1.05 (EPYC of family 25, model 17). In place a panel's lines share sets of
 * the level-2 cache, as if it took all of B: where that is half the cache or more, staging it takes 0.75 to 0.9 of the
 * time. */
static bool stages_b(const kn_limits *limits, const kn_tile_product *x, bool a_staged)
{
    const int64_t element = x->f64 ? 8 : 4, distance = x->b.layout.row_stride * element;
    const bool small = x->n * x->k * element <= PANEL_BLOCK_BYTES;
    if (x->b.layout.col_stride != 1)
        return true;
    if (distance > NEARBY)
        return kn_tile_fetches_ahead(limits) ? x->m > FETCHED_ROWS : !(x->m <= FEW_ROWS && small);
    if (x->m > FEW_ROWS && x->k * distance > (int64_t)limits->core_cache / 2)
        return true;
    return x->m >= MANY_ROWS && (a_staged || distance % FEW_SETS == 0);
}

/* In multiplications: reading and staging an element, and how much later than the first core others start. */
#define READING 5.0
#define STAGING 10.0
#define LATE_START 262144.0

/* When all of `units` are done that take `each`, if the first core starts at once and the others when `late`. */
static double finish_time(int64_t units, double each, double late, int64_t cores)
{
    double best = (double)units * each;
    if (cores == 1)
        return best;
    for (int64_t first = kn_div_up(units, cores); first < units; first++) {
        const double own = (double)first * each;
        const double others = late + (double)kn_div_up(units - first, cores - 1) * each;
        const double time = own > others ? own : others;
        if (time < best)
            best = time;
        if (own >= others)
            break;
    }
    return best;
}

/* Divides each C into equal units, a multiple of the cores, or of a batch's leaves them whole. More units per core
 * balance what threads that wake late leave to the first, but each unit reads its operands. */
static void choose_units(const kn_limits *limits, const kn_tile_product *x, kn_tile_shape tile, kn_tile_blocking *cut)
{
    const int64_t tiles = kn_div_up(x->m, tile.rows), columns = kn_tile_columns(tile);
    const int64_t panels = kn_div_up(x->n, columns), cores = limits->compute_units;
    const double late = LATE_START / (double)kn_max_i64(1, x->k) / (x->f64 ? 2 : 1);
    /* The last panel, if it is staged alone: by one of the units side by side. */
    const double edge = cut->b_staged || x->n % columns == 0 ? 0 : (double)columns * STAGING;
    double least = 0;
    for (int64_t i = x->batch > 1 ? 0 : 1; i <= UNITS_PER_CORE; i++) {
        const int64_t parts = i == 0 ? 1 : i * cores;
        for (int64_t row_parts = parts; row_parts >= 1; row_parts--) {
            if (parts % row_parts != 0)
                continue;
            const int64_t unit_tiles = kn_div_up(tiles, row_parts), unit_panels = kn_div_up(panels, parts / row_parts);
            const int64_t units = kn_div_up(tiles, unit_tiles) * kn_div_up(panels, unit_panels) * x->batch;
            const double rows = (double)(unit_tiles * tile.rows), width = (double)(unit_panels * columns);
            const double reading = width * (READING + (cut->b_staged ? STAGING : 0)) +
                                   rows * (READING + (cut->a_staged ? STAGING : 0)) +
                                   edge / (double)kn_div_up(panels, unit_panels);
            const double each = rows * width + reading, cost = finish_time(units, each, late, cores);
            const bool one_core = cost >= (double)units * each; /* one item: a launch of several costs two */
            if (least == 0 || cost < 0.999 * least) {
                least = cost;
                cut->rows_per_unit = unit_tiles * tile.rows;
                cut->panels_per_unit = unit_panels;
                cut->units_per_item = one_core ? units : kn_div_up(units, ITEMS_PER_CORE * cores);
            }
        }
    }
}

/* Blocks of nearly equal size, each at most `most` long. */
static int64_t even_block(int64_t size, int64_t most) { return kn_div_up(size, kn_div_up(size, kn_max_i64(1, most))); }

kn_tile_blocking kn_tile_divide(const kn_limits *limits, const kn_tile_product *x, kn_tile_shape tile, bool a_staged,
                                bool b_staged)
{
    const int64_t element = x->f64 ? 8 : 4, columns = kn_tile_columns(tile), k = kn_max_i64(1, x->k);
    kn_tile_blocking cut = {.a_staged = a_staged, .b_staged = b_staged};
    choose_units(limits, x, tile, &cut);
    cut.k_block = kn_round_up_i64(even_block(k, PANEL_BYTES / (columns * element)), 16);
    const int64_t k_count = kn_min_i64(k, cut.k_block), tiles = cut.rows_per_unit / tile.rows;
    const int64_t rows = k <= SHORT_SUM ? 1 : cut.a_staged ? STAGED_A_BYTES / (k_count * element) : ROW_BLOCK;
    cut.row_block = even_block(tiles, rows / tile.rows) * tile.rows;
    const bool once = tiles * tile.rows <= cut.row_block && k_count == k; /* a panel is used as soon as it is staged */
    cut.panel_block = once ? 1 : even_block(cut.panels_per_unit, PANEL_BLOCK_BYTES / (k_count * columns * element));
    return cut;
}

bool kn_gemm_prefers_tiles(const kn_limits *limits, const void *problem)
{
    (void)problem;
    return limits->is_cpu;
}

kn_status kn_tile_run(kn_stream *stream, const kn_tile_product *x)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    const bool a_staged = stages_a(x);
    const kn_tile_shape tile = kn_tile_choose(limits, x, a_staged);
    return kn_tile_multiply(stream, x, tile, kn_tile_divide(limits, x, tile, a_staged, stages_b(limits, x, a_staged)));
}

kn_status kn_gemm_tiles(kn_stream *stream, const void *problem_)
{
    const kn_gemm_problem *problem = problem_;
    const kn_tile_product x = kn_tile_product_of(problem, should_turn(&problem->product));
    return kn_tile_run(stream, &x);
}
