/* ops/conv/cpu/weights.c - the gradient of a convolution's weights and bias on CPU devices (cl/conv/cpu/weights.cl). */
#include "ops/conv/common/correlation.h"

/* A tile: VECTORS vectors along the channels by `taps`. */
enum { VECTORS = 2, TAPS_OF_32_REGISTERS = 10, TAPS_OF_16_REGISTERS = 5 };
enum { SHARE_PIXELS = 4096 };        /* 512 KiB of packed dy: half an L2 cache */
enum { MIN_PIXELS = 256 };           /* smaller shares are mostly overhead */
#define MAX_SUMS ((int64_t)64 << 20) /* bytes of the shares' sums */

typedef struct weights_pass {
    const kn_conv_problem *problem;
    kn_conv_problem swapped;  /* `problem` points to this if x and dy are swapped */
    kn_conv_correlation read; /* what forward reads of x */
    kn_conv_gradient_layout layout;
    int64_t element, block, blocks, taps_per_tile, num_weights;
    char options[KN_CONV_OPTIONS];
    kn_buffer *padded, *packed, *bias_part, *table, *starts,
        *sums; /* sums: NULL when there is one share, which writes to the result */
} weights_pass;

bool kn_conv_supports_direct_weights(const kn_limits *limits, const void *problem)
{
    (void)limits;
    return kn_conv_table_fits(problem);
}

bool kn_conv_prefers_direct_weights(const kn_limits *limits, const void *problem)
{
    (void)problem;
    return limits->is_cpu;
}

/* The number of shares depends on the problem alone, so that the order of the sums, hence their rounding, does not
 * change with the number of cores. */
static void choose_shares(weights_pass *w)
{
    kn_conv_gradient_layout *g = &w->layout;
    int64_t pixels = g->images * g->rows * g->columns;
    int64_t tiles = kn_div_up(g->taps, w->taps_per_tile) * w->blocks;
    int64_t shares = kn_max_i64(kn_div_up(pixels, SHARE_PIXELS), kn_div_up(64, tiles));
    shares = kn_min_i64(shares, kn_div_up(pixels, MIN_PIXELS));
    shares = kn_max_i64(1, kn_min_i64(shares, MAX_SUMS / (w->num_weights * w->element + 1)));
    g->pixels_per_share = kn_max_i64(1, kn_div_up(pixels, shares));
    g->shares = kn_max_i64(1, kn_div_up(pixels, g->pixels_per_share));
}

/* Packing costs three passes over memory, reading in place one. For a 1 x 1 kernel, whose gradient is symmetric in x
 * and dy, the one with fewer channels is packed. */
static bool swap_sides(weights_pass *w)
{
    const kn_conv_shape *s = &w->problem->shape;
    if (!kn_conv_reads_each_pixel_once(s) || s->groups != 1 || w->problem->bias.buffer ||
        s->in_channels >= s->out_channels)
        return false;
    w->swapped = *w->problem;
    w->swapped.shape.in_channels = s->out_channels;
    w->swapped.shape.out_channels = s->in_channels;
    w->swapped.x = w->problem->y;
    w->swapped.y = w->problem->x;
    if (!kn_conv_table_fits(&w->swapped))
        return false;
    w->problem = &w->swapped;
    return true;
}

static void describe(weights_pass *w, const kn_limits *limits)
{
    bool swapped = swap_sides(w);
    const kn_conv_shape *s = &w->problem->shape;
    kn_conv_describe_correlation(&w->read, limits, w->problem, 0);
    w->layout = kn_conv_gradient_layout_of(&w->read);
    w->layout.sum_outer = swapped ? 1 : w->layout.taps;
    w->layout.sum_tap = swapped ? w->layout.outer : 1;
    w->element = s->f64 ? 8 : 4;
    w->block = VECTORS * kn_conv_vector_width(limits, s->f64);
    w->blocks = s->groups * kn_div_up(w->layout.outer, w->block);
    w->taps_per_tile = kn_conv_many_registers(limits) ? TAPS_OF_32_REGISTERS : TAPS_OF_16_REGISTERS;
    w->num_weights = s->out_channels * w->layout.taps;
    kn_conv_options(w->options, limits, s->f64, VECTORS, "TAPS", (int)w->taps_per_tile);
    choose_shares(w);
}

static kn_status alloc_buffers(weights_pass *w, kn_stream *stream)
{
    const kn_conv_gradient_layout *g = &w->layout;
    int64_t pixels = g->rows * g->columns, channels = w->blocks * w->block;
    KN_TRY(kn_conv_alloc_padded(&w->padded, stream, &w->read));
    KN_TRY(kn_buffer_alloc(&w->packed, stream, (size_t)(g->images * pixels * channels * w->element)));
    KN_TRY(kn_buffer_alloc(&w->bias_part, stream, (size_t)(g->images * channels * w->element)));
    KN_TRY(kn_buffer_alloc(&w->table, stream, (size_t)g->taps * sizeof(int32_t)));
    KN_TRY(kn_buffer_alloc(&w->starts, stream, (size_t)pixels * sizeof(int32_t)));
    if (g->shares > 1)
        KN_TRY(kn_buffer_alloc(&w->sums, stream, (size_t)(g->shares * w->num_weights * w->element)));
    return KN_OK;
}

static void free_buffers(weights_pass *w)
{
    kn_buffer_free(w->padded);
    kn_buffer_free(w->packed);
    kn_buffer_free(w->bias_part);
    kn_buffer_free(w->table);
    kn_buffer_free(w->starts);
    kn_buffer_free(w->sums);
}

static kn_status launch_prepare(weights_pass *w, kn_stream *stream)
{
    const kn_conv_problem *problem = w->problem;
    int64_t items = kn_conv_pad_items(&w->read.padding) + w->blocks * w->layout.images + 1;
    return kn_run(stream, .source = "conv/cpu/weights.cl", .kernel = "conv_weights_prepare",
                  .operation = "conv2d_backward_weights", .options = w->options, .dims = 1, .global = {(size_t)items},
                  .local = {1},
                  KN_ARGS(kn_conv_arg(&problem->shape, problem->x), kn_conv_arg(&problem->shape, problem->y),
                          kn_arg_buffer(w->padded ? w->padded : w->packed, 0), kn_arg_buffer(w->packed, 0),
                          kn_arg_buffer(w->bias_part, 0), kn_arg_buffer(w->table, 0), kn_arg_buffer(w->starts, 0),
                          kn_arg_struct(&w->read.padding, sizeof w->read.padding),
                          kn_arg_struct(&w->read.taps, sizeof w->read.taps),
                          kn_arg_struct(&w->layout, sizeof w->layout)));
}

static kn_status launch_sums(weights_pass *w, kn_stream *stream)
{
    const kn_conv_problem *problem = w->problem;
    const kn_conv_shape *s = &problem->shape;
    return kn_run(
        stream, .source = "conv/cpu/weights.cl", .kernel = "conv_weights_sums", .operation = "conv2d_backward_weights",
        .options = w->options, .dims = 3,
        .global = {(size_t)kn_div_up(w->layout.taps, w->taps_per_tile), (size_t)w->blocks, (size_t)w->layout.shares},
        .local = {1, 1, 1},
        KN_ARGS(kn_conv_arg_or(w->padded, s, problem->x), kn_arg_buffer(w->packed, 0), kn_arg_buffer(w->table, 0),
                kn_arg_buffer(w->starts, 0), kn_conv_arg_or(w->sums, s, problem->weight),
                kn_arg_struct(&w->layout, sizeof w->layout)));
}

kn_status kn_conv_run_direct_weights(kn_stream *stream, const void *problem)
{
    weights_pass w = {.problem = problem};
    describe(&w, kn_device_limits(kn_stream_device(stream)));
    kn_status status = alloc_buffers(&w, stream);
    if (status == KN_OK)
        status = launch_prepare(&w, stream);
    if (status == KN_OK)
        status = launch_sums(&w, stream);
    if (status == KN_OK)
        status = kn_conv_total_gradient(stream, problem, w.sums, w.layout.shares, w.bias_part, w.layout.images,
                                        kn_div_up(w.layout.outer, w.block) * w.block);
    free_buffers(&w);
    return status;
}
