/* ops/conv/cpu/direct.c - convolution forward and backward-data on CPU devices with vectors along the channels
 * (cl/conv/cpu/direct.cl). */
#include "ops/conv/common/correlation.h"

/* A tile of output channels by pixels. The accumulators, one weight vector per channel vector and one value per pixel
 * must fit in registers: the compiler loads all values first. */
static kn_status launch(kn_stream *stream, const kn_conv_correlation *c, const kn_conv_workspace *w,
                        const kn_conv_tile *tile)
{
    char options[KN_CONV_OPTIONS];
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    int64_t element = c->f64 ? 8 : 4;
    kn_conv_grid grid = c->grid;
    int64_t tiles = kn_div_up(grid.images * grid.rows * grid.columns, tile->columns);
    int64_t blocks = grid.groups * kn_div_up(grid.outer, tile->block);
    grid.tiles_per_item = kn_max_i64(1, tiles * blocks / (32 * limits->compute_units));
    kn_arg x = w->padded ? kn_arg_buffer(w->padded, 0) : kn_arg_buffer(c->x.buffer, c->x.offset * element);
    kn_conv_operand bias = c->bias.buffer ? c->bias : c->weight;
    kn_conv_options(options, limits, c->f64, tile->channels, "PX", tile->columns);
    return kn_run(stream, .source = "conv/cpu/direct.cl", .kernel = "conv_direct", .operation = "conv2d",
                  .options = options, .dims = 2,
                  .global = {(size_t)kn_div_up(tiles, grid.tiles_per_item), (size_t)blocks}, .local = {1, 1},
                  KN_ARGS(x, kn_arg_buffer(w->packed, 0), kn_arg_buffer(w->table, 0),
                          kn_arg_buffer(bias.buffer, bias.offset * element),
                          kn_arg_buffer(c->y.buffer, c->y.offset * element), kn_arg_struct(&grid, sizeof grid),
                          kn_arg_i32(c->bias.buffer != NULL), KN_CONV_BOUND_ARGS(c->f64, c->activation)));
}

/* With 32 registers: the number of vectors that wastes the fewest channels in the last block; among equals the largest,
 * because vectors share loaded values. */
static kn_conv_tile choose_tile(kn_stream *stream, bool f64, int64_t outer)
{
    static const int pixels[] = {0, 0, 10, 7, 6}; /* indexed by vectors */
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    int width = kn_conv_vector_width(limits, f64), vectors = 2;
    int64_t least = INT64_MAX;
    for (int v = 4; v >= 2 && kn_conv_many_registers(limits); v--) {
        int64_t channels = kn_div_up(outer, (int64_t)v * width) * v * width;
        if (channels < least) {
            least = channels;
            vectors = v;
        }
    }
    return (kn_conv_tile){.channels = vectors,
                          .columns = kn_conv_many_registers(limits) ? pixels[vectors] : 5,
                          .vector_width = width,
                          .block = (int64_t)vectors * width,
                          .launch = launch};
}

bool kn_conv_supports_direct(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    (void)limits;
    return kn_conv_table_fits(s, s->in_channels);
}

bool kn_conv_prefers_direct(const kn_limits *limits, const void *problem)
{
    (void)problem;
    return limits->is_cpu;
}

kn_status kn_conv_direct_forward(kn_stream *stream, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    kn_conv_tile tile = choose_tile(stream, problem->shape.f64, problem->shape.out_channels / problem->shape.groups);
    return kn_conv_correlate_forward(stream, problem, &tile);
}

bool kn_conv_supports_direct_data(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    (void)limits;
    return kn_conv_table_fits(s, s->out_channels);
}

bool kn_conv_prefers_direct_data(const kn_limits *limits, const void *problem)
{
    bool few_residues = kn_conv_residues(&((const kn_conv_problem *)problem)->shape) <= 16; /* two launches each */
    return limits->is_cpu && few_residues;
}

kn_status kn_conv_direct_backward_data(kn_stream *stream, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    kn_conv_tile tile = choose_tile(stream, problem->shape.f64, problem->shape.in_channels / problem->shape.groups);
    return kn_conv_correlate_backward(stream, problem, &tile);
}
