/* ops/conv2d_blocked.c - convolution on GPUs as products whose matrices are never made (cl/conv/blocked.cl), multiplied
 * by the work-items or by tensor cores. */
#include "ops/blocked.h"
#include "ops/conv2d_correlation.h"

/* Mirror of blocked_image in cl/conv/blocked.cl. */
typedef struct blocked_image {
    int64_t height, width, image, group, row_step, column_step;
} blocked_image;

/* --- forward and backward-data ------------------------------------------------------------------------------------ */

/* The image is read where it lies: steps and taps are those without padding. */
static blocked_image unpad(kn_conv2d_correlation *c)
{
    const kn_conv2d_padding *p = &c->padding;
    c->taps.row_origin -= p->top;
    c->taps.column_origin -= p->left;
    return (blocked_image){.height = p->height,
                           .width = p->width,
                           .image = c->grid.groups * c->taps.inner * p->height * p->width,
                           .group = c->taps.inner * p->height * p->width,
                           .row_step = c->grid.x_row / c->taps.pitch,
                           .column_step = c->grid.x_column};
}

static kn_status correlate(kn_stream *stream, kn_conv2d_correlation *c, kn_block_arithmetic arithmetic)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    const blocked_image image = unpad(c);
    const kn_conv2d_grid *g = &c->grid;
    const int64_t pixels = g->images * g->rows * g->columns;
    const kn_block_shape *s = kn_choose_block(limits, arithmetic, g->outer, pixels, g->groups);
    const size_t items = (size_t)kn_block_items(s);
    const int64_t element = c->f64 ? 8 : 4;
    const kn_conv2d_operand bias = c->bias.buffer ? c->bias : c->weight;
    const kn_cut cut = kn_cut_of(c->activation);
    char options[KN_BLOCK_OPTIONS];
    return kn_run(stream, .source = "conv/blocked.cl", .kernel = "conv_blocked", .operation = "conv2d",
                  .options = kn_block_options(options, s, arithmetic, true, false, " -DWEIGHTS=0"), .dims = 3,
                  .global = {(size_t)kn_div_up(pixels, s->columns) * items, (size_t)kn_div_up(g->outer, s->rows),
                             (size_t)g->groups},
                  .local = {items, 1, 1},
                  KN_ARGS(kn_arg_buffer(c->x.buffer, c->x.offset * element),
                          kn_arg_buffer(c->weight.buffer, c->weight.offset * element),
                          kn_arg_buffer(bias.buffer, bias.offset * element),
                          kn_arg_buffer(c->y.buffer, c->y.offset * element), kn_arg_struct(g, sizeof *g),
                          kn_arg_struct(&c->taps, sizeof c->taps), kn_arg_struct(&c->weights, sizeof c->weights),
                          kn_arg_struct(&image, sizeof image), kn_arg_i32(c->bias.buffer != NULL),
                          kn_arg_f64_or_f32(c->f64, cut.low), kn_arg_f64_or_f32(c->f64, cut.high)));
}

static kn_status forward(kn_stream *stream, const kn_conv2d_problem *problem, kn_block_arithmetic arithmetic)
{
    kn_conv2d_correlation c;
    kn_conv2d_describe_forward(&c, kn_device_limits(kn_stream_device(stream)), problem);
    return correlate(stream, &c, arithmetic);
}

static kn_status backward_data(kn_stream *stream, const kn_conv2d_problem *problem, kn_block_arithmetic arithmetic)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    const int64_t residues = kn_conv2d_residues(&problem->shape);
    kn_conv2d_correlation c;
    for (int64_t i = 0; i < residues; i++)
        if (kn_conv2d_describe_residue(&c, limits, problem, i))
            KN_TRY(correlate(stream, &c, arithmetic));
    return KN_OK;
}

/* --- backward-weights --------------------------------------------------------------------------------------------- */

/* Blocks of a problem with few weights, the number of shares times as many: enough for any device. Fixed, so that the
 * order of the sums does not depend on it. */
enum { BLOCKS = 1024, LEAST_PIXELS = 512 };
#define MOST_SUMS ((int64_t)256 << 20) /* bytes */

static void choose_shares(kn_conv2d_gradient_layout *g, int64_t weights, int64_t element)
{
    const int64_t pixels = g->images * g->rows * g->columns, blocks = kn_div_up(weights, 64 * 64);
    int64_t shares = kn_min_i64(kn_div_up(BLOCKS, blocks), kn_div_up(pixels, LEAST_PIXELS));
    shares = kn_max_i64(1, kn_min_i64(shares, MOST_SUMS / (weights * element + 1)));
    g->pixels_per_share = kn_max_i64(1, kn_div_up(pixels, shares));
    g->shares = kn_max_i64(1, kn_div_up(pixels, g->pixels_per_share));
}

static kn_status sum_shares(kn_stream *stream, const kn_conv2d_problem *problem, const kn_conv2d_gradient_layout *g,
                            kn_arg sums, kn_block_arithmetic arithmetic)
{
    kn_conv2d_correlation c;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    kn_conv2d_describe_forward(&c, limits, problem);
    const blocked_image image = unpad(&c);
    const kn_block_shape *s = kn_choose_block(limits, arithmetic, g->outer, g->taps, g->groups * g->shares);
    const size_t items = (size_t)kn_block_items(s);
    char options[KN_BLOCK_OPTIONS];
    return kn_run(stream, .source = "conv/blocked.cl", .kernel = "conv_blocked_weights",
                  .operation = "conv2d_backward_weights",
                  .options = kn_block_options(options, s, arithmetic, true, true, " -DWEIGHTS=1"), .dims = 3,
                  .global = {(size_t)kn_div_up(g->taps, s->columns) * items, (size_t)kn_div_up(g->outer, s->rows),
                             (size_t)(g->groups * g->shares)},
                  .local = {items, 1, 1},
                  KN_ARGS(kn_conv2d_arg(&problem->shape, problem->x), kn_conv2d_arg(&problem->shape, problem->y), sums,
                          kn_arg_struct(g, sizeof *g), kn_arg_struct(&c.grid, sizeof c.grid),
                          kn_arg_struct(&c.taps, sizeof c.taps), kn_arg_struct(&image, sizeof image)));
}

static kn_status backward_weights(kn_stream *stream, const kn_conv2d_problem *problem, kn_block_arithmetic arithmetic)
{
    const kn_conv2d_shape *s = &problem->shape;
    const int64_t element = s->f64 ? 8 : 4, weights = s->out_channels * kn_conv2d_taps(s);
    kn_conv2d_padding padding;
    kn_conv2d_tap_list taps;
    kn_conv2d_gradient_layout g;
    kn_buffer *sums = NULL;
    kn_conv2d_describe_gradient(s, kn_device_limits(kn_stream_device(stream)), &padding, &taps, &g);
    choose_shares(&g, weights, element);
    if (g.shares > 1)
        KN_TRY(kn_buffer_alloc(&sums, stream, (size_t)(g.shares * weights * element)));
    kn_status status =
        sum_shares(stream, problem, &g, sums ? kn_arg_buffer(sums, 0) : kn_conv2d_arg(s, problem->weight), arithmetic);
    kn_conv2d_problem weights_only = *problem;
    weights_only.bias.buffer = NULL;
    if (status == KN_OK && sums)
        status = kn_conv2d_total_gradient(stream, &weights_only, sums, g.shares, sums, 0, 0);
    kn_buffer_free(sums);
    return status == KN_OK && problem->bias.buffer ? kn_conv2d_bias_gradient(stream, problem) : status;
}

/* --- rows of the tables ------------------------------------------------------------------------------------------- */

static kn_block_arithmetic plain(const kn_conv2d_problem *problem) { return kn_block_plain(problem->shape.f64); }

kn_status kn_conv2d_blocked_forward(kn_stream *stream, const void *problem)
{
    return forward(stream, problem, plain(problem));
}

kn_status kn_conv2d_blocked_backward_data(kn_stream *stream, const void *problem)
{
    return backward_data(stream, problem, plain(problem));
}

kn_status kn_conv2d_blocked_backward_weights(kn_stream *stream, const void *problem)
{
    return backward_weights(stream, problem, plain(problem));
}

kn_status kn_conv2d_tensor_forward(kn_stream *stream, const void *problem)
{
    return forward(stream, problem, KN_BLOCK_TF32);
}

kn_status kn_conv2d_tensor_backward_data(kn_stream *stream, const void *problem)
{
    return backward_data(stream, problem, KN_BLOCK_TF32);
}

kn_status kn_conv2d_tensor_backward_weights(kn_stream *stream, const void *problem)
{
    return backward_weights(stream, problem, KN_BLOCK_TF32);
}

/* Pixels of all images, and taps, are numbered in 32 bits; a group must fit the device. */
static bool supports(const kn_limits *limits, const kn_conv2d_shape *s, kn_block_arithmetic arithmetic)
{
    const double most = 2147483647.0, images = (double)s->images;
    return images * (double)s->out_size[0] * (double)s->out_size[1] < most &&
           images * (double)s->in_size[0] * (double)s->in_size[1] < most &&
           (double)(s->in_channels + s->out_channels) * (double)(s->kernel_size[0] * s->kernel_size[1]) < most &&
           kn_choose_block(limits, arithmetic, 1, 1, 1) != NULL;
}

bool kn_conv2d_supports_blocked(const kn_limits *limits, const void *problem)
{
    return supports(limits, &((const kn_conv2d_problem *)problem)->shape, plain(problem));
}

bool kn_conv2d_supports_tensor(const kn_limits *limits, const void *problem)
{
    const kn_conv2d_shape *s = &((const kn_conv2d_problem *)problem)->shape;
    return !s->f64 && supports(limits, s, KN_BLOCK_TF32);
}

/* On what is no CPU, all but depthwise convolutions: a group of one channel leaves a block all but empty. The other
 * way, lowering, writes and reads a matrix that is as many times the image as the kernel has taps. Benchmark mode
 * corrects the choice. */
bool kn_conv2d_prefers_blocked(const kn_limits *limits, const void *problem)
{
    const kn_conv2d_shape *s = &((const kn_conv2d_problem *)problem)->shape;
    return !limits->is_cpu && (s->groups == 1 || (s->in_channels != s->groups && s->out_channels != s->groups));
}
