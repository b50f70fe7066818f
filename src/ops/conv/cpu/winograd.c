/* ops/conv/cpu/winograd.c - convolution forward and backward-data on CPU devices by Winograd's algorithm
 * (cl/conv/cpu/winograd.cl): kernels of 3 or 5 taps along rows, columns or both, with stride 1. */
#include "ops/conv/cpu/winograd.h"

#include "conv/cpu/winograd.h"
#include "ops/conv/common/correlation.h"
#include "ops/conv/cpu/parts.h"
#include "ops/conv/cpu/winograd_divide.h"

#include <stdio.h>

enum { MAX_PRODUCTS = 160 * 36 }; /* of the tiles of a block, per channel: they stay in the L2 cache */

/* A run: shape, operands and compile-time parameters. */
typedef struct winograd {
    const kn_conv_problem *problem;
    kn_winograd_shape shape;
    kn_arg x, weight, bias, y;
    kn_winograd_tile tile;
    int vector_width, tiles, vectors; /* VW, MT, KV */
    int64_t items;                    /* work-items: one per core, because each has its own scratch memory */
    int64_t transformed, preparing;   /* elements of the transformed weights or tiles, and of scratch memory for them */
} winograd;

static void describe(winograd *w, const kn_limits *limits, const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    const kn_conv_side from = kn_conv_from(problem), to = kn_conv_to(problem);
    const bool data = problem->pass == KN_CONV_DATA;
    const kn_winograd_tile tile = kn_winograd_tile_of(problem);
    const int64_t area = tile.kernel_rows * tile.kernel_columns;
    *w = (winograd){.problem = problem,
                    .x = kn_conv_arg(s, from.operand),
                    .weight = kn_conv_arg(s, problem->weight),
                    .bias = kn_conv_bias_arg(problem),
                    .y = kn_conv_arg(s, to.operand),
                    .vector_width = kn_conv_vector_width(limits, false),
                    .tile = tile,
                    .tiles = kn_conv_many_registers(limits) ? 14 : 6,
                    .vectors = 2};
    w->shape = (kn_winograd_shape){.groups = s->groups,
                                   .images = s->images,
                                   .inner = from.channels,
                                   .outer = to.channels,
                                   .height = from.size[1],
                                   .width = from.size[2],
                                   .out_height = to.size[1],
                                   .out_width = to.size[2],
                                   .top = data ? s->padding[1] - tile.kernel_rows + 1 : -s->padding[1],
                                   .left = data ? s->padding[2] - tile.kernel_columns + 1 : -s->padding[2],
                                   .tile_rows = kn_div_up(to.size[1], tile.rows),
                                   .tile_columns = kn_div_up(to.size[2], tile.columns),
                                   .group_stride = from.channels * to.channels * area,
                                   .outer_stride = data ? area : from.channels * area,
                                   .inner_stride = data ? to.channels * area : area,
                                   .flipped = data};
}

static int64_t tiles_of(const kn_winograd_shape *s) { return s->images * s->tile_rows * s->tile_columns; }
static int64_t blocks_of(const winograd *w) /* output channel blocks */
{
    return kn_div_up(w->shape.outer, w->vectors * w->vector_width);
}

/* Scratch elements of winograd_repack for a run of tiles, and of gather_taps. */
static int64_t window_size(const winograd *w, int64_t tiles)
{
    const kn_winograd_tile *t = &w->tile;
    const int64_t columns = kn_min_i64(tiles, w->shape.tile_columns) * t->columns + t->kernel_columns - 1;
    return t->window_rows * columns * w->vector_width;
}
static int64_t taps_size(const winograd *w)
{
    return w->tile.kernel_rows * w->tile.kernel_columns * w->vector_width * w->vector_width;
}

/* --- many tiles --------------------------------------------------------------------------------------------------- */

/* Stride of u from one p to the next: not a power of 2, so that the vectors of all p fit in the L1 cache. */
static int64_t u_pitch(const winograd *w)
{
    return kn_round_up_i64(w->shape.inner, w->vector_width) * w->vectors * w->vector_width + w->vector_width;
}

static kn_winograd_work work_of(const winograd *w, const kn_limits *limits)
{
    const kn_winograd_shape *s = &w->shape;
    return (kn_winograd_work){.tiles = tiles_of(s),
                              .inner = s->inner,
                              .outer = kn_div_up(s->outer, w->vector_width),
                              .groups = s->groups,
                              .cores = limits->compute_units,
                              .register_tiles = w->tiles};
}

/* For blocks of s->tiles tiles and a window of `window` elements. */
static void choose_blocks(winograd *w, const kn_limits *limits, int64_t blocks, int64_t window)
{
    kn_winograd_shape *s = &w->shape;
    int64_t width = w->vector_width, block = w->vectors * width;
    s->panels = kn_min_i64(2, blocks_of(w));
    s->chunk = width;
    w->items = kn_min_i64(blocks * s->parts, limits->compute_units);
    s->scratch = w->tile.values * s->tiles * (kn_round_up_i64(s->inner, width) + s->panels * block) + window;
    w->transformed = s->groups * blocks_of(w) * w->tile.values * u_pitch(w);
    w->preparing = taps_size(w) * s->groups * blocks_of(w) * kn_div_up(s->inner, s->chunk);
}

static void choose_many(winograd *w, const kn_limits *limits)
{
    const kn_winograd_work work = work_of(w, limits);
    const kn_winograd_division by = kn_winograd_divide_many(&work, w->vectors);
    w->shape.tiles = by.tiles;
    w->shape.parts = by.parts;
    choose_blocks(w, limits, kn_div_up(work.tiles, by.tiles), window_size(w, by.tiles));
}

static kn_status transform_weights(kn_stream *stream, const winograd *w, const char *options, kn_buffer *u,
                                   kn_buffer *scratch)
{
    const kn_winograd_shape *s = &w->shape;
    return kn_run(stream, .source = "conv/cpu/winograd.cl", .kernel = "winograd_weights", .operation = "conv2d",
                  .options = options, .dims = 2,
                  .global = {(size_t)(s->groups * blocks_of(w)), (size_t)kn_div_up(s->inner, s->chunk)},
                  .local = {1, 1},
                  KN_ARGS(w->weight, kn_arg_buffer(u, 0), kn_arg_buffer(scratch, 0), kn_arg_struct(s, sizeof *s),
                          kn_arg_i64(u_pitch(w))));
}

static kn_status launch_many(kn_stream *stream, const winograd *w, const char *options, kn_buffer *u,
                             kn_buffer *scratch)
{
    const kn_winograd_shape *s = &w->shape;
    KN_TRY(transform_weights(stream, w, options, u, scratch));
    return kn_run(stream, .source = "conv/cpu/winograd.cl", .kernel = "winograd_many", .operation = "conv2d",
                  .options = options, .dims = 2, .global = {(size_t)w->items, (size_t)s->groups}, .local = {1, 1},
                  KN_ARGS(w->x, kn_arg_buffer(u, 0), w->bias, w->y, kn_arg_buffer(scratch, 0),
                          kn_arg_struct(s, sizeof *s), kn_arg_i64(u_pitch(w)), KN_CONV_EPILOGUE_ARGS(w->problem)));
}

/* --- backward-data from tiles of dy ------------------------------------------------------------------------------- */

/* Describes the pass by tiles of dy instead of dx. */
static void describe_scattered(winograd *w)
{
    const kn_conv_shape *c = &w->problem->shape;
    kn_winograd_shape *s = &w->shape;
    s->tile_rows = kn_div_up(s->height, w->tile.rows);
    s->tile_columns = kn_div_up(s->width, w->tile.columns);
    s->top = -c->padding[1];
    s->left = -c->padding[2];
    s->flipped = false;
}

/* Instructions per tile and vector of sums, in register tiles of so many by two vectors. */
static double cost_of_tile(int64_t tiles) { return 1.5 + 1.0 / (double)tiles; }

/* The same per image, for the tiles of a block with its padding. */
static double cost_of_images(int64_t images, int64_t each, int64_t tiles)
{
    return (double)kn_round_up_i64(images * each, tiles) / (double)images * cost_of_tile(tiles);
}

/* Images per block, and the register tiles, of which there are at least two: those with the least padding. */
static void choose_scattered(winograd *w, const kn_limits *limits)
{
    kn_winograd_shape *s = &w->shape;
    describe_scattered(w);
    const int64_t each = s->tile_rows * s->tile_columns, most = w->tiles, least = kn_div_up(2 * most, each);
    int64_t together = least;
    for (int64_t tiles = most; 2 * tiles > most; tiles--)
        for (int64_t images = least; images <= least + 2; images++)
            if (cost_of_images(images, each, tiles) < cost_of_images(together, each, w->tiles)) {
                together = images;
                w->tiles = (int)tiles;
            }
    s->tiles = kn_round_up_i64(together * each, w->tiles);
    s->parts = 1;
    const int64_t rows = s->tile_rows * w->tile.rows + w->tile.kernel_rows - 1,
                  columns = s->tile_columns * w->tile.columns + w->tile.kernel_columns - 1;
    choose_blocks(w, limits, kn_div_up(s->images, s->tiles / each), rows * columns * w->vector_width);
}

static kn_status launch_scattered(kn_stream *stream, const winograd *w, const char *options, kn_buffer *u,
                                  kn_buffer *scratch)
{
    const kn_winograd_shape *s = &w->shape;
    KN_TRY(transform_weights(stream, w, options, u, scratch));
    return kn_run(stream, .source = "conv/cpu/winograd.cl", .kernel = "winograd_scattered", .operation = "conv2d",
                  .options = options, .dims = 2, .global = {(size_t)w->items, (size_t)s->groups}, .local = {1, 1},
                  KN_ARGS(w->x, kn_arg_buffer(u, 0), w->y, kn_arg_buffer(scratch, 0), kn_arg_struct(s, sizeof *s),
                          kn_arg_i64(u_pitch(w))));
}

/* --- few tiles ---------------------------------------------------------------------------------------------------- */

/* At most as many tiles per block as keep its products in the L2 cache. A chunk's weights are there, too, so register
 * tiles are as in direct convolution: six tiles by four vectors, say, need fewer instructions than 14 by two, and take
 * 0.8 to 0.95 of their time on an Intel Xeon. Of many tiles the weights come from farther away, and 14 share them. */
static void choose_few(winograd *w, const kn_limits *limits)
{
    kn_winograd_shape *s = &w->shape;
    const kn_conv_tile tile = kn_conv_choose_channel_tile(limits, false, s->outer);
    w->tiles = (int)tile.columns;
    const kn_winograd_work work = work_of(w, limits);
    const kn_winograd_division by = kn_winograd_divide_few(&work, tile.channels, MAX_PRODUCTS / w->tile.values);
    w->vectors = (int)by.vectors;
    int64_t width = w->vector_width, block = w->vectors * width, tiles = work.tiles;
    s->tiles = by.tiles;
    s->panels = 1;
    s->chunk = kn_max_i64(width, kn_min_i64(32, kn_round_up_i64(s->inner, width)));
    w->items = kn_min_i64(kn_div_up(tiles, s->tiles) * by.parts, limits->compute_units);
    s->scratch = w->tile.values * (s->chunk * block + s->chunk + s->tiles * block) + taps_size(w);
    w->transformed = s->groups * w->tile.values * kn_round_up_i64(s->inner, width) * kn_round_up_i64(tiles, w->tiles);
    w->preparing = window_size(w, tiles) * s->groups * kn_div_up(s->inner, width);
}

static kn_status launch_few(kn_stream *stream, const winograd *w, const char *options, kn_buffer *v, kn_buffer *scratch)
{
    const kn_winograd_shape *s = &w->shape;
    KN_TRY(kn_run(stream, .source = "conv/cpu/winograd_few.cl", .kernel = "winograd_transform", .operation = "conv2d",
                  .options = options, .dims = 2,
                  .global = {(size_t)kn_div_up(s->inner, w->vector_width), (size_t)s->groups}, .local = {1, 1},
                  KN_ARGS(w->x, kn_arg_buffer(v, 0), kn_arg_buffer(scratch, 0), kn_arg_struct(s, sizeof *s),
                          kn_arg_i64(window_size(w, tiles_of(s))))));
    return kn_run(stream, .source = "conv/cpu/winograd_few.cl", .kernel = "winograd_few", .operation = "conv2d",
                  .options = options, .dims = 2, .global = {(size_t)w->items, (size_t)s->groups}, .local = {1, 1},
                  KN_ARGS(kn_arg_buffer(v, 0), w->weight, w->bias, w->y, kn_arg_buffer(scratch, 0),
                          kn_arg_struct(s, sizeof *s), KN_CONV_EPILOGUE_ARGS(w->problem)));
}

/* ------------------------------------------------------------------------------------------------------------------ */

/* Transformed weights are reread for each block of tiles, transformed tiles for each block of output channels. So tiles
 * are transformed first if they fit the shared cache and are smaller than weights that exceed the cores' own caches; or
 * if one block holds them all, so that no weight is transformed twice. */
static bool is_few(const winograd *w)
{
    int64_t tiles = tiles_of(&w->shape), inner = kn_round_up_i64(w->shape.inner, w->vector_width);
    int64_t v_bytes = w->tile.values * 4 * inner * tiles, u_bytes = w->tile.values * 4 * inner * w->shape.outer;
    return v_bytes <= 16 << 20 && (tiles * w->tile.values <= MAX_PRODUCTS || u_bytes > kn_max_i64(v_bytes, 4 << 20));
}

/* Of backward-data: does dy have much fewer tiles than dx, and do an image's, transformed, stay in the core's cache? */
static bool scatters(const winograd *w, const kn_limits *limits)
{
    const kn_winograd_shape *s = &w->shape;
    const int64_t tiles = kn_div_up(s->height, w->tile.rows) * kn_div_up(s->width, w->tile.columns);
    const int64_t bytes = w->tile.values * tiles * kn_round_up_i64(s->inner, w->vector_width) * 4;
    return w->problem->pass == KN_CONV_DATA && tiles > 0 && 5 * tiles <= 4 * s->tile_rows * s->tile_columns &&
           bytes <= (int64_t)limits->core_cache;
}

/* How the pass is computed: `choose` completes w, `launch` enqueues the kernels. */
typedef struct schedule {
    void (*choose)(winograd *w, const kn_limits *limits);
    kn_status (*launch)(kn_stream *stream, const winograd *w, const char *options, kn_buffer *transformed,
                        kn_buffer *scratch);
} schedule;

static schedule schedule_of(const winograd *w, const kn_limits *limits)
{
    if (is_few(w))
        return (schedule){choose_few, launch_few};
    return scatters(w, limits) ? (schedule){choose_scattered, launch_scattered} : (schedule){choose_many, launch_many};
}

/* Register tiles of many tiles: forward those of the backward-data pass, if that scatters, unless they cost over 2 %
 * more. Both passes then run kernels of one program, which takes half a second to compile. */
static int shared_tiles(const winograd *w, const kn_limits *limits)
{
    kn_conv_problem backward = *w->problem;
    winograd other;
    if (w->problem->pass != KN_CONV_FORWARD)
        return w->tiles;
    backward.pass = KN_CONV_DATA;
    describe(&other, limits, &backward);
    if (!is_few(&other) && scatters(&other, limits))
        choose_scattered(&other, limits);
    return cost_of_tile(other.tiles) <= 1.02 * cost_of_tile(w->tiles) ? other.tiles : w->tiles;
}

kn_status kn_conv_run_winograd(kn_stream *stream, const void *problem)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    char options[KN_CONV_OPTIONS];
    winograd w;
    describe(&w, limits, problem);
    const schedule by = schedule_of(&w, limits);
    w.tiles = shared_tiles(&w, limits);
    by.choose(&w, limits);
    snprintf(options, sizeof options, "-DT=float -DVW=%d -DMT=%d -DKV=%d" KN_WINOGRAD_OPTIONS, w.vector_width, w.tiles,
             w.vectors, KN_WINOGRAD_OPTION_VALUES(&w.tile));
    kn_buffer *transformed = NULL, *scratch = NULL;
    const int64_t blocks = w.items * w.shape.groups * w.shape.scratch;
    kn_status status = kn_buffer_alloc(&transformed, stream, (size_t)(w.transformed * 4));
    if (status == KN_OK)
        status = kn_buffer_alloc(&scratch, stream, (size_t)(kn_max_i64(w.preparing, blocks) * 4));
    if (status == KN_OK)
        status = by.launch(stream, &w, options, transformed, scratch);
    kn_buffer_free(transformed);
    kn_buffer_free(scratch);
    return status;
}

bool kn_conv_supports_winograd(const kn_limits *limits, const void *problem)
{
    (void)limits;
    return kn_winograd_has_tile(problem) && !((const kn_conv_problem *)problem)->shape.f64;
}

/* Measured with vectors of 8: of the time of a direct convolution 8 channels to 16 take 0.5 to 0.8 with 3 x 3 kernels,
 * 6 to 16 with 5 x 5 ones likewise, and 4 to 16 as much. Kernels of one row or column save half as much: 5 taps take
 * 0.5 to 0.9 from 32 channels on, 3 taps from 64 on. With vectors of 16 taken in halves, 12 channels take 0.6 to 1
 * with 3 x 3 kernels, 24 channels 0.6 to 0.9 with 5 taps, and 32 channels 0.65 to 0.95 with 3 taps; half as many take
 * 0.5 to 0.9 to twice as many. With those taken whole, which sum directly twice as fast, so few channels have not been
 * measured. */
bool kn_conv_has_winograd_channels(const kn_limits *limits, const kn_winograd_tile *tile, int64_t read, int64_t written)
{
    /* with vectors of 8, of 16 in halves, of 16 taken whole; 3 taps, 5 taps */
    static const int line[][2] = {{64, 32}, {32, 24}, {128, 64}}, square[][2] = {{8, 6}, {12, 12}, {32, 16}};
    const bool five = kn_max_i64(tile->kernel_rows, tile->kernel_columns) == 5,
               halves = kn_limits_halves_vectors(limits);
    const int vectors = !kn_conv_many_registers(limits) ? 0 : halves ? 1 : 2;
    const int64_t least =
        tile->kernel_rows == 1 || tile->kernel_columns == 1 ? line[vectors][five] : square[vectors][five];
    return kn_min_i64(read, written) >= least || (halves && 2 * read >= least && written >= 2 * least);
}

/* Transforming weights needs tiles to pay off: two take 0.6 of a direct convolution's time, as its weights are brought
 * into another order, too. Transforming tiles needs channels; with relatively much padding, implementations that skip
 * it do less work. */
enum { LEAST_TILES = 2 };
bool kn_conv_prefers_winograd(const kn_limits *limits, const void *problem)
{
    const kn_conv_side from = kn_conv_from(problem), to = kn_conv_to(problem);
    const kn_winograd_tile tile = kn_winograd_tile_of(problem);
    if (!limits->is_cpu || !kn_winograd_has_tile(problem))
        return false;
    const int64_t images = ((const kn_conv_problem *)problem)->shape.images;
    return kn_conv_has_winograd_channels(limits, &tile, from.channels, to.channels) &&
           images * kn_winograd_tiles_per_image(&tile, to.size) >= LEAST_TILES &&
           kn_winograd_saving(&tile, to.size) > 1.3 * kn_conv_padding_factor(problem);
}
