/* ops/conv/cpu/direct.c - convolution forward and backward-data on CPU devices with vectors along the channels
 * (cl/conv/cpu/direct.cl). */
#include "conv/cpu/direct.h"

#include "ops/conv/common/correlation.h"

enum { WEIGHT_BYTES = 24 << 10 };      /* of a chunk's weights of a block: room is left in a first cache of 32 KiB */
enum { MOST_WEIGHT_BYTES = 40 << 10 }; /* if that is all of them, one chunk is better */
enum { SUM_BYTES = 128 << 10 };        /* of a unit's sums, and */
enum { COPY_BYTES = 128 << 10 };       /* of the copy of its image: both stay in the second cache */
enum { UNIT_BLOCKS = 4 };              /* more would not make the copy's cost noticeably smaller */

typedef struct direct_pass {
    const kn_conv_problem *problem;
    kn_conv_tile tile;
    int64_t steps[2]; /* rows and columns of y from one output row or column of a residue class to the next */
    int64_t element, units_wanted;
} direct_pass;

/* --- parts -------------------------------------------------------------------------------------------------------- */

/* The rows of one residue class, or the columns of `classes` of them; of classes that write nothing nothing is read. */
static kn_conv_direct_axis axis_of(const kn_conv_problem *problem, int d, int64_t residue, int64_t classes,
                                   int64_t y_step)
{
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (int64_t i = residue; i < residue + classes; i++) {
        const kn_conv_residue_class r = kn_conv_choose_class(problem, d, i);
        const int64_t last = r.origin + (r.taps - 1) * r.distance;
        if (r.taps == 0 || r.rows == 0)
            continue;
        low = kn_min_i64(low, kn_min_i64(r.origin, last));
        high = kn_max_i64(high, kn_max_i64(r.origin, last));
    }
    if (low > high)
        low = high = 0;
    return (kn_conv_direct_axis){.in = kn_conv_from(problem).size[d],
                                 .out = kn_conv_choose_class(problem, d, residue).rows,
                                 .step = problem->pass == KN_CONV_DATA ? 1 : problem->shape.stride[d],
                                 .first = low,
                                 .reach = high - low,
                                 .y_step = y_step,
                                 .part = 1};
}

static int64_t taps_of(const kn_conv_direct_layout *g) /* of all classes */
{
    int64_t taps = 0;
    for (int64_t i = 0; i < g->classes; i++)
        taps += g->of[i].taps;
    return taps;
}

static int64_t most_taps(const kn_conv_direct_layout *g)
{
    int64_t taps = 0;
    for (int64_t i = 0; i < g->classes; i++)
        taps = kn_max_i64(taps, g->of[i].taps);
    return taps;
}

static int64_t copied(const kn_conv_direct_axis *a) { return (a->part - 1) * a->copied_step + a->reach + 1; }

/* Rows or images that are divided into parts: `count` of them, each of `pixels` output pixels and `size` copied
 * elements; a part copies `halo` more that it shares with the next. */
typedef struct divided {
    int64_t count, pixels, size, halo;
} divided;

/* The estimated cycles per input channel. */
static double cost_of(const direct_pass *p, const kn_conv_direct_layout *g, divided d, int64_t part)
{
    const int64_t parts = kn_div_up(d.count, part), rest = d.count - (parts - 1) * part, tile = p->tile.columns;
    const int64_t tiles = (parts - 1) * kn_div_up(part * d.pixels, tile) + kn_div_up(rest * d.pixels, tile);
    return (double)(tiles * tile * p->tile.channels * taps_of(g) * g->unit_blocks) * 0.5 +
           (double)(d.count * d.size + parts * d.halo) * 0.25;
}

/* The cheapest part of up to `most`; parts are then evened out. */
static int64_t choose_part(const direct_pass *p, const kn_conv_direct_layout *g, divided d, int64_t most)
{
    int64_t best = 1;
    double least = cost_of(p, g, d, best);
    for (int64_t part = 2; part <= kn_min_i64(d.count, most); part++) {
        const double cost = cost_of(p, g, d, part);
        if (cost >= least)
            continue;
        least = cost;
        best = part;
    }
    return kn_div_up(d.count, kn_div_up(d.count, best));
}

/* Parts of about SUM_BYTES and COPY_BYTES at most: whole rows if these are short enough, and whole images. */
static void choose_parts(const direct_pass *p, kn_conv_direct_layout *g)
{
    kn_conv_direct_axis *r = &g->rows, *c = &g->columns;
    const int64_t pixels =
        kn_max_i64(p->tile.columns, SUM_BYTES / (g->unit_blocks * g->classes * p->tile.block * p->element));
    const int64_t elements = COPY_BYTES / p->element / g->chunk;
    const int64_t columns = (elements / (r->reach + 1) - c->reach - 1) / c->copied_step + 1;
    c->part = kn_max_i64(p->tile.columns, kn_min_i64(pixels, columns));
    c->part = kn_min_i64(c->out, kn_div_up(c->out, kn_div_up(c->out, c->part)));
    const int64_t width = copied(c), rows = (elements / width - r->reach - 1) / r->copied_step + 1;
    const divided by_rows = {r->out, c->part, r->copied_step * width, (r->reach + 1 - r->copied_step) * width};
    r->part = choose_part(p, g, by_rows, kn_min_i64(rows, pixels / c->part));
    g->image_part = 1;
    if (r->part < r->out || c->part < c->out)
        return;
    const divided by_images = {g->images, r->part * c->part, copied(r) * width, 0};
    g->image_part = choose_part(p, g, by_images, kn_min_i64(elements / by_images.size, pixels / by_images.pixels));
}

static void count_units(const direct_pass *p, kn_conv_direct_layout *g)
{
    g->rows.parts = kn_div_up(g->rows.out, g->rows.part);
    g->columns.parts = kn_div_up(g->columns.out, g->columns.part);
    g->image_parts = kn_div_up(g->images, g->image_part);
    g->units = g->groups * g->image_parts * g->rows.parts * g->columns.parts *
               kn_div_up(kn_div_up(g->outer, p->tile.block), g->unit_blocks);
}

/* Smaller parts where there would be too few units for load balance. */
static void balance(const direct_pass *p, kn_conv_direct_layout *g)
{
    for (count_units(p, g); g->units < p->units_wanted; count_units(p, g)) {
        if (g->image_part > 1)
            g->image_part = kn_div_up(g->image_part, 2);
        else if (g->unit_blocks > 1)
            g->unit_blocks = kn_div_up(g->unit_blocks, 2);
        else if (g->rows.part * g->columns.part >= 4 * p->tile.columns && g->rows.part > 1)
            g->rows.part = kn_div_up(g->rows.part, 2);
        else
            return;
    }
}

/* --- layout ------------------------------------------------------------------------------------------------------- */

static int64_t choose_chunk(const direct_pass *p, const kn_conv_direct_layout *g)
{
    const int64_t channel = kn_max_i64(1, most_taps(g)) * p->tile.block * p->element;
    if (g->inner * channel <= MOST_WEIGHT_BYTES)
        return kn_max_i64(1, g->inner);
    const int64_t most = kn_max_i64(1, WEIGHT_BYTES / channel);
    return kn_div_up(g->inner, kn_div_up(g->inner, most));
}

static bool is_inside(const kn_conv_direct_axis *a)
{
    return a->first >= 0 && (a->out - 1) * a->step + a->first + a->reach < a->in;
}

/* A copy costs more than it saves if each value is used for a single tap, unless many channels' planes share cache
 * sets. */
static bool reads_in_place(const kn_conv_direct_layout *g)
{
    const double image = (double)g->groups * (double)g->inner * (double)g->x_channel;
    return most_taps(g) == 1 && is_inside(&g->rows) && is_inside(&g->columns) && g->x_channel % 512 != 0 &&
           (double)g->image_part * image < 2147483647.0;
}

/* The classes' weights and tables lie one after the other; output channels are padded to whole blocks. */
static void describe_classes(const direct_pass *p, kn_conv_direct_layout *g, int64_t row, int64_t column)
{
    const int64_t channels = g->groups * kn_div_up(g->outer, p->tile.block) * p->tile.block;
    const int64_t rows = kn_conv_choose_class(p->problem, 1, row).taps;
    int64_t taps = 0;
    for (int64_t i = 0; i < g->classes; i++) {
        const kn_conv_residue_class c = kn_conv_choose_class(p->problem, 2, column + i);
        g->of[i] = (kn_conv_direct_class){.out = c.rows,
                                          .taps = c.rows > 0 ? rows * c.taps : 0,
                                          .weights = channels * g->inner * taps,
                                          .table = g->inner * taps};
        taps += g->of[i].taps;
    }
}

/* The launch for rows of one residue class, and columns of those from `column` on. */
static kn_conv_direct_layout layout_of(const direct_pass *p, int64_t row, int64_t column)
{
    const kn_conv_shape *s = &p->problem->shape;
    const kn_conv_side from = kn_conv_from(p->problem), to = kn_conv_to(p->problem);
    const int64_t *steps = p->steps, classes = kn_min_i64(KN_CONV_DIRECT_CLASSES, steps[1] - column);
    kn_conv_direct_layout g = {.rows = axis_of(p->problem, 1, row, 1, steps[0] * to.size[2]),
                               .columns = axis_of(p->problem, 2, column, classes, steps[1]),
                               .classes = classes,
                               .images = s->images,
                               .groups = s->groups,
                               .inner = from.channels,
                               .outer = to.channels,
                               .x_channel = from.size[1] * from.size[2],
                               .y_channel = to.size[1] * to.size[2]};
    describe_classes(p, &g, row, column);
    g.rows.copied_step = kn_min_i64(g.rows.step, g.rows.reach + 1);
    g.columns.copied_step = g.columns.step; /* rows are copied whole */
    g.units_per_item = 1;
    if (g.rows.out == 0 || g.columns.out == 0 || g.images == 0)
        return g;
    g.chunk = choose_chunk(p, &g);
    const int64_t blocks = kn_div_up(g.outer, p->tile.block);
    g.unit_blocks = kn_div_up(blocks, kn_div_up(blocks, kn_max_i64(1, UNIT_BLOCKS / g.classes)));
    choose_parts(p, &g);
    balance(p, &g);
    g.pitch = copied(&g.columns);
    g.plane = copied(&g.rows) * g.pitch;
    g.image = g.chunk * g.plane;
    g.copy_size = kn_round_up_i64(g.image_part * g.image, 64);
    if (reads_in_place(&g)) {
        g.in_place = 1;
        g.rows.copied_step = g.rows.step;
        g.pitch = g.columns.in;
        g.plane = g.x_channel;
        g.image = g.groups * g.inner * g.plane;
        g.copy_size = 0;
    }
    g.sums = g.image_part * g.rows.part * g.columns.part + p->tile.columns - 1;
    g.units_per_item = kn_div_up(g.units, 2 * p->units_wanted);
    /* whole cache lines, between which one item's memory ends and the next one's begins */
    g.scratch_size = kn_round_up_i64(g.copy_size + (g.unit_blocks * g.classes * p->tile.block + 1) * g.sums, 64);
    return g;
}

static int64_t items_of(const kn_conv_direct_layout *g) { return kn_div_up(g->units, g->units_per_item); }

static double scratch_bytes(const direct_pass *p, const kn_conv_direct_layout *g)
{
    return (double)items_of(g) * (double)g->scratch_size * (double)p->element;
}

/* --- running ------------------------------------------------------------------------------------------------------ */

/* With 32 registers: the number of vectors that wastes the fewest channels in the last block; among equals the largest,
 * because vectors share loaded values. */
static kn_conv_tile choose_tile(const kn_limits *limits, bool f64, int64_t outer)
{
    static const int pixels[] = {0, 0, 10, 7, 6}; /* indexed by vectors */
    int width = kn_conv_vector_width(limits, f64), vectors = 2;
    int64_t least = INT64_MAX;
    for (int v = 4; v >= 2 && kn_conv_many_registers(limits); v--) {
        int64_t channels = kn_div_up(outer, (int64_t)v * width) * v * width;
        if (channels < least) {
            least = channels;
            vectors = v;
        }
    }
    return (kn_conv_tile){.vector_width = width,
                          .channels = vectors,
                          .columns = kn_conv_many_registers(limits) ? pixels[vectors] : 5,
                          .block = (int64_t)vectors * width};
}

static direct_pass pass_of(const kn_limits *limits, const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    const bool data = problem->pass == KN_CONV_DATA;
    return (direct_pass){.problem = problem,
                         .tile = choose_tile(limits, s->f64, kn_conv_to(problem).channels),
                         .steps = {data ? s->stride[1] : 1, data ? s->stride[2] : 1},
                         .element = kn_conv_element(s),
                         .units_wanted = 4 * limits->compute_units};
}

/* The weights and the table of each class; the taps' offsets are those in the copy, and there is nothing to pad. */
static kn_status prepare(const direct_pass *p, kn_stream *stream, kn_conv_workspace *w, int64_t row, int64_t column,
                         const kn_conv_direct_layout *g)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    const int64_t row_origin = kn_conv_choose_class(p->problem, 1, row).origin;
    kn_conv_correlation c;
    for (int64_t i = 0; i < g->classes; i++) {
        kn_conv_describe_correlation(&c, limits, p->problem, row * p->steps[1] + column + i);
        c.padding.planes = 0;
        c.taps.plane = g->plane;
        c.taps.pitch = g->pitch;
        c.taps.row_origin = row_origin - g->rows.first;
        c.taps.column_origin = kn_conv_choose_class(p->problem, 2, column + i).origin - g->columns.first;
        if (!w->packed)
            KN_TRY(kn_conv_alloc_workspace(w, stream, &c, p->tile.block));
        if (g->of[i].taps == 0)
            continue;
        w->weights_at = g->of[i].weights;
        w->table_at = g->of[i].table;
        KN_TRY(kn_conv_prepare(stream, &c, w, p->tile.block));
    }
    return KN_OK;
}

static kn_status correlate(const direct_pass *p, kn_stream *stream, const kn_conv_workspace *w, kn_buffer *scratch,
                           int64_t row, int64_t column, const kn_conv_direct_layout *g)
{
    char options[KN_CONV_OPTIONS];
    const kn_conv_problem *problem = p->problem;
    const kn_conv_shape *s = &problem->shape;
    kn_conv_operand y = kn_conv_to(problem).operand;
    y.offset += row * kn_conv_to(problem).size[2] + column;
    kn_conv_options(options, kn_device_limits(kn_stream_device(stream)), s->f64, p->tile.channels, "PX",
                    p->tile.columns);
    return kn_run(stream, .source = "conv/cpu/direct.cl", .kernel = "conv_direct", .operation = "conv2d",
                  .options = options, .dims = 1, .global = {(size_t)items_of(g)}, .local = {1},
                  KN_ARGS(kn_conv_arg(s, kn_conv_from(problem).operand), kn_arg_buffer(w->packed, 0),
                          kn_arg_buffer(w->table, 0), kn_conv_bias_arg(problem), kn_conv_arg(s, y),
                          kn_arg_buffer(scratch, 0), kn_arg_struct(g, sizeof *g), KN_CONV_EPILOGUE_ARGS(problem)));
}

static kn_status run_classes(const direct_pass *p, kn_stream *stream, kn_conv_workspace *w, int64_t row, int64_t column)
{
    const kn_conv_direct_layout g = layout_of(p, row, column);
    kn_buffer *scratch = NULL;
    if (g.units == 0)
        return KN_OK;
    KN_TRY(prepare(p, stream, w, row, column, &g));
    KN_TRY(kn_buffer_alloc(&scratch, stream, (size_t)scratch_bytes(p, &g)));
    const kn_status status = correlate(p, stream, w, scratch, row, column, &g);
    kn_buffer_free(scratch);
    return status;
}

kn_status kn_conv_run_direct(kn_stream *stream, const void *problem)
{
    const direct_pass p = pass_of(kn_device_limits(kn_stream_device(stream)), problem);
    kn_conv_workspace w = {0};
    kn_status status = KN_OK;
    for (int64_t row = 0; row < p.steps[0]; row++)
        for (int64_t column = 0; status == KN_OK && column < p.steps[1]; column += KN_CONV_DIRECT_CLASSES)
            status = run_classes(&p, stream, &w, row, column);
    kn_conv_free_workspace(&w);
    return status;
}

/* --- choice ------------------------------------------------------------------------------------------------------- */

bool kn_conv_supports_direct(const kn_limits *limits, const void *problem)
{
    if (!kn_conv_table_fits(problem))
        return false;
    const direct_pass p = pass_of(limits, problem);
    for (int64_t row = 0; row < p.steps[0]; row++)
        for (int64_t column = 0; column < p.steps[1]; column += KN_CONV_DIRECT_CLASSES) {
            const kn_conv_direct_layout g = layout_of(&p, row, column);
            if (scratch_bytes(&p, &g) > (double)limits->max_allocation)
                return false;
        }
    return true;
}

bool kn_conv_prefers_direct(const kn_limits *limits, const void *problem)
{
    return limits->is_cpu && kn_conv_correlations(problem) <= 16; /* each packs its weights in a launch */
}
