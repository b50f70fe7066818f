/* ops/conv2d_winograd.c - convolution forward and backward-data on CPU devices by Winograd's algorithm
 * (cl/conv/winograd.cl): 3 x 3 and 5 x 5 kernels in steps of one pixel. */
#include "ops/conv2d.h"

#include <stdio.h>

/* Mirror of struct winograd_shape in cl/conv/winograd_tiles.clh. */
typedef struct winograd_shape {
    int64_t groups, images, inner, outer, height, width, out_height, out_width, top, left, tile_rows, tile_columns;
    int64_t group_stride, outer_stride, inner_stride, flipped;
    int64_t tiles, panels, chunk, blocks_per_item, scratch, v_pitch, u_pitch, m_pitch;
} winograd_shape;

/* What runs: the shape, operands and what is compiled in. */
typedef struct winograd {
    winograd_shape shape;
    kn_conv2d_operand x, weight, bias, y;
    kn_cut cut;
    int vector_width, kernel, tiles, vectors; /* VW, WR, MT, KV */
    int64_t items;
} winograd;

static int64_t round_up(int64_t a, int64_t b) { return kn_conv2d_div_up(a, b) * b; }

static void describe(winograd *w, const kn_limits *limits, const kn_conv2d_problem *problem, bool backward)
{
    const kn_conv2d_shape *s = &problem->shape;
    int64_t inner = s->in_channels / s->groups, outer = s->out_channels / s->groups,
            area = s->kernel_size[0] * s->kernel_size[1];
    *w = (winograd){.x = backward ? problem->y : problem->x,
                    .weight = problem->weight,
                    .bias = backward               ? problem->weight
                            : problem->bias.buffer ? problem->bias
                                                   : problem->weight,
                    .y = backward ? problem->x : problem->y,
                    .cut = kn_cut_of(backward ? KN_ACTIVATION_NONE : problem->activation),
                    .vector_width = kn_conv2d_vector_width(limits, false),
                    .kernel = (int)s->kernel_size[0],
                    .tiles = kn_conv2d_many_registers(limits) ? 14 : 6,
                    .vectors = 2};
    const int64_t *from = backward ? s->out_size : s->in_size, *to = backward ? s->in_size : s->out_size;
    int64_t step = 7 - w->kernel;
    w->shape = (winograd_shape){.groups = s->groups,
                                .images = s->images,
                                .inner = backward ? outer : inner,
                                .outer = backward ? inner : outer,
                                .height = from[0],
                                .width = from[1],
                                .out_height = to[0],
                                .out_width = to[1],
                                .top = backward ? s->padding[0] - w->kernel + 1 : -s->padding[0],
                                .left = backward ? s->padding[1] - w->kernel + 1 : -s->padding[1],
                                .tile_rows = kn_conv2d_div_up(to[0], step),
                                .tile_columns = kn_conv2d_div_up(to[1], step),
                                .group_stride = inner * outer * area,
                                .outer_stride = backward ? area : inner * area,
                                .inner_stride = backward ? inner * area : area,
                                .flipped = backward};
}

static void choose_many(winograd *w, const kn_limits *limits)
{
    winograd_shape *s = &w->shape;
    int64_t width = w->vector_width, block = w->vectors * width, channels = round_up(s->inner, width);
    int64_t tiles = s->images * s->tile_rows * s->tile_columns;
    s->tiles = 2 * w->tiles;
    int64_t blocks = kn_conv2d_div_up(tiles, s->tiles);
    s->panels = kn_conv2d_min(2, kn_conv2d_div_up(s->outer, block));
    s->chunk = 1;
    w->items = kn_conv2d_min(blocks, 2 * limits->compute_units);
    s->blocks_per_item = kn_conv2d_div_up(blocks, w->items);
    w->items = kn_conv2d_div_up(blocks, s->blocks_per_item);
    s->v_pitch = channels * s->tiles + width;
    s->u_pitch = s->inner * block + width;
    s->m_pitch = s->panels * s->tiles * block + width;
    int64_t step = 7 - w->kernel;
    int64_t window = 6 * (kn_conv2d_min(s->tiles, s->tile_columns) * step + 6 - step) * width;
    s->scratch = 36 * (s->v_pitch + s->m_pitch) + window;
}

#define OPTIONS 96
static void options_of(char *options, const winograd *w)
{
    snprintf(options, OPTIONS, "-DT=float -DVW=%d -DWR=%d -DMT=%d -DKV=%d", w->vector_width, w->kernel, w->tiles,
             w->vectors);
}

static kn_arg operand(kn_conv2d_operand o) { return kn_arg_buffer(o.buffer, o.offset * 4); }

static kn_status run_many(kn_stream *stream, const winograd *w, bool has_bias, kn_buffer *u, kn_buffer *scratch)
{
    char options[OPTIONS];
    const winograd_shape *s = &w->shape;
    int64_t blocks = kn_conv2d_div_up(s->outer, w->vectors * w->vector_width);
    options_of(options, w);
    KN_TRY(
        kn_run(stream, .source = "conv/winograd.cl", .kernel = "winograd_weights", .operation = "conv2d",
               .options = options, .dims = 2,
               .global = {(size_t)(s->groups * blocks), (size_t)kn_conv2d_div_up(s->inner, s->chunk * w->vector_width)},
               .local = {1, 1}, KN_ARGS(operand(w->weight), kn_arg_buffer(u, 0), kn_arg_struct(s, sizeof *s))));
    return kn_run(stream, .source = "conv/winograd.cl", .kernel = "winograd_many", .operation = "conv2d",
                  .options = options, .dims = 2, .global = {(size_t)w->items, (size_t)s->groups}, .local = {1, 1},
                  KN_ARGS(operand(w->x), kn_arg_buffer(u, 0), operand(w->bias), operand(w->y),
                          kn_arg_buffer(scratch, 0), kn_arg_struct(s, sizeof *s), kn_arg_i32(has_bias),
                          kn_arg_f32(w->cut.low), kn_arg_f32(w->cut.high)));
}

static kn_status run(kn_stream *stream, const kn_conv2d_problem *problem, bool backward)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    kn_buffer *u = NULL, *scratch = NULL;
    winograd w;
    describe(&w, limits, problem, backward);
    choose_many(&w, limits);
    const winograd_shape *s = &w.shape;
    int64_t blocks = kn_conv2d_div_up(s->outer, w.vectors * w.vector_width);
    kn_status status = kn_buffer_alloc(&u, stream, (size_t)(s->groups * blocks * 36 * s->u_pitch * 4));
    if (status == KN_OK)
        status = kn_buffer_alloc(&scratch, stream, (size_t)(w.items * s->groups * s->scratch * 4));
    if (status == KN_OK)
        status = run_many(stream, &w, !backward && problem->bias.buffer != NULL, u, scratch);
    kn_buffer_free(u);
    kn_buffer_free(scratch);
    return status;
}

bool kn_conv2d_supports_winograd(const kn_limits *limits, const void *problem)
{
    const kn_conv2d_shape *s = &((const kn_conv2d_problem *)problem)->shape;
    (void)limits;
    for (int d = 0; d < 2; d++)
        if (s->stride[d] != 1 || s->dilation[d] != 1 || s->kernel_size[d] != s->kernel_size[0])
            return false;
    return !s->f64 && (s->kernel_size[0] == 3 || s->kernel_size[0] == 5);
}

bool kn_conv2d_prefers_winograd(const kn_limits *limits, const void *problem)
{
    const kn_conv2d_shape *s = &((const kn_conv2d_problem *)problem)->shape;
    return limits->is_cpu && s->in_channels / s->groups >= 32 && s->out_channels / s->groups >= 32;
}

kn_status kn_conv2d_winograd_forward(kn_stream *stream, const void *problem) { return run(stream, problem, false); }
kn_status kn_conv2d_winograd_backward_data(kn_stream *stream, const void *problem)
{
    return run(stream, problem, true);
}
