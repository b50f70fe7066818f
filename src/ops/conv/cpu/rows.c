/* ops/conv/cpu/rows.c - convolution forward and backward-data on CPU devices with vectors along the rows
 * (cl/conv/cpu/rows.cl): for few channels or few taps. */
#include "ops/conv/common/correlation.h"

#include <stdio.h>

static kn_status launch(kn_stream *stream, const kn_conv_correlation *c, const kn_conv_workspace *w,
                        const kn_conv_tile *tile)
{
    char options[KN_CONV_OPTIONS];
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    int64_t element = c->f64 ? 8 : 4;
    kn_conv_grid grid = c->grid;
    int64_t strips = kn_div_up(grid.columns, (int64_t)tile->columns * tile->vector_width);
    int64_t blocks = grid.groups * kn_div_up(grid.outer, tile->block);
    int64_t tiles = strips * kn_div_up(grid.rows, tile->rows) * blocks * grid.images;
    grid.tiles_per_item = kn_max_i64(1, tiles / (32 * limits->compute_units));
    kn_arg x = w->padded ? kn_arg_buffer(w->padded, 0) : kn_arg_buffer(c->x.buffer, c->x.offset * element);
    kn_conv_operand bias = c->bias.buffer ? c->bias : c->weight;
    snprintf(options, sizeof options, "%s -DVW=%d -DKX=%d -DRX=%d -DVX=%d",
             c->f64 ? "-DT=double -DKN_USE_F64" : "-DT=float", tile->vector_width, tile->channels, tile->rows,
             tile->columns);
    return kn_run(stream, .source = "conv/cpu/rows.cl", .kernel = "conv_rows", .operation = "conv2d",
                  .options = options, .dims = 1, .global = {(size_t)kn_div_up(tiles, grid.tiles_per_item)},
                  .local = {1},
                  KN_ARGS(x, kn_arg_buffer(w->packed, 0), kn_arg_buffer(w->table, 0),
                          kn_arg_buffer(bias.buffer, bias.offset * element),
                          kn_arg_buffer(c->y.buffer, c->y.offset * element), kn_arg_struct(&grid, sizeof grid),
                          kn_arg_i32(c->bias.buffer != NULL), KN_CONV_BOUND_ARGS(c->f64, c->activation)));
}

/* Channels by rows by vectors: about 16 accumulators, with each load used for as many channels as possible. */
static kn_conv_tile choose_tile(kn_stream *stream, bool f64, int64_t outer, int64_t columns)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    kn_conv_tile tile = {.vector_width = kn_conv_row_vector_width(limits, f64, columns), .launch = launch};
    tile.channels = outer > 4 && kn_conv_many_registers(limits) ? 8 : outer > 1 ? 4 : 1;
    tile.rows = tile.channels == 8 ? 1 : tile.channels == 4 ? 2 : 4;
    if (!kn_conv_many_registers(limits))
        tile.rows = tile.channels == 4 ? 1 : 2;
    tile.columns = 2;
    tile.block = tile.channels;
    return tile;
}

/* Vectors along the channels (cpu/direct.c) work best with whole vectors of channels and many taps; storing a tile
 * costs about as much as 50 taps. */
static bool few(const kn_limits *limits, bool f64, int64_t outer, int64_t taps)
{
    return 2 * outer <= kn_conv_vector_width(limits, f64) || taps <= 48;
}

bool kn_conv_supports_rows(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    return s->stride[2] == 1 && kn_conv_row_vector_width(limits, s->f64, s->out_size[2]) > 0 &&
           kn_conv_table_fits(s, s->in_channels);
}

bool kn_conv_prefers_rows(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    return limits->is_cpu && kn_conv_row_is_wide(limits, s->f64, s->out_size[2]) &&
           few(limits, s->f64, s->out_channels / s->groups, kn_conv_taps(s));
}

kn_status kn_conv_rows_forward(kn_stream *stream, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    const kn_conv_shape *s = &problem->shape;
    kn_conv_tile tile = choose_tile(stream, s->f64, s->out_channels / s->groups, s->out_size[2]);
    return kn_conv_correlate_forward(stream, problem, &tile);
}

/* Each correlation computes every stride-th pixel of a row of dx. */
static int64_t shortest_row(const kn_conv_shape *s) { return s->in_size[2] / s->stride[2]; }

bool kn_conv_supports_rows_data(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    return kn_conv_row_vector_width(limits, s->f64, shortest_row(s)) > 0 && kn_conv_table_fits(s, s->out_channels);
}

bool kn_conv_prefers_rows_data(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    int64_t taps = s->out_channels / s->groups * s->kernel_size[1] * s->kernel_size[2] / kn_conv_residues(s);
    return limits->is_cpu && kn_conv_residues(s) <= 16 && kn_conv_row_is_wide(limits, s->f64, shortest_row(s)) &&
           few(limits, s->f64, s->in_channels / s->groups, taps);
}

kn_status kn_conv_rows_backward_data(kn_stream *stream, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    const kn_conv_shape *s = &problem->shape;
    kn_conv_tile tile = choose_tile(stream, s->f64, s->in_channels / s->groups, shortest_row(s));
    return kn_conv_correlate_backward(stream, problem, &tile);
}
