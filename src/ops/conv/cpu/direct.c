/* ops/conv/cpu/direct.c - convolution forward and backward-data on CPU devices with vectors along the channels
 * (cl/conv/cpu/direct.cl). */
#include "ops/conv/cpu/parts.h"

#include "conv/cpu/direct.h"

enum { WEIGHT_BYTES = 24 << 10 };      /* of a chunk's weights of a block: room is left in a first cache of 32 KiB */
enum { MOST_WEIGHT_BYTES = 40 << 10 }; /* if that is all of them, one chunk is better */
enum { SUM_BYTES = 128 << 10 };        /* of a unit's sums, and */
enum { COPY_BYTES = 128 << 10 };       /* of the copy of its image: both stay in the second cache */
enum { UNIT_BLOCKS = 4 };              /* more would not make the copy's cost noticeably smaller */

typedef struct direct_pass {
    const kn_conv_slicing *slicing;
    const kn_conv_problem *problem; /* of images */
    kn_conv_tile tile;
    int64_t steps[2]; /* rows and columns of y from one output row or column of a residue class to the next */
    int64_t element, units_wanted;
} direct_pass;

/* --- units -------------------------------------------------------------------------------------------------------- */

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

static void choose_parts(const direct_pass *p, kn_conv_direct_layout *g)
{
    kn_conv_parts *parts = &g->parts;
    const int64_t pixel_bytes = parts->unit_blocks * g->classes * p->tile.block * p->element;
    const double vectors = (double)(p->tile.channels * taps_of(g) * parts->unit_blocks);
    const kn_conv_unit_limits limits = {.pixels = kn_max_i64(p->tile.columns, SUM_BYTES / pixel_bytes),
                                        .elements = COPY_BYTES / p->element / parts->chunk,
                                        .least = p->tile.columns,
                                        .tile = p->tile.columns,
                                        .pixel = vectors * 0.5};
    kn_conv_choose_parts(parts, &limits, p->tile.block);
}

/* Smaller parts where there would be too few units for load balance. */
static void balance(const direct_pass *p, kn_conv_parts *g)
{
    for (; g->units < p->units_wanted; kn_conv_count_units(g, p->tile.block)) {
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
    const int64_t inner = g->parts.inner, channel = kn_max_i64(1, most_taps(g)) * p->tile.block * p->element;
    if (inner * channel <= MOST_WEIGHT_BYTES)
        return kn_max_i64(1, inner);
    const int64_t most = kn_max_i64(1, WEIGHT_BYTES / channel);
    return kn_div_up(inner, kn_div_up(inner, most));
}

/* The classes' weights and tables lie one after the other; output channels are padded to whole blocks. */
static void describe_classes(const direct_pass *p, kn_conv_direct_layout *g, int64_t row, int64_t column)
{
    const kn_conv_parts *parts = &g->parts;
    const int64_t channels = parts->groups * kn_div_up(parts->outer, p->tile.block) * p->tile.block;
    const int64_t rows = kn_conv_choose_class(p->problem, 1, row).taps;
    int64_t taps = 0;
    for (int64_t i = 0; i < g->classes; i++) {
        const kn_conv_residue_class c = kn_conv_choose_class(p->problem, 2, column + i);
        g->of[i] = (kn_conv_direct_class){.out = c.rows,
                                          .taps = c.rows > 0 ? rows * c.taps : 0,
                                          .weights = channels * parts->inner * taps,
                                          .table = parts->inner * taps};
        taps += g->of[i].taps;
    }
}

/* The launch for rows of one residue class, and columns of those from `column` on. */
static kn_conv_direct_layout layout_of(const direct_pass *p, int64_t row, int64_t column)
{
    const kn_conv_slicing *slicing = p->slicing;
    const kn_conv_side from = kn_conv_from(p->problem), to = kn_conv_to(p->problem);
    const bool data = p->problem->pass == KN_CONV_DATA;
    const int64_t *steps = p->steps, classes = kn_min_i64(KN_CONV_DIRECT_CLASSES, steps[1] - column);
    kn_conv_direct_layout g = {.classes = classes, .units_per_item = 1};
    kn_conv_parts *parts = &g.parts;
    *parts = (kn_conv_parts){.rows = kn_conv_axis_of(p->problem, 1, row, 1, steps[0] * to.size[2]),
                             .columns = kn_conv_axis_of(p->problem, 2, column, classes, steps[1]),
                             .x = data ? slicing->y : slicing->x,
                             .y = data ? slicing->x : slicing->y,
                             .groups = p->problem->shape.groups,
                             .inner = from.channels,
                             .outer = to.channels};
    describe_classes(p, &g, row, column);
    if (parts->rows.out == 0 || parts->columns.out == 0 || parts->x.images == 0)
        return g;
    parts->chunk = choose_chunk(p, &g);
    const int64_t blocks = kn_div_up(parts->outer, p->tile.block);
    parts->unit_blocks = kn_div_up(blocks, kn_div_up(blocks, kn_max_i64(1, UNIT_BLOCKS / g.classes)));
    choose_parts(p, &g);
    balance(p, parts);
    kn_conv_lay_out_copy(parts, most_taps(&g), parts->inner);
    g.sums = parts->image_part * parts->rows.part * parts->columns.part + p->tile.columns - 1;
    g.units_per_item = kn_div_up(parts->units, 2 * p->units_wanted);
    /* whole cache lines, between which one item's memory ends and the next one's begins */
    g.scratch_size =
        kn_round_up_i64(parts->copy_size + (parts->unit_blocks * g.classes * p->tile.block + 1) * g.sums, 64);
    return g;
}

static int64_t items_of(const kn_conv_direct_layout *g) { return kn_div_up(g->parts.units, g->units_per_item); }

static double scratch_bytes(const direct_pass *p, const kn_conv_direct_layout *g)
{
    return (double)items_of(g) * (double)g->scratch_size * (double)p->element;
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static direct_pass pass_of(const kn_limits *limits, const kn_conv_slicing *slicing)
{
    const kn_conv_problem *problem = &slicing->flat;
    const kn_conv_shape *s = &problem->shape;
    const bool data = problem->pass == KN_CONV_DATA;
    return (direct_pass){.slicing = slicing,
                         .problem = problem,
                         .tile = kn_conv_choose_channel_tile(limits, s->f64, kn_conv_to(problem).channels),
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
        c.taps.plane = g->parts.plane;
        c.taps.pitch = g->parts.pitch;
        c.taps.row_origin = row_origin - g->parts.rows.first;
        c.taps.column_origin = kn_conv_choose_class(p->problem, 2, column + i).origin - g->parts.columns.first;
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
    if (g.parts.units == 0)
        return KN_OK;
    KN_TRY(prepare(p, stream, w, row, column, &g));
    KN_TRY(kn_buffer_alloc(&scratch, stream, (size_t)scratch_bytes(p, &g)));
    const kn_status status = correlate(p, stream, w, scratch, row, column, &g);
    kn_buffer_free(scratch);
    return status;
}

static kn_status run_slicing(kn_stream *stream, const kn_conv_slicing *slicing)
{
    const direct_pass p = pass_of(kn_device_limits(kn_stream_device(stream)), slicing);
    kn_conv_workspace w = {0};
    kn_status status = KN_OK;
    for (int64_t row = 0; row < p.steps[0]; row++)
        for (int64_t column = 0; status == KN_OK && column < p.steps[1]; column += KN_CONV_DIRECT_CLASSES)
            status = run_classes(&p, stream, &w, row, column);
    kn_conv_free_workspace(&w);
    return status;
}

kn_status kn_conv_run_direct(kn_stream *stream, const void *problem)
{
    return kn_conv_run_slicings(stream, problem, run_slicing);
}

/* --- choice ------------------------------------------------------------------------------------------------------- */

static bool supports_slicing(const kn_limits *limits, const kn_conv_slicing *slicing)
{
    if (!kn_conv_table_fits(&slicing->flat))
        return false;
    const direct_pass p = pass_of(limits, slicing);
    for (int64_t row = 0; row < p.steps[0]; row++)
        for (int64_t column = 0; column < p.steps[1]; column += KN_CONV_DIRECT_CLASSES) {
            const kn_conv_direct_layout g = layout_of(&p, row, column);
            if (scratch_bytes(&p, &g) > (double)limits->max_allocation)
                return false;
        }
    return true;
}

bool kn_conv_supports_direct(const kn_limits *limits, const void *problem)
{
    const int64_t slicings = kn_conv_slicings(problem);
    bool supported = slicings <= 64;
    for (int64_t i = 0; supported && i < slicings; i++) {
        const kn_conv_slicing slicing = kn_conv_slice(problem, i);
        supported = supports_slicing(limits, &slicing);
    }
    return supported;
}

bool kn_conv_prefers_direct(const kn_limits *limits, const void *problem)
{
    return limits->is_cpu && kn_conv_correlations(problem) <= 16; /* each packs its weights in a launch */
}
