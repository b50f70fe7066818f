/* ops/conv/cpu/rows.c - convolution forward and backward-data on CPU devices with vectors along the rows
 * (cl/conv/cpu/rows.cl): for few channels or few taps. */
#include "ops/conv/common/correlation.h"

#include <stdio.h>

static kn_status launch(kn_stream *stream, const kn_conv_correlation *c, const kn_conv_workspace *w,
                        const kn_conv_tile *tile)
{
    char options[KN_CONV_OPTIONS];
    const kn_conv_grid *g = &c->grid;
    const int64_t strips = kn_div_up(g->columns, (int64_t)tile->columns * tile->vector_width);
    const int64_t blocks = g->groups * kn_div_up(g->outer, tile->block);
    snprintf(options, sizeof options, "%s -DVW=%d -DKX=%d -DRX=%d -DVX=%d",
             kn_options_f64_or_f32(c->problem->shape.f64), tile->vector_width, tile->channels, tile->rows,
             tile->columns);
    return kn_conv_launch_correlation(stream, c, w, "conv/cpu/rows.cl", "conv_rows", options,
                                      strips * kn_div_up(g->rows, tile->rows) * blocks * g->images, 1);
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

/* Of dx, each correlation computes every stride-th pixel of a row. */
static int64_t shortest_row(const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    return problem->pass == KN_CONV_DATA ? s->in_size[2] / s->stride[2] : s->out_size[2];
}

bool kn_conv_supports_rows(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    return (s->stride[2] == 1 || ((const kn_conv_problem *)problem)->pass == KN_CONV_DATA) &&
           kn_conv_row_vector_width(limits, s->f64, shortest_row(problem)) > 0 && kn_conv_table_fits(problem);
}

bool kn_conv_prefers_rows(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    const int64_t correlations = kn_conv_correlations(problem),
                  taps = kn_conv_from(problem).channels * s->kernel_size[1] * s->kernel_size[2] / correlations;
    return limits->is_cpu && correlations <= 16 && kn_conv_row_is_wide(limits, s->f64, shortest_row(problem)) &&
           few(limits, s->f64, kn_conv_to(problem).channels, taps);
}

kn_status kn_conv_run_rows(kn_stream *stream, const void *problem)
{
    const kn_conv_tile tile = choose_tile(stream, ((const kn_conv_problem *)problem)->shape.f64,
                                          kn_conv_to(problem).channels, shortest_row(problem));
    return kn_conv_correlate(stream, problem, &tile);
}
