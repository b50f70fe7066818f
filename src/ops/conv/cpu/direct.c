/* ops/conv/cpu/direct.c - convolution forward and backward-data on CPU devices with vectors along the channels
 * (cl/conv/cpu/direct.cl). */
#include "ops/conv/common/correlation.h"

/* A tile of output channels by pixels. The accumulators, one weight vector per channel vector and one value per pixel
 * must fit in registers: the compiler loads all values first. */
static kn_status launch(kn_stream *stream, const kn_conv_correlation *c, const kn_conv_workspace *w,
                        const kn_conv_tile *tile)
{
    char options[KN_CONV_OPTIONS];
    const kn_conv_grid *g = &c->grid;
    kn_conv_options(options, kn_device_limits(kn_stream_device(stream)), c->problem->shape.f64, tile->channels, "PX",
                    tile->columns);
    return kn_conv_launch_correlation(stream, c, w, "conv/cpu/direct.cl", "conv_direct", options,
                                      kn_div_up(g->images * g->rows * g->columns, tile->columns),
                                      g->groups * kn_div_up(g->outer, tile->block));
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
    (void)limits;
    return kn_conv_table_fits(problem);
}

bool kn_conv_prefers_direct(const kn_limits *limits, const void *problem)
{
    return limits->is_cpu && kn_conv_correlations(problem) <= 16; /* two launches each */
}

kn_status kn_conv_run_direct(kn_stream *stream, const void *problem)
{
    const bool f64 = ((const kn_conv_problem *)problem)->shape.f64;
    const kn_conv_tile tile = choose_tile(stream, f64, kn_conv_to(problem).channels);
    return kn_conv_correlate(stream, problem, &tile);
}
