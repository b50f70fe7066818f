/* ops/conv/cpu/weights.c - the gradient of a convolution's weights and bias on CPU devices with vectors along the
 * channels (cl/conv/cpu/weights.cl). */
#include "ops/conv/cpu/parts.h"

#include "conv/cpu/weights.h"

enum { PANEL_BYTES = 32 << 10 };     /* of a block of a unit's packed dy: the first cache */
enum { COPY_BYTES = 256 << 10 };     /* of the copy of its image: with the panels in the second cache */
enum { UNIT_BLOCKS = 4 };            /* share a copy */
enum { SHARE_PIXELS = 2048 };        /* about as many: the sums are stored and added, which costs as much as 50 */
enum { FEW_SHARES = 4 };             /* up to so many, so as not to leave cores idle, */
enum { FEW_PIXELS = 256 };           /* this many are enough */
enum { MOST_PIXELS = 16384 };        /* of a share, for the accuracy of its sums */
enum { SHARES_WANTED = 32 };         /* of all sets. Constant: the order of sums depends on the problem alone */
enum { SETS_PER_CORE = 4 };          /* at least, if blocks are shared */
enum { STRIP = 8 };                  /* as in weights.cl */
#define MAX_SUMS ((int64_t)64 << 20) /* bytes of the shares' sums */

typedef struct weights_pass {
    const kn_conv_problem *problem; /* of images */
    kn_conv_tile tile;
    kn_conv_weights_layout layout;
    int64_t element, taps, blocks; /* taps of all channels, blocks of all groups */
    char options[KN_CONV_OPTIONS];
    kn_buffer *sums, *bias_part, *scratch;
} weights_pass;

/* --- layout ------------------------------------------------------------------------------------------------------- */

static int64_t taps_per_channel(const kn_conv_shape *s) { return s->kernel_size[1] * s->kernel_size[2]; }

/* The elements that a unit of `pixels` copies of a channel: about a quarter more than it reads, but for kernels with
 * holes, whose taps are rows apart. */
static int64_t copy_of_channel(const weights_pass *w, int64_t pixels)
{
    const kn_conv_parts *g = &w->layout.parts;
    const kn_conv_shape *s = &w->problem->shape;
    const int64_t usual = pixels * g->rows.copied_step * g->columns.copied_step * 5 / 4;
    kn_conv_axis rows = g->rows, columns = g->columns;
    if (s->dilation[1] == 1 && s->dilation[2] == 1)
        return usual;
    columns.part = kn_min_i64(columns.out, pixels);
    rows.part = kn_min_i64(rows.out, pixels / columns.part);
    return kn_max_i64(usual, kn_conv_copied(&rows) * kn_conv_copied(&columns));
}

/* The channels whose copy for a unit of `pixels` is of about COPY_BYTES, in whole tiles of taps. */
static int64_t choose_chunk(const weights_pass *w, int64_t pixels)
{
    const kn_conv_parts *g = &w->layout.parts;
    int64_t chunk = kn_max_i64(1, COPY_BYTES / (copy_of_channel(w, pixels) * w->element));
    if (chunk >= g->inner)
        return kn_max_i64(1, g->inner);
    chunk = kn_div_up(g->inner, kn_div_up(g->inner, chunk));
    while (chunk < g->inner && chunk * taps_per_channel(&w->problem->shape) % w->tile.columns != 0)
        chunk++;
    return chunk;
}

static void choose_units(weights_pass *w)
{
    kn_conv_parts *g = &w->layout.parts;
    const int64_t pixels = PANEL_BYTES / (w->tile.block * w->element);
    const double vectors = (double)(w->tile.channels * taps_per_channel(&w->problem->shape) * g->unit_blocks);
    g->chunk = choose_chunk(w, pixels);
    const kn_conv_unit_limits limits = {.pixels = pixels,
                                        .elements = COPY_BYTES / w->element / g->chunk,
                                        .least = 16,
                                        .tile = 1,
                                        .pixel = vectors * 0.5,
                                        .part = vectors * 3}; /* the sums are loaded and stored */
    kn_conv_choose_parts(g, &limits, w->tile.block);
    w->layout.set_units = g->image_parts * g->rows.parts * g->columns.parts;
}

static int64_t all_sets(const weights_pass *w)
{
    const kn_conv_parts *g = &w->layout.parts;
    return g->groups * kn_div_up(kn_div_up(g->outer, w->tile.block), g->unit_blocks);
}

static int64_t share_bytes(const weights_pass *w) { return w->blocks * w->taps * w->tile.block * w->element; }

/* Powers of two, which any even number of cores share evenly. */
static void choose_shares(weights_pass *w, int64_t cores)
{
    kn_conv_weights_layout *l = &w->layout;
    kn_conv_parts *g = &l->parts;
    const int64_t pixels = g->x.images * g->rows.out * g->columns.out;
    const int64_t most = kn_min_i64(l->set_units, kn_max_i64(1, MAX_SUMS / (share_bytes(w) + 1)));
    const int64_t wanted = kn_max_i64(kn_div_up(SHARES_WANTED, all_sets(w)), kn_div_up(pixels, MOST_PIXELS));
    l->shares = 1;
    while (l->shares < wanted && l->shares * (l->shares < FEW_SHARES ? FEW_PIXELS : SHARE_PIXELS) < pixels)
        l->shares *= 2;
    l->shares = kn_min_i64(l->shares, most);
    while (g->unit_blocks > 1 && all_sets(w) * l->shares < SETS_PER_CORE * cores)
        g->unit_blocks = kn_div_up(g->unit_blocks, 2);
}

static void describe_taps(weights_pass *w)
{
    const kn_conv_parts *g = &w->layout.parts;
    const kn_conv_residue_class row = kn_conv_choose_class(w->problem, 1, 0),
                                column = kn_conv_choose_class(w->problem, 2, 0);
    w->layout.taps = (kn_conv_tap_list){.inner = kn_min_i64(g->chunk, g->inner),
                                        .rows = row.taps,
                                        .columns = column.taps,
                                        .plane = g->plane,
                                        .pitch = g->pitch,
                                        .row_origin = row.origin - g->rows.first,
                                        .row_distance = row.distance,
                                        .column_origin = column.origin - g->columns.first,
                                        .column_distance = column.distance};
}

static void lay_out_scratch(weights_pass *w)
{
    kn_conv_weights_layout *l = &w->layout;
    kn_conv_parts *g = &l->parts;
    l->panel_pixels = kn_round_up_i64(g->image_part * g->rows.part * g->columns.part, 16);
    const int64_t table = l->taps.inner * taps_per_channel(&w->problem->shape);
    /* whole cache lines, between which one item's memory ends and the next one's begins */
    l->scratch_size =
        kn_round_up_i64(g->copy_size + (g->unit_blocks * w->tile.block + 1) * l->panel_pixels + table, 64);
}

static weights_pass pass_of(const kn_limits *limits, const kn_conv_slicing *slicing)
{
    const kn_conv_problem *problem = &slicing->flat;
    const kn_conv_shape *s = &problem->shape;
    const int64_t inner = s->in_channels / s->groups, outer = s->out_channels / s->groups;
    weights_pass w = {.problem = problem,
                      .tile = kn_conv_choose_channel_tile(limits, s->f64, outer),
                      .element = kn_conv_element(s),
                      .taps = inner * taps_per_channel(s)};
    kn_conv_weights_layout *l = &w.layout;
    w.blocks = s->groups * kn_div_up(outer, w.tile.block);
    kn_conv_options(w.options, limits, s->f64, w.tile.channels, "TAPS", w.tile.columns);
    *l = (kn_conv_weights_layout){.parts = {.rows = kn_conv_axis_of(problem, 1, 0, 1, s->out_size[2]),
                                            .columns = kn_conv_axis_of(problem, 2, 0, 1, 1),
                                            .x = slicing->x,
                                            .y = slicing->y,
                                            .groups = s->groups,
                                            .inner = inner,
                                            .outer = outer},
                                  .has_bias = problem->bias.buffer != NULL,
                                  .shares_per_item = 1};
    l->parts.unit_blocks = kn_max_i64(1, kn_min_i64(UNIT_BLOCKS, kn_div_up(outer, w.tile.block)));
    if (slicing->x.images == 0)
        return w;
    choose_units(&w);
    choose_shares(&w, limits->compute_units);
    kn_conv_lay_out_copy(&l->parts, taps_per_channel(s), w.tile.columns);
    describe_taps(&w);
    lay_out_scratch(&w);
    l->shares_per_item = kn_max_i64(1, kn_div_up(l->shares * all_sets(&w), 16 * (int64_t)limits->compute_units));
    return w;
}

static int64_t items_of(const weights_pass *w)
{
    return kn_div_up(w->layout.shares * all_sets(w), w->layout.shares_per_item);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static kn_status alloc_buffers(weights_pass *w, kn_stream *stream)
{
    const kn_conv_weights_layout *l = &w->layout;
    KN_TRY(kn_buffer_alloc(&w->sums, stream, (size_t)(l->shares * share_bytes(w))));
    KN_TRY(kn_buffer_alloc(&w->bias_part, stream, (size_t)(l->shares * w->blocks * w->tile.block * w->element)));
    return kn_buffer_alloc(&w->scratch, stream, (size_t)(items_of(w) * l->scratch_size * w->element));
}

static void free_buffers(weights_pass *w)
{
    kn_buffer_free(w->sums);
    kn_buffer_free(w->bias_part);
    kn_buffer_free(w->scratch);
}

static kn_status launch_sums(const weights_pass *w, kn_stream *stream)
{
    const kn_conv_problem *problem = w->problem;
    if (items_of(w) == 0)
        return KN_OK;
    return kn_run(stream, .source = "conv/cpu/weights.cl", .kernel = "conv_weights_sums",
                  .operation = "conv2d_backward_weights", .options = w->options, .dims = 1,
                  .global = {(size_t)items_of(w)}, .local = {1},
                  KN_ARGS(kn_conv_arg(&problem->shape, problem->x), kn_conv_arg(&problem->shape, problem->y),
                          kn_arg_buffer(w->sums, 0), kn_arg_buffer(w->bias_part, 0), kn_arg_buffer(w->scratch, 0),
                          kn_arg_struct(&w->layout, sizeof w->layout)));
}

static kn_status launch_total(const weights_pass *w, kn_stream *stream)
{
    const kn_conv_problem *problem = w->problem;
    return kn_run(stream, .source = "conv/cpu/weights.cl", .kernel = "conv_weights_total",
                  .operation = "conv2d_backward_weights", .options = w->options, .dims = 2,
                  .global = {(size_t)kn_max_i64(1, kn_div_up(w->taps, STRIP)), (size_t)w->blocks}, .local = {1, 1},
                  KN_ARGS(kn_arg_buffer(w->sums, 0), kn_arg_buffer(w->bias_part, 0),
                          kn_conv_arg(&problem->shape, problem->weight), kn_conv_bias_arg(problem),
                          kn_arg_struct(&w->layout, sizeof w->layout)));
}

static kn_status run_slicing(kn_stream *stream, const kn_conv_slicing *slicing)
{
    weights_pass w = pass_of(kn_device_limits(kn_stream_device(stream)), slicing);
    kn_status status = alloc_buffers(&w, stream);
    if (status == KN_OK)
        status = launch_sums(&w, stream);
    if (status == KN_OK)
        status = launch_total(&w, stream);
    free_buffers(&w);
    return status;
}

kn_status kn_conv_run_direct_weights(kn_stream *stream, const void *problem)
{
    return kn_conv_run_slicings(stream, problem, run_slicing);
}

/* --- choice ------------------------------------------------------------------------------------------------------- */

bool kn_conv_supports_direct_weights(const kn_limits *limits, const void *problem)
{
    const kn_conv_slicing slicing = kn_conv_slice(problem, 0);
    if (!kn_conv_table_fits(&slicing.flat))
        return false;
    const weights_pass w = pass_of(limits, &slicing);
    const double scratch = (double)items_of(&w) * (double)w.layout.scratch_size * (double)w.element,
                 sums = (double)w.layout.shares * (double)share_bytes(&w), most = (double)limits->max_allocation;
    return scratch <= most && sums <= most;
}

bool kn_conv_prefers_direct_weights(const kn_limits *limits, const void *problem)
{
    (void)problem;
    return limits->is_cpu;
}
