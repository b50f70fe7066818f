/* ops/gemm/tile.c - tile shapes, and the launch of gemm/tile.cl. */
#include "ops/gemm/tile.h"

#include <stdio.h>
#include <string.h>

/* --- shapes ------------------------------------------------------------------------------------------------------- */

/* `cost` of a multiplication, in percent, with a staged A and with one in place: with one vector there is a load for
 * each multiplication, with few rows too little work to hide the latency, and each row in place needs a register for
 * its address, of which there are 16. The best first among equal costs. */
typedef struct shape {
    int vectors, rows, cost, cost_in_place;
} shape;

/* 24 sums of 32 registers. Wide tiles read fewer elements of A, each of which has an instruction of its own. */
static const shape shapes_of_32[] = {{4, 6, 97, 93},    {3, 8, 98, 98},    {2, 12, 100, 100},
                                     {1, 24, 104, 150}, {1, 16, 106, 145}, {1, 8, 115, 135}};
/* 12 sums of 16 registers: the compiler needs one for the broadcast. */
static const shape shapes_of_16[] = {
    {2, 6, 100, 100}, {3, 4, 100, 100}, {1, 12, 106, 106}, {1, 8, 115, 115}, {1, 4, 180, 180}};

enum { MAX_ROWS_IN_ONE_SET = 12, SET_STRIDE = 2048 };

/* Rows a multiple of 2 KiB apart share one or two sets of the level-1 cache, which hold some 12 lines each. */
static bool rows_collide(const kn_tile_product *x, int rows)
{
    int64_t stride = x->a.layout.row_stride * (x->f64 ? 8 : 4);
    return x->a.layout.row_stride != 1 && rows > MAX_ROWS_IN_ONE_SET && stride % SET_STRIDE == 0;
}

static double cost_of(const kn_tile_product *x, const shape *s, int width, bool a_staged)
{
    const int64_t columns = (int64_t)s->vectors * width;
    const double cost = (double)kn_round_up_i64(x->m, s->rows) * (double)kn_round_up_i64(x->n, columns) *
                        (a_staged ? s->cost : s->cost_in_place);
    return rows_collide(x, s->rows) ? 4 * cost : cost;
}

/* Each shape takes the compiler more than a second when it is first used, so products that take no longer than their
 * launch share this one, and somewhat larger ones do where it costs next to nothing. */
enum { SHARED_VECTORS = 2 };
static bool may_share(const kn_tile_product *x, double cost, double least)
{
    return kn_tile_multiplications(x) <= 1 << 17 || (kn_tile_is_small(x) && cost <= 1.1 * least);
}

static const shape *choose(const kn_limits *limits, const kn_tile_product *x, bool a_staged)
{
    const bool many = limits->vector_registers >= 32;
    const shape *shapes = many ? shapes_of_32 : shapes_of_16, *best = NULL, *shared = NULL;
    const int count = (int)(many ? sizeof shapes_of_32 : sizeof shapes_of_16) / (int)sizeof(shape);
    const int width = kn_limits_vector_width(limits, x->f64);
    double least = 0;
    for (int i = 0; i < count; i++) {
        const shape *s = &shapes[i];
        const double cost = cost_of(x, s, width, a_staged);
        if (s->vectors == SHARED_VECTORS)
            shared = s;
        if (!best || cost < least) {
            best = s;
            least = cost;
        }
    }
    if (may_share(x, cost_of(x, shared, width, a_staged), least))
        best = shared;
    return best;
}

kn_tile_shape kn_tile_choose(const kn_limits *limits, const kn_tile_product *x, bool a_staged)
{
    const shape *best = choose(limits, x, a_staged);
    return (kn_tile_shape){kn_limits_vector_width(limits, x->f64), best->vectors, best->rows};
}

double kn_tile_cost(const kn_limits *limits, const kn_tile_product *x)
{
    const int width = kn_limits_vector_width(limits, x->f64);
    return cost_of(x, choose(limits, x, false), width, false) / 100 * (double)x->k * (double)x->batch;
}

const char *kn_tile_options(char *buffer, kn_tile_shape tile, bool f64)
{
    snprintf(buffer, KN_GEMM_OPTIONS, "%s -DVW=%d -DNV=%d -DMR=%d", kn_options_f64_or_f32(f64), tile.vector_width,
             tile.vectors, tile.rows);
    return buffer;
}

/* --- problems ----------------------------------------------------------------------------------------------------- */

static kn_gemm_layout flip(kn_gemm_layout x) { return (kn_gemm_layout){x.col_stride, x.row_stride, x.batch_stride}; }

static kn_tile_operand in_place(const kn_gemm_operand *operand, bool flipped)
{
    kn_gemm_layout layout = kn_gemm_operand_layout(operand);
    return (kn_tile_operand){operand->buffer, operand->offset, flipped ? flip(layout) : layout};
}

kn_tile_product kn_tile_product_of(const kn_gemm_problem *problem, bool turned)
{
    const kn_gemm_params *p = &problem->product;
    kn_gemm_layout c = kn_gemm_operand_layout(&p->c);
    return (kn_tile_product){
        .problem = problem,
        .turned = turned,
        .f64 = p->f64,
        .m = turned ? p->n : p->m,
        .n = turned ? p->m : p->n,
        .k = p->k,
        .batch = p->batch,
        .a = turned ? in_place(&p->b, true) : in_place(&p->a, false),
        .b = turned ? in_place(&p->a, true) : in_place(&p->b, false),
        .c = turned ? flip(c) : c,
    };
}

/* --- the launch --------------------------------------------------------------------------------------------------- */

kn_gemm_tile_plan kn_tile_plan_of(const kn_tile_product *x, kn_tile_shape tile, kn_tile_blocking cut)
{
    const int64_t columns = kn_tile_columns(tile), k_count = kn_min_i64(x->k, kn_max_i64(1, cut.k_block));
    const int64_t panels = kn_div_up(x->n, columns), row_units = kn_div_up(x->m, cut.rows_per_unit);
    const int64_t panel_units = kn_div_up(panels, cut.panels_per_unit);
    const int64_t staged_panels = cut.b_staged ? cut.panel_block : x->n % columns != 0;
    const int64_t staged_rows = cut.a_staged ? cut.row_block / tile.rows : 0;
    return (kn_gemm_tile_plan){
        .m = x->m,
        .n = x->n,
        .k = x->k,
        .k_block = kn_max_i64(1, cut.k_block),
        .row_block = cut.row_block,
        .panel_block = cut.panel_block,
        .rows_per_unit = cut.rows_per_unit,
        .row_units = row_units,
        .panels = panels,
        .panels_per_unit = cut.panels_per_unit,
        .panel_units = panel_units,
        .units = row_units * panel_units * x->batch,
        .units_per_item = cut.units_per_item,
        .scratch = staged_panels * (k_count * columns + STAGED_GAP) + staged_rows * (k_count * tile.rows + STAGED_GAP),
        .bias_row = x->turned,
        .bias_column = !x->turned,
        .a_staged = cut.a_staged,
        .b_staged = cut.b_staged,
    };
}

kn_status kn_tile_multiply(kn_stream *stream, const kn_tile_product *x, kn_tile_shape tile, kn_tile_blocking cut)
{
    char options[KN_GEMM_OPTIONS];
    const kn_gemm_problem *problem = x->problem;
    kn_gemm_finish finish;
    kn_gemm_tile_plan plan = kn_tile_plan_of(x, tile, cut);
    int64_t element = x->f64 ? 8 : 4, items = kn_div_up(plan.units, plan.units_per_item);
    const bool of_b = problem->sums && problem->sums->of_b != x->turned;
    kn_gemm_sums *sums = x->batch == 1 && (of_b ? cut.b_staged : cut.a_staged) ? problem->sums : NULL;
    kn_tile_options(options, tile, x->f64);
    if (kn_tile_fetches_ahead(kn_device_limits(kn_stream_device(stream))))
        strcat(options, " -DFETCH_AHEAD");
    if (sums)
        strcat(options, of_b ? " -DSUMS_OF_B" : " -DSUMS_OF_A");
    kn_buffer *scratch = NULL;
    if (plan.scratch > 0)
        KN_TRY(kn_buffer_alloc(&scratch, stream, (size_t)(items * plan.scratch * element)));
    kn_status status = kn_run(
        stream, .source = "gemm/tile.cl", .kernel = "gemm_tiles", .operation = "gemm", .options = options, .dims = 1,
        .global = {(size_t)items}, .local = {1},
        KN_ARGS(kn_arg_buffer(x->a.buffer, x->a.offset * element), kn_arg_buffer(x->b.buffer, x->b.offset * element),
                kn_gemm_bias_arg(problem), kn_gemm_arg(&problem->product, &problem->product.c),
                kn_arg_buffer(scratch ? scratch : x->b.buffer, 0),
                kn_arg_buffer(sums ? sums->buffer : x->b.buffer, sums ? sums->offset * element : 0),
                kn_arg_struct(&plan, sizeof plan), kn_arg_struct(&x->a.layout, sizeof x->a.layout),
                kn_arg_struct(&x->b.layout, sizeof x->b.layout), kn_arg_struct(&x->c, sizeof x->c),
                kn_gemm_finish_arg(&finish, problem)));
    kn_buffer_free(scratch);
    if (sums)
        sums->done = status == KN_OK;
    return status;
}
