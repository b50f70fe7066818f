/* ops/conv/cpu/rows.c - convolution forward and backward-data on CPU devices with vectors along the rows
 * (cl/conv/cpu/rows.cl): for few channels or few taps. */
#include "ops/conv/common/correlation.h"

#include <stdio.h>

/* Tiles are divided into enough work-items for load balance. */
static kn_status correlate(kn_stream *stream, const kn_conv_correlation *c, const kn_conv_workspace *w,
                           const kn_conv_tile *tile)
{
    char options[KN_CONV_OPTIONS];
    const kn_conv_problem *problem = c->problem;
    const kn_conv_shape *s = &problem->shape;
    kn_conv_grid grid = c->grid;
    const int64_t strips = kn_div_up(grid.columns, (int64_t)tile->columns * tile->vector_width);
    const int64_t blocks = grid.groups * kn_div_up(grid.outer, tile->block);
    const int64_t tiles = strips * kn_div_up(grid.rows, tile->rows) * blocks * grid.images;
    grid.tiles_per_item =
        kn_max_i64(1, tiles / (32 * (int64_t)kn_device_limits(kn_stream_device(stream))->compute_units));
    snprintf(options, sizeof options, "%s -DVW=%d -DKX=%d -DRX=%d -DVX=%d", kn_options_f64_or_f32(s->f64),
             tile->vector_width, tile->channels, tile->rows, tile->columns);
    return kn_run(stream, .source = "conv/cpu/rows.cl", .kernel = "conv_rows", .operation = "conv2d",
                  .options = options, .dims = 1, .global = {(size_t)kn_div_up(tiles, grid.tiles_per_item)},
                  .local = {1},
                  KN_ARGS(kn_conv_arg_or(w->padded, s, c->x), kn_arg_buffer(w->packed, 0), kn_arg_buffer(w->table, 0),
                          kn_conv_bias_arg(problem), kn_conv_arg(s, c->y), kn_arg_struct(&grid, sizeof grid),
                          KN_CONV_EPILOGUE_ARGS(problem)));
}

/* Channels by rows by vectors: about 16 accumulators, with each load used for as many channels as possible. */
static kn_conv_tile choose_tile(const kn_limits *limits, bool f64, int64_t outer, int64_t columns)
{
    kn_conv_tile tile = {.vector_width = kn_conv_row_vector_width(limits, f64, columns)};
    tile.channels = outer > 4 && kn_conv_many_registers(limits) ? 8 : outer > 1 ? 4 : 1;
    tile.rows = tile.channels == 8 ? 1 : tile.channels == 4 ? 2 : 4;
    if (!kn_conv_many_registers(limits))
        tile.rows = tile.channels == 4 ? 1 : 2;
    tile.columns = 2;
    tile.block = tile.channels;
    return tile;
}

/* Vectors along the channels (cpu/direct.c) work best with whole vectors of channels and many taps; storing a tile
 * costs about as much as 50 taps. Not where vectors of 16 are taken in halves, for dx of a convolution with strides:
 * with one tap in each correlation, or whole vectors of channels, direct.c takes 0.55 to 0.9 of the time. */
static bool few(const kn_limits *limits, const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    const int64_t correlations = kn_conv_correlations(problem), all = s->kernel_size[1] * s->kernel_size[2];
    const int64_t channels = kn_conv_to(problem).channels, width = kn_conv_vector_width(limits, s->f64);
    if (2 * channels <= width)
        return true;
    return kn_conv_from(problem).channels * all / correlations <= 48 &&
           !(correlations > 1 && (all == correlations || channels >= width) && kn_limits_halves_vectors(limits));
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
    return limits->is_cpu && kn_conv_correlations(problem) <= 16 &&
           kn_conv_row_is_wide(limits, s->f64, shortest_row(problem)) && few(limits, problem);
}

kn_status kn_conv_run_rows(kn_stream *stream, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    const kn_conv_tile tile =
        choose_tile(limits, problem->shape.f64, kn_conv_to(problem).channels, shortest_row(problem));
    kn_conv_correlation c;
    kn_conv_workspace w = {0};
    kn_conv_describe_correlation(&c, limits, problem, 0);
    kn_status status = kn_conv_alloc_workspace(&w, stream, &c, tile.block);
    bool padded = false;
    for (int64_t i = 0; status == KN_OK && i < kn_conv_correlations(problem); i++) {
        if (!kn_conv_describe_correlation(&c, limits, problem, i))
            continue;
        if (padded)
            c.padding.planes = 0; /* dy is padded once for all residues */
        status = kn_conv_prepare(stream, &c, &w, tile.block);
        padded = true;
        if (status == KN_OK)
            status = correlate(stream, &c, &w, &tile);
    }
    kn_conv_free_workspace(&w);
    return status;
}
