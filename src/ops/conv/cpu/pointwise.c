/* ops/conv/cpu/pointwise.c - 1 x 1 convolutions on CPU devices, all three passes, as matrix products over the pixels of
 * all images (cl/conv/cpu/pointwise.cl). With strides or padding only backward-data: ops/conv/gathered.c. */
#include "conv/cpu/pointwise.h"
#include "gemm/tile.h"
#include "ops/conv/cpu/gather.h"
#include "ops/conv/cpu/parts.h"

#include <math.h>

enum { CHUNK_BYTES = 128 << 10 }; /* of weights, kept in the L2 cache */
enum { BLOCK_BYTES = 128 << 10 }; /* of results, likewise */
enum { FEW_PIXELS = 150 };

typedef struct pointwise {
    const kn_conv_problem *problem;
    kn_conv_sampling grid;
    kn_conv_pointwise_shape shape;
    kn_conv_tile tile;             /* pixels ("columns") by vectors of channels */
    int64_t element, tiles, items; /* tiles: in total */
    char options[KN_CONV_OPTIONS];
    kn_buffer *panels, *scratch;
} pointwise;

static void set_options(char *options, const kn_limits *limits, bool f64, kn_conv_tile tile)
{
    kn_conv_options(options, limits, f64, (int)tile.channels, "MT", (int)tile.columns);
}

/* Of a pass that reads and writes all pixels: a single row. */
static kn_conv_sampling whole_grid(const kn_conv_shape *s)
{
    int64_t pixels = s->out_size[1] * s->out_size[2];
    return (kn_conv_sampling){.images = s->images,
                              .rows = 1,
                              .columns = pixels,
                              .height = 1,
                              .width = pixels,
                              .row_step = 1,
                              .column_step = 1};
}

/* Tiles per block whose results fit in cache; and, of all channels that are summed, what the tiles read: else each
 * block of channels reads it from the L3 cache, which takes up to 1.3 times as long on an Intel Xeon with 2 MiB of L2.
 * With a smaller one, or for few pixels, packing weights for each block costs more. */
static int64_t most_results(int64_t tile_bytes) { return kn_max_i64(1, BLOCK_BYTES / tile_bytes); }
static int64_t most_tiles(const kn_limits *limits, const pointwise *p)
{
    const int64_t pixels = p->tile.columns, cache = (int64_t)limits->core_cache,
                  most = most_results(pixels * p->tile.block * p->element),
                  summed = cache * 3 / 8 / (pixels * kn_max_i64(1, p->shape.inner) * p->element);
    return cache < KN_CONV_LARGE_CACHE || summed * pixels < FEW_PIXELS ? most : kn_min_i64(most, summed);
}

/* Tiles per block: at most `most`, and few enough that the pairs of tile block and channel block spread evenly over the
 * cores. */
static int64_t choose_tiles(const kn_limits *limits, int64_t tiles, int64_t most, int64_t channel_blocks,
                            int64_t *items)
{
    int64_t cores = limits->compute_units;
    for (int64_t blocks = kn_max_i64(1, kn_div_up(tiles, most));; blocks++) {
        int64_t each = kn_max_i64(1, kn_div_up(tiles, blocks)), pairs = kn_div_up(tiles, each) * channel_blocks;
        *items = kn_min_i64(pairs, 2 * cores); /* two each: a delayed core leaves its second to another */
        if (each == 1 || (each <= 4 && pairs >= cores) || 20 * kn_div_up(pairs, cores) * cores <= 21 * pairs)
            return each;
    }
}

/* Chunk length along the summed dimension of `inner` items, `bytes` each. */
static int64_t choose_chunk(int64_t inner, int64_t bytes)
{
    int64_t chunks = kn_max_i64(1, kn_div_up(inner * bytes, CHUNK_BYTES));
    return kn_max_i64(1, kn_div_up(kn_div_up(inner, chunks), 16)) * 16;
}

static void describe(pointwise *p, const kn_limits *limits, const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    const bool all = kn_conv_reads_each_pixel_once(s), data = problem->pass == KN_CONV_DATA;
    const kn_conv_tile tile = kn_conv_choose_channel_tile(limits, s->f64, kn_conv_to(problem).channels);
    const int64_t inner = kn_conv_from(problem).channels, element = s->f64 ? 8 : 4;
    *p = (pointwise){.problem = problem, .element = element, .tile = tile};
    p->grid = all ? whole_grid(s) : kn_conv_sampling_of(s);
    p->tiles = kn_div_up(s->images * s->out_size[1] * s->out_size[2], tile.columns);
    p->shape = (kn_conv_pointwise_shape){.inner = inner,
                                         .outer = kn_conv_to(problem).channels,
                                         .inner_stride = data ? s->in_channels : 1,
                                         .outer_stride = data ? 1 : s->in_channels,
                                         .chunk = choose_chunk(inner, tile.block * element),
                                         .panel = tile.columns * inner + STAGED_GAP,
                                         .spread = data && !all};
    p->shape.tiles =
        choose_tiles(limits, p->tiles, most_tiles(limits, p), kn_div_up(p->shape.outer, tile.block), &p->items);
    p->shape.scratch = tile.block * (p->shape.chunk + p->shape.tiles * tile.columns * (p->shape.spread ? 2 : 1));
    set_options(p->options, limits, s->f64, tile);
}

static kn_status pack(pointwise *p, kn_stream *stream)
{
    enum { CHANNELS = 32 }; /* per work-item */
    const kn_conv_problem *problem = p->problem;
    const kn_conv_shape *s = &problem->shape;
    int64_t inner = p->shape.inner;
    return kn_run(stream, .source = "conv/cpu/pointwise.cl", .kernel = "pointwise_pack", .operation = "conv2d",
                  .options = p->options, .dims = 2,
                  .global = {(size_t)kn_div_up(p->tiles, KN_CONV_PACKED_TILES), (size_t)kn_div_up(inner, CHANNELS)},
                  .local = {1, 1},
                  KN_ARGS(kn_conv_arg(s, kn_conv_from(problem).operand), kn_arg_buffer(p->panels, 0),
                          kn_arg_i64(s->images), kn_arg_i64(s->out_size[1] * s->out_size[2]), kn_arg_i64(inner),
                          kn_arg_i64(CHANNELS), kn_arg_i64(p->shape.panel)));
}

static kn_status multiply(pointwise *p, kn_stream *stream)
{
    const kn_conv_problem *problem = p->problem;
    const kn_conv_shape *s = &problem->shape;
    return kn_run(stream, .source = "conv/cpu/pointwise.cl", .kernel = "pointwise_multiply", .operation = "conv2d",
                  .options = p->options, .dims = 1, .global = {(size_t)p->items}, .local = {1},
                  KN_ARGS(kn_arg_buffer(p->panels, 0), kn_conv_arg(s, problem->weight), kn_conv_bias_arg(problem),
                          kn_conv_arg(s, kn_conv_to(problem).operand), kn_arg_buffer(p->scratch, 0),
                          kn_arg_struct(&p->grid, sizeof p->grid), kn_arg_struct(&p->shape, sizeof p->shape),
                          KN_CONV_EPILOGUE_ARGS(problem)));
}

static kn_status correlate(kn_stream *stream, const kn_conv_problem *problem)
{
    pointwise p;
    describe(&p, kn_device_limits(kn_stream_device(stream)), problem);
    kn_status status = kn_buffer_alloc(&p.panels, stream, (size_t)(p.tiles * p.shape.panel * p.element));
    if (status == KN_OK)
        status = kn_buffer_alloc(&p.scratch, stream, (size_t)(p.items * p.shape.scratch * p.element));
    if (status == KN_OK && p.shape.inner > 0)
        status = pack(&p, stream);
    if (status == KN_OK)
        status = multiply(&p, stream);
    kn_buffer_free(p.panels);
    kn_buffer_free(p.scratch);
    return status;
}

/* --- the gradient of the weights ---------------------------------------------------------------------------------- */

/* Of a product whose columns, x's or dy's channels, are in vectors. */
static kn_conv_tile tile_of(const kn_limits *limits, const kn_conv_shape *s, bool x_rows)
{
    return kn_conv_choose_channel_tile(limits, s->f64, x_rows ? s->out_channels : s->in_channels);
}

/* Estimated time: that of whole tiles, plus transposing the columns' side, which costs as much as a few rows. Infinite
 * where there is not a whole tile of rows. */
static double cost_of(const kn_limits *limits, const kn_conv_shape *s, bool x_rows)
{
    enum { TRANSPOSING = 9 };
    const kn_conv_tile tile = tile_of(limits, s, x_rows);
    const int64_t rows = x_rows ? s->in_channels : s->out_channels, columns = x_rows ? s->out_channels : s->in_channels;
    if (rows < tile.columns)
        return INFINITY;
    return (double)(kn_round_up_i64(rows, tile.columns) + TRANSPOSING) * (double)kn_round_up_i64(columns, tile.block);
}

typedef struct weights_pass {
    const kn_conv_problem *problem;
    kn_conv_tile tile;
    kn_conv_pointwise_product product;
    bool x_rows;
    int64_t items, element;
    kn_buffer *scratch, *sums; /* sums: with several shares, each has its own */
} weights_pass;

/* Enough shares of the pixels to keep many cores busy where channels are few, but few enough that storing and adding
 * their sums costs little. Constant, so that the order of sums does not depend on the number of cores. */
enum { UNITS_WANTED = 32, SHARE_PIXELS = 2048 };
static void choose_shares(kn_conv_pointwise_product *p, int64_t pairs)
{
    const int64_t pixels = p->images * p->plane;
    const int64_t most = kn_max_i64(1, kn_min_i64(UNITS_WANTED / pairs, pixels / SHARE_PIXELS));
    p->share_pixels = kn_max_i64(1, kn_div_up(kn_div_up(pixels, most), 16)) * 16;
    p->shares = kn_max_i64(1, kn_div_up(pixels, p->share_pixels));
}

static weights_pass weights_pass_of(const kn_limits *limits, const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    const bool x_rows = cost_of(limits, s, true) < cost_of(limits, s, false);
    weights_pass w = {
        .problem = problem, .tile = tile_of(limits, s, x_rows), .x_rows = x_rows, .element = kn_conv_element(s)};
    kn_conv_pointwise_product *p = &w.product;
    *p = (kn_conv_pointwise_product){.images = s->images,
                                     .plane = s->out_size[1] * s->out_size[2],
                                     .rows = x_rows ? s->in_channels : s->out_channels,
                                     .columns = x_rows ? s->out_channels : s->in_channels,
                                     .row_stride = x_rows ? 1 : s->in_channels,
                                     .column_stride = x_rows ? s->in_channels : 1};
    const int64_t tiles = kn_div_up(p->rows, w.tile.columns), blocks = kn_div_up(p->columns, w.tile.block),
                  most = most_results(w.tile.columns * w.tile.block * w.element);
    choose_shares(p, kn_div_up(tiles, most) * blocks);
    p->chunk = choose_chunk(p->share_pixels, w.tile.block * w.element);
    p->tiles = choose_tiles(limits, tiles, most, blocks * p->shares, &w.items);
    p->scratch = w.tile.block * (p->chunk + p->tiles * w.tile.columns);
    return w;
}

static kn_status multiply_shares(const weights_pass *w, kn_stream *stream)
{
    const kn_conv_problem *problem = w->problem;
    const kn_conv_shape *s = &problem->shape;
    const kn_arg x = kn_conv_arg(s, problem->x), y = kn_conv_arg(s, problem->y);
    char options[KN_CONV_OPTIONS];
    set_options(options, kn_device_limits(kn_stream_device(stream)), s->f64, w->tile);
    return kn_run(stream, .source = "conv/cpu/pointwise.cl", .kernel = "pointwise_weights",
                  .operation = "conv2d_backward_weights", .options = options, .dims = 1, .global = {(size_t)w->items},
                  .local = {1},
                  KN_ARGS(w->x_rows ? x : y, w->x_rows ? y : x, kn_conv_arg_or(w->sums, s, problem->weight),
                          kn_arg_buffer(w->scratch, 0), kn_arg_struct(&w->product, sizeof w->product)));
}

static kn_status run_weights(kn_stream *stream, const kn_conv_problem *problem)
{
    weights_pass w = weights_pass_of(kn_device_limits(kn_stream_device(stream)), problem);
    const kn_conv_pointwise_product *p = &w.product;
    kn_status status = kn_buffer_alloc(&w.scratch, stream, (size_t)(w.items * p->scratch * w.element));
    if (status == KN_OK && p->shares > 1)
        status = kn_buffer_alloc(&w.sums, stream, (size_t)(p->shares * p->rows * p->columns * w.element));
    if (status == KN_OK)
        status = multiply_shares(&w, stream);
    if (status == KN_OK && w.sums)
        status = kn_conv_total_gradient(stream, problem, w.sums, p->shares, NULL, 0, 0);
    kn_buffer_free(w.scratch);
    kn_buffer_free(w.sums);
    return status == KN_OK && problem->bias.buffer ? kn_conv_bias_gradient(stream, problem) : status;
}

kn_status kn_conv_run_pointwise(kn_stream *stream, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    return problem->pass == KN_CONV_WEIGHTS ? run_weights(stream, problem) : correlate(stream, problem);
}

/* --- choice ------------------------------------------------------------------------------------------------------- */

/* For the gradient of the weights, tiles of rows must be full. */
bool kn_conv_supports_pointwise(const kn_limits *limits, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    const kn_conv_shape *s = &problem->shape;
    if (problem->pass == KN_CONV_WEIGHTS && (s->in_channels == 0 || s->out_channels == 0 ||
                                             isinf(fmin(cost_of(limits, s, true), cost_of(limits, s, false)))))
        return false;
    return kn_conv_is_flat(s) && s->kernel_size[1] == 1 && s->kernel_size[2] == 1 && s->groups == 1 &&
           (double)s->out_size[1] * (double)s->out_size[2] < (double)(1 << 26) &&
           (problem->pass == KN_CONV_DATA || kn_conv_reads_each_pixel_once(s));
}

/* Sums long enough to amortise the transpose, and enough channels. Bands (bands.c) also read larger images in place and
 * transpose nothing: there sums must be longer still, unless channels are so far apart that bands lose more (8 images,
 * in cycles per result: 64 channels to 256 at 56 x 56 pixels 15 % less than theirs; at 28 x 28, 512 to 128 4 % less,
 * 128 to 512 3 % more, 192 to 64 and back up to 10 % more); not where vectors are taken in halves (5 to 12 % more). */
static bool beats_bands(const kn_limits *limits, int64_t inner, int64_t outer, int64_t width, int64_t pixels)
{
    return outer > 4 * width && (inner >= 256 || pixels >= 2048) && !kn_limits_halves_vectors(limits);
}

bool kn_conv_prefers_pointwise(const kn_limits *limits, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    const kn_conv_shape *s = &problem->shape;
    const int64_t inner = kn_conv_from(problem).channels, outer = kn_conv_to(problem).channels;
    const int64_t pixels = s->out_size[1] * s->out_size[2];
    if (problem->pass == KN_CONV_WEIGHTS)
        return limits->is_cpu && kn_min_i64(inner, outer) >= 16 && kn_max_i64(inner, outer) >= 64;
    const kn_conv_tile tile = kn_conv_choose_channel_tile(limits, s->f64, outer);
    return limits->is_cpu && inner >= 48 && 5 * kn_round_up_i64(outer, tile.block) <= 6 * outer &&
           (pixels < 512 || !kn_conv_reads_each_pixel_once(s) ||
            beats_bands(limits, inner, outer, tile.vector_width, pixels));
}
