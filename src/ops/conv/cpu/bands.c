/* ops/conv/cpu/bands.c - convolution forward and backward-data on CPU devices with vectors along the pixels of a band
 * (cl/conv/cpu/bands.cl). */
#include "ops/conv/cpu/bands.h"
#include "ops/conv/cpu/planes.h"

#include <stdio.h>

enum { BAND_BYTES = 384 << 10 }; /* of a band, which is read for every output channel: less than half an L2 cache */
enum { MAX_TILES = 12 };         /* per band: longer ones gain nothing */
enum { PACK_BYTES = 64 << 10 };  /* of backward-data's weights; above this they are packed to use full cache lines */

typedef struct bands_pass {
    const kn_conv_problem *problem;
    kn_conv_bands bands;
    kn_conv_band_weights weights;
    int vector_width, channels, vectors;                                      /* of a tile */
    int64_t element, blocks, items, units_per_item, table_size, scratch_size; /* sizes in elements */
    kn_buffer *scratch, *packed;
} bands_pass;

/* Tiles of channels by vectors; accumulators, loaded vectors and one weight must fit in registers. */
typedef struct bands_tile {
    int channels, vectors;
} bands_tile;
static const bands_tile tiles_of_32[] = {{8, 3}, {6, 4}, {5, 5}, {3, 7}, {2, 8}, {1, 8}},
                        tiles_of_16[] = {{4, 2}, {3, 3}, {2, 4}, {1, 6}};

/* Maximum elements of a band, so that it stays in cache. */
static int64_t longest_band(const bands_pass *p, int64_t tile)
{
    int64_t planes = p->bands.layout.inner * kn_conv_band_planes(&p->bands);
    return kn_min_i64(BAND_BYTES / p->element / kn_max_i64(1, planes), MAX_TILES * tile);
}

/* Estimated cycles per tap: two multiply-adds per cycle, plus a cost for each load; an unaligned vector usually counts
 * as two. */
static double cost_of(const bands_pass *p, bands_tile tile)
{
    const kn_conv_bands *b = &p->bands;
    double tiles = (double)kn_div_up(b->length, (int64_t)tile.vectors * p->vector_width) * (double)b->layout.bands *
                   (double)kn_div_up(b->layout.outer, tile.channels);
    double load = b->layout.flat ? 0.2 : 0.4;
    return tiles * (tile.channels * tile.vectors * 0.5 + load * tile.vectors + 0.1 * tile.channels);
}

static void choose_tile(bands_pass *p, const kn_limits *limits)
{
    bool many = kn_conv_many_registers(limits);
    const bands_tile *tiles = many ? tiles_of_32 : tiles_of_16, *best = NULL;
    int count = many ? (int)(sizeof tiles_of_32 / sizeof *tiles) : (int)(sizeof tiles_of_16 / sizeof *tiles);
    double least = 0;
    for (int i = 0; i < count; i++) {
        int64_t size = (int64_t)tiles[i].vectors * p->vector_width;
        kn_conv_split_bands(&p->bands, longest_band(p, size), size);
        double cost = cost_of(p, tiles[i]);
        if (best && cost >= least)
            continue;
        least = cost;
        best = &tiles[i];
    }
    p->channels = best->channels;
    p->vectors = best->vectors;
    int64_t size = (int64_t)p->vectors * p->vector_width;
    kn_conv_split_bands(&p->bands, longest_band(p, size), size);
}

static void describe_weights(bands_pass *p)
{
    const kn_conv_shape *s = &p->problem->shape;
    const kn_conv_band_layout *g = &p->bands.layout;
    const bool data = p->problem->pass == KN_CONV_DATA;
    int64_t area = s->kernel_size[1] * s->kernel_size[2];
    p->weights = (kn_conv_band_weights){.group = g->inner * g->outer * area,
                                        .outer = data ? area : g->inner * area,
                                        .inner = data ? g->outer * area : area,
                                        .row = s->kernel_size[2],
                                        .column = 1};
    p->weights.block = p->channels * p->weights.outer;
    if (!p->packed)
        return;
    int64_t size = g->inner * area * p->channels;
    p->weights = (kn_conv_band_weights){.group = p->blocks * size,
                                        .block = size,
                                        .outer = 1,
                                        .inner = area * p->channels,
                                        .row = s->kernel_size[2] * p->channels,
                                        .column = p->channels};
}

/* Few work-items if their scratch memory is large, so that it stays in cache; otherwise many, for load balance. */
static void choose_items(bands_pass *p, const kn_limits *limits)
{
    const kn_conv_shape *s = &p->problem->shape;
    const kn_conv_bands *b = &p->bands;
    int64_t units = p->blocks * b->layout.groups * b->layout.bands;
    int64_t lines = (int64_t)p->channels * b->columns.classes * b->length;
    p->table_size = kn_div_up(s->kernel_size[1] * s->kernel_size[2], 8) * 16;
    p->scratch_size = p->table_size + lines;
    if (!b->layout.in_place)
        p->scratch_size += b->layout.inner * kn_conv_band_planes(b) * b->layout.plane;
    int64_t items = (p->scratch_size * p->element > 64 << 10 ? 8 : 32) * limits->compute_units;
    p->units_per_item = kn_div_up(units, items);
    p->items = kn_div_up(units, p->units_per_item);
}

static void describe(bands_pass *p, const kn_limits *limits)
{
    const kn_conv_shape *s = &p->problem->shape;
    p->element = s->f64 ? 8 : 4;
    p->vector_width = kn_conv_vector_width(limits, s->f64);
    kn_conv_describe_bands(&p->bands, p->problem);
    choose_tile(p, limits);
    p->blocks = kn_div_up(p->bands.layout.outer, p->channels);
    choose_items(p, limits);
}

static const char *options_of(char *buffer, const bands_pass *p)
{
    snprintf(buffer, KN_CONV_OPTIONS, "%s -DVW=%d -DKX=%d -DVX=%d", kn_options_f64_or_f32(p->element == 8),
             p->vector_width, p->channels, p->vectors);
    return buffer;
}

static bool wants_packing(const bands_pass *p)
{
    const kn_conv_shape *s = &p->problem->shape;
    const kn_conv_band_layout *g = &p->bands.layout;
    int64_t bytes = g->inner * g->outer * s->kernel_size[1] * s->kernel_size[2] * p->element;
    return p->problem->pass == KN_CONV_DATA && g->outer >= p->channels && bytes > PACK_BYTES;
}

static kn_status pack(bands_pass *p, kn_stream *stream)
{
    char options[KN_CONV_OPTIONS];
    const kn_conv_shape *s = &p->problem->shape;
    const kn_conv_band_layout *g = &p->bands.layout;
    int64_t area = s->kernel_size[1] * s->kernel_size[2];
    KN_TRY(kn_buffer_alloc(&p->packed, stream,
                           (size_t)(p->blocks * p->channels * g->inner * area * g->groups * p->element)));
    return kn_run(stream, .source = "conv/cpu/bands.cl", .kernel = "conv_bands_pack", .operation = "conv2d",
                  .options = options_of(options, p), .dims = 1,
                  .global = {(size_t)(g->groups * kn_div_up(p->blocks, KN_CONV_BAND_BLOCKS))}, .local = {1},
                  KN_ARGS(kn_conv_arg(s, p->problem->weight), kn_arg_buffer(p->packed, 0), kn_arg_i64(g->groups),
                          kn_arg_i64(g->inner), kn_arg_i64(g->outer), kn_arg_i64(area)));
}

static kn_status correlate(const bands_pass *p, kn_stream *stream)
{
    char options[KN_CONV_OPTIONS];
    const kn_conv_problem *problem = p->problem;
    const kn_conv_shape *s = &problem->shape;
    const kn_conv_bands *b = &p->bands;
    return kn_run(stream, .source = "conv/cpu/bands.cl", .kernel = "conv_bands", .operation = "conv2d",
                  .options = options_of(options, p), .dims = 1, .global = {(size_t)p->items}, .local = {1},
                  KN_ARGS(kn_conv_arg(s, kn_conv_from(problem).operand), kn_conv_arg_or(p->packed, s, problem->weight),
                          kn_conv_bias_arg(problem), kn_conv_arg(s, kn_conv_to(problem).operand),
                          kn_arg_buffer(p->scratch, 0), kn_arg_struct(&b->layout, sizeof b->layout),
                          kn_arg_struct(&b->rows, sizeof b->rows), kn_arg_struct(&b->columns, sizeof b->columns),
                          kn_arg_struct(&p->weights, sizeof p->weights), kn_arg_i64(p->units_per_item),
                          kn_arg_i64(p->scratch_size), kn_arg_i64(p->table_size), kn_arg_i64(b->length),
                          KN_CONV_EPILOGUE_ARGS(problem)));
}

kn_status kn_conv_run_bands(kn_stream *stream, const void *problem)
{
    bands_pass p = {.problem = problem};
    describe(&p, kn_device_limits(kn_stream_device(stream)));
    kn_status status = kn_buffer_alloc(&p.scratch, stream, (size_t)(p.items * p.scratch_size * p.element));
    if (status == KN_OK && wants_packing(&p))
        status = pack(&p, stream);
    describe_weights(&p);
    if (status == KN_OK)
        status = correlate(&p, stream);
    kn_buffer_free(p.scratch);
    kn_buffer_free(p.packed);
    return status;
}

/* --- choice ------------------------------------------------------------------------------------------------------- */

bool kn_conv_supports_bands(const kn_limits *limits, const void *problem)
{
    if (!kn_conv_bands_fit(problem))
        return false;
    bands_pass p = {.problem = problem};
    describe(&p, limits);
    double planes = (double)kn_conv_band_planes(&p.bands) * (double)p.bands.layout.plane;
    return planes < 2147483647.0 &&
           (double)p.items * (double)p.scratch_size * (double)p.element <= (double)limits->max_allocation;
}

/* A 1 x 1 kernel that reads every pixel. Forward to 9 to 15 channels, of 28 x 28 or 56 x 56 pixels, this takes a third
 * of the time of direct.c (Intel Xeon). */
static bool is_pointwise(const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    const int64_t least = problem->pass == KN_CONV_FORWARD ? 9 : 16;
    return kn_conv_reads_each_pixel_once(s) && s->groups == 1 && s->in_channels >= 16 && s->out_channels >= least;
}

/* With a stride any number of taps pays. Of short rows, half a vector of channels that are sums of many takes direct.c
 * 0.6 of the time, and dx, whose rows this interleaves, takes rows.c half the time. */
static bool strides_pay(const kn_conv_problem *problem, bool are_half)
{
    enum { MANY = 8, SHORT = 32 };
    const kn_conv_shape *s = &problem->shape;
    if (problem->pass == KN_CONV_DATA)
        return s->in_size[2] > SHORT * s->stride[2];
    return !are_half || kn_conv_from(problem).channels < MANY || s->out_size[2] > SHORT;
}

/* At most half a vector of output channels, which other implementations pad, and enough taps to pay for copying the
 * band. */
static bool few_channels(const kn_limits *limits, const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    const int64_t both = 2 * kn_conv_to(problem).channels, width = kn_conv_vector_width(limits, s->f64);
    if (both > width)
        return false;
    return s->stride[1] > 1 || s->stride[2] > 1
               ? strides_pay(problem, both == width)
               : kn_conv_from(problem).channels * s->kernel_size[1] * s->kernel_size[2] >= 64;
}

/* Backward-data of images too small to be read in place needs weights with whole vectors of contiguous channels. */
bool kn_conv_prefers_bands(const kn_limits *limits, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    if (!limits->is_cpu || !is_pointwise(problem))
        return limits->is_cpu && (few_channels(limits, problem) || kn_conv_is_depthwise_signal(limits, problem));
    if (problem->pass == KN_CONV_FORWARD)
        return true;
    bands_pass p = {.problem = problem};
    describe(&p, limits);
    return p.bands.layout.in_place;
}
