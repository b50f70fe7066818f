/* ops/conv/cpu/winograd_weights.c - the gradient of a convolution's weights and bias by Winograd's method on CPU
 * devices (cl/conv/cpu/winograd_weights.cl): kernels of 3 or 5 taps along
 * rows, columns or both, with stride 1. */
#include "ops/conv/cpu/winograd.h"

#include "conv/cpu/winograd.h"

#include <stdio.h>

enum { STAGE_BYTES = 128 << 10 }; /* of a strip's packed channels: stays in the L2 cache */
enum { MIN_CHUNK_BYTES = 8 << 20, MAX_CHUNK_BYTES = 64 << 20 }; /* of a chunk's transforms: the L3 cache */
enum { ITEMS_PER_UNIT = 8 }; /* work-items per compute unit if each has scratch memory */

typedef struct winograd_pass {
    const kn_conv_problem *problem;
    kn_winograd_tile tile;
    int64_t element, width;
    int64_t items, all_strips, strips_per_chunk, chunks;
    kn_winograd_side x, dy;
    kn_winograd_chunk chunk;
    kn_winograd_sharing plan;
    bool at_once;
    char options[KN_CONV_OPTIONS];
    kn_buffer *v, *m, *du, *bias_part, *stages;
} winograd_pass;

bool kn_conv_supports_winograd_weights(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    (void)limits;
    return kn_winograd_has_tile(problem) && s->groups == 1 && s->images > 0 && s->in_channels > 0 &&
           s->out_channels > 0;
}

/* Little is saved if tiles are mostly empty (a 5 x 5 kernel on an image of 2 x 2), and a launch more costs as much as
 * LEAST_PRODUCTS. */
bool kn_conv_prefers_winograd_weights(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    enum { LEAST_PRODUCTS = 1 << 13 }; /* per frequency */
    const kn_winograd_tile tile = kn_winograd_tile_of(problem);
    const int64_t tiles = kn_winograd_tiles_per_image(&tile, s->out_size);
    return limits->is_cpu && kn_winograd_has_tile(problem) && kn_winograd_saving(&tile, s->out_size) >= 1.7 &&
           kn_conv_has_winograd_channels(limits, &tile, kn_min_i64(s->in_channels, s->out_channels),
                                         kn_max_i64(s->in_channels, s->out_channels)) &&
           s->images * tiles * s->in_channels * s->out_channels >= LEAST_PRODUCTS;
}

static void describe_tiles(winograd_pass *w)
{
    const kn_conv_shape *s = &w->problem->shape;
    const kn_winograd_tile *t = &w->tile;
    kn_winograd_chunk *g = &w->chunk;
    g->tile_rows = kn_div_up(s->out_size[1], t->rows);
    g->tile_columns = kn_div_up(s->out_size[2], t->columns);
    const int64_t below = t->kernel_rows - 1; /* rows of x that windows add to tiles */
    const int64_t row = (g->tile_columns * t->columns + t->kernel_columns - 1) * w->width * w->element;
    g->strip_rows = kn_max_i64(1, kn_min_i64(g->tile_rows, (STAGE_BYTES / row - below) / t->rows));
    g->strips_per_image = kn_div_up(g->tile_rows, g->strip_rows);
    g->stage = (g->strip_rows * t->rows + below) * row / w->element;
    w->all_strips = s->images * g->strips_per_image;

    /* du is read and written once per chunk: if it is large, so are the chunks, or there is only one. */
    int64_t pairs = w->x.blocks * w->dy.blocks, blocks = w->x.blocks + w->dy.blocks;
    int64_t bytes_of_du = pairs * w->tile.values * w->width * w->width * w->element;
    int64_t bytes_of_tile = blocks * w->tile.values * w->width * w->element;
    int64_t bytes = bytes_of_tile * s->images * g->tile_rows * g->tile_columns;
    int64_t most = kn_max_i64(MIN_CHUNK_BYTES, kn_min_i64(2 * bytes_of_du, MAX_CHUNK_BYTES));
    int64_t chunks = kn_max_i64(1, kn_div_up(bytes, most));
    w->at_once = chunks == 1 && 3 * bytes < 4 * bytes_of_du;
    w->strips_per_chunk = w->at_once ? w->all_strips : kn_div_up(w->all_strips, chunks);
    w->chunks = kn_div_up(w->all_strips, w->strips_per_chunk);
    g->pitch = w->strips_per_chunk * g->strip_rows * g->tile_columns | 1; /* odd: frequencies in different cache sets */
}

static void describe(winograd_pass *w, const kn_limits *limits)
{
    const kn_conv_shape *s = &w->problem->shape;
    w->element = s->f64 ? 8 : 4;
    w->width = kn_conv_vector_width(limits, s->f64);
    w->tile = kn_winograd_tile_of(w->problem);
    w->items = ITEMS_PER_UNIT * limits->compute_units;
    w->x = (kn_winograd_side){s->in_channels, kn_div_up(s->in_channels, w->width),
                              s->in_size[1],  s->in_size[2],
                              s->padding[1],  s->padding[2]};
    w->dy = (kn_winograd_side){.channels = s->out_channels,
                               .blocks = kn_div_up(s->out_channels, w->width),
                               .height = s->out_size[1],
                               .width = s->out_size[2]};
    describe_tiles(w);
    w->plan = (kn_winograd_sharing){.c_blocks = w->at_once ? 1 : 4,
                                    .k_blocks = w->at_once ? 2 : 4,
                                    .bias_channels = w->problem->bias.buffer ? s->out_channels : 0,
                                    .bias_strips = w->all_strips};
    snprintf(w->options, sizeof w->options, "%s -DVW=%d -DCT=%d" KN_WINOGRAD_OPTIONS, kn_options_f64_or_f32(s->f64),
             (int)w->width, (int)kn_min_i64(w->width, kn_conv_many_registers(limits) ? 8 : 4),
             KN_WINOGRAD_OPTION_VALUES(&w->tile));
}

static int64_t room_of_pairs(const winograd_pass *w, int64_t pairs)
{
    return pairs * w->tile.values * w->width * w->width;
}

static kn_status alloc_buffers(winograd_pass *w, kn_stream *stream)
{
    int64_t panel = w->tile.values * w->chunk.pitch * w->width;
    int64_t room = w->width * w->width * w->tile.kernel_rows *
                   w->tile.kernel_columns; /* per work-item, in the step that needs most */
    if (w->at_once)
        room += room_of_pairs(w, w->plan.c_blocks * w->plan.k_blocks);
    room = kn_max_i64(room, w->chunk.stage);
    KN_TRY(kn_buffer_alloc(&w->v, stream, (size_t)(w->x.blocks * panel * w->element)));
    KN_TRY(kn_buffer_alloc(&w->m, stream, (size_t)(w->dy.blocks * panel * w->element)));
    KN_TRY(kn_buffer_alloc(&w->bias_part, stream, (size_t)(w->all_strips * w->dy.blocks * w->width * w->element)));
    KN_TRY(kn_buffer_alloc(&w->stages, stream, (size_t)(w->items * room * w->element)));
    if (!w->at_once)
        KN_TRY(kn_buffer_alloc(&w->du, stream,
                               (size_t)(room_of_pairs(w, w->x.blocks * 2 * kn_div_up(w->dy.blocks, 2)) * w->element)));
    return KN_OK;
}

static void free_buffers(winograd_pass *w)
{
    kn_buffer_free(w->v);
    kn_buffer_free(w->m);
    kn_buffer_free(w->du);
    kn_buffer_free(w->bias_part);
    kn_buffer_free(w->stages);
}

static kn_status launch_transform(winograd_pass *w, kn_stream *stream)
{
    const kn_conv_problem *problem = w->problem;
    return kn_run(stream, .source = "conv/cpu/winograd_weights.cl", .kernel = "winograd_weights_transform",
                  .operation = "conv2d_backward_weights", .options = w->options, .dims = 1,
                  .global = {(size_t)w->items}, .local = {1},
                  KN_ARGS(kn_conv_arg(&problem->shape, problem->x), kn_conv_arg(&problem->shape, problem->y),
                          kn_arg_buffer(w->v, 0), kn_arg_buffer(w->m, 0), kn_arg_buffer(w->bias_part, 0),
                          kn_arg_buffer(w->stages, 0), kn_arg_struct(&w->x, sizeof w->x),
                          kn_arg_struct(&w->dy, sizeof w->dy), kn_arg_struct(&w->chunk, sizeof w->chunk)));
}

static int64_t rectangles(const winograd_pass *w)
{
    return kn_div_up(w->x.blocks, w->plan.c_blocks) * kn_div_up(w->dy.blocks, w->plan.k_blocks);
}

static kn_status launch_products(winograd_pass *w, kn_stream *stream)
{
    return kn_run(stream, .source = "conv/cpu/winograd_weights.cl", .kernel = "winograd_weights_products",
                  .operation = "conv2d_backward_weights", .options = w->options, .dims = 2,
                  .global = {(size_t)rectangles(w), (size_t)w->tile.values}, .local = {1, 1},
                  KN_ARGS(kn_arg_buffer(w->v, 0), kn_arg_buffer(w->m, 0), kn_arg_buffer(w->du, 0),
                          kn_arg_struct(&w->x, sizeof w->x), kn_arg_struct(&w->dy, sizeof w->dy),
                          kn_arg_struct(&w->chunk, sizeof w->chunk), kn_arg_struct(&w->plan, sizeof w->plan)));
}

static kn_status launch_finish(winograd_pass *w, kn_stream *stream)
{
    return kn_run(stream, .source = "conv/cpu/winograd_weights.cl", .kernel = "winograd_weights_finish",
                  .operation = "conv2d_backward_weights", .options = w->options, .dims = 1,
                  .global = {(size_t)w->items}, .local = {1},
                  KN_ARGS(kn_arg_buffer(w->du, 0), kn_arg_buffer(w->bias_part, 0),
                          kn_conv_arg(&w->problem->shape, w->problem->weight), kn_conv_bias_arg(w->problem),
                          kn_arg_buffer(w->stages, 0), kn_arg_struct(&w->x, sizeof w->x),
                          kn_arg_struct(&w->dy, sizeof w->dy), kn_arg_struct(&w->plan, sizeof w->plan)));
}

static kn_status launch_at_once(winograd_pass *w, kn_stream *stream)
{
    return kn_run(stream, .source = "conv/cpu/winograd_weights.cl", .kernel = "winograd_weights_at_once",
                  .operation = "conv2d_backward_weights", .options = w->options, .dims = 1,
                  .global = {(size_t)w->items}, .local = {1},
                  KN_ARGS(kn_arg_buffer(w->v, 0), kn_arg_buffer(w->m, 0), kn_arg_buffer(w->bias_part, 0),
                          kn_conv_arg(&w->problem->shape, w->problem->weight), kn_conv_bias_arg(w->problem),
                          kn_arg_buffer(w->stages, 0), kn_arg_struct(&w->x, sizeof w->x),
                          kn_arg_struct(&w->dy, sizeof w->dy), kn_arg_struct(&w->chunk, sizeof w->chunk),
                          kn_arg_struct(&w->plan, sizeof w->plan)));
}

static int64_t tiles_before(const kn_winograd_chunk *g, int64_t strip)
{
    int64_t row = strip / g->strips_per_image * g->tile_rows + strip % g->strips_per_image * g->strip_rows;
    return row * g->tile_columns;
}

static kn_status run_chunks(winograd_pass *w, kn_stream *stream)
{
    for (int64_t i = 0; i < w->chunks; i++) {
        int64_t first = i * w->strips_per_chunk, last = kn_min_i64(first + w->strips_per_chunk, w->all_strips);
        w->chunk.first_strip = first;
        w->chunk.strips = last - first;
        w->chunk.first_tile = tiles_before(&w->chunk, first);
        w->chunk.tiles = tiles_before(&w->chunk, last) - w->chunk.first_tile;
        w->plan.add = i > 0;
        KN_TRY(launch_transform(w, stream));
        if (w->at_once)
            return launch_at_once(w, stream);
        KN_TRY(launch_products(w, stream));
    }
    return launch_finish(w, stream);
}

kn_status kn_conv_run_winograd_weights(kn_stream *stream, const void *problem)
{
    winograd_pass w = {.problem = problem};
    describe(&w, kn_device_limits(kn_stream_device(stream)));
    kn_status status = alloc_buffers(&w, stream);
    if (status == KN_OK)
        status = run_chunks(&w, stream);
    free_buffers(&w);
    return status;
}
