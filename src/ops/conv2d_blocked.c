/* ops/conv2d_blocked.c - convolution on GPUs as products whose matrices are never made (cl/conv/blocked.cl). */
#include "ops/blocked.h"
#include "ops/conv2d_correlation.h"

/* Mirror of blocked_image in cl/conv/blocked.cl. */
typedef struct blocked_image {
    int64_t height, width, image, group, row_step, column_step;
} blocked_image;

/* --- forward and backward-data ------------------------------------------------------------------------------------ */

static const kn_block_shape *choose(const kn_limits *limits, const kn_conv2d_correlation *c)
{
    const kn_conv2d_grid *g = &c->grid;
    return kn_choose_block(limits, c->f64, g->outer, g->images * g->rows * g->columns, g->groups);
}

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

static kn_status correlate(kn_stream *stream, kn_conv2d_correlation *c)
{
    const blocked_image image = unpad(c);
    const kn_conv2d_grid *g = &c->grid;
    const kn_block_shape *s = choose(kn_device_limits(kn_stream_device(stream)), c);
    const size_t items = (size_t)kn_block_items(s);
    const int64_t element = c->f64 ? 8 : 4;
    const kn_conv2d_operand bias = c->bias.buffer ? c->bias : c->weight;
    const kn_cut cut = kn_cut_of(c->activation);
    char options[KN_BLOCK_OPTIONS];
    return kn_run(stream, .source = "conv/blocked.cl", .kernel = "conv_blocked", .operation = "conv2d",
                  .options = kn_block_options(options, s, c->f64, true, false, " -DWEIGHTS=0"), .dims = 3,
                  .global = {(size_t)kn_div_up(g->images * g->rows * g->columns, s->columns) * items,
                             (size_t)kn_div_up(g->outer, s->rows), (size_t)g->groups},
                  .local = {items, 1, 1},
                  KN_ARGS(kn_arg_buffer(c->x.buffer, c->x.offset * element),
                          kn_arg_buffer(c->weight.buffer, c->weight.offset * element),
                          kn_arg_buffer(bias.buffer, bias.offset * element),
                          kn_arg_buffer(c->y.buffer, c->y.offset * element), kn_arg_struct(g, sizeof *g),
                          kn_arg_struct(&c->taps, sizeof c->taps), kn_arg_struct(&c->weights, sizeof c->weights),
                          kn_arg_struct(&image, sizeof image), kn_arg_i32(c->bias.buffer != NULL),
                          kn_arg_f64_or_f32(c->f64, cut.low), kn_arg_f64_or_f32(c->f64, cut.high)));
}

kn_status kn_conv2d_blocked_forward(kn_stream *stream, const void *problem)
{
    kn_conv2d_correlation c;
    kn_conv2d_describe_forward(&c, kn_device_limits(kn_stream_device(stream)), problem);
    return correlate(stream, &c);
}

kn_status kn_conv2d_blocked_backward_data(kn_stream *stream, const void *problem)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    const int64_t residues = kn_conv2d_residues(&((const kn_conv2d_problem *)problem)->shape);
    kn_conv2d_correlation c;
    for (int64_t i = 0; i < residues; i++)
        if (kn_conv2d_describe_residue(&c, limits, problem, i))
            KN_TRY(correlate(stream, &c));
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
                            kn_arg sums)
{
    kn_conv2d_correlation c;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    kn_conv2d_describe_forward(&c, limits, problem);
    const blocked_image image = unpad(&c);
    const kn_block_shape *s = kn_choose_block(limits, c.f64, g->outer, g->taps, g->groups * g->shares);
    const size_t items = (size_t)kn_block_items(s);
    char options[KN_BLOCK_OPTIONS];
    return kn_run(stream, .source = "conv/blocked.cl", .kernel = "conv_blocked_weights",
                  .operation = "conv2d_backward_weights",
                  .options = kn_block_options(options, s, c.f64, true, true, " -DWEIGHTS=1"), .dims = 3,
                  .global = {(size_t)kn_div_up(g->taps, s->columns) * items, (size_t)kn_div_up(g->outer, s->rows),
                             (size_t)(g->groups * g->shares)},
                  .local = {items, 1, 1},
                  KN_ARGS(kn_conv2d_arg(&problem->shape, problem->x), kn_conv2d_arg(&problem->shape, problem->y), sums,
                          kn_arg_struct(g, sizeof *g), kn_arg_struct(&c.grid, sizeof c.grid),
                          kn_arg_struct(&c.taps, sizeof c.taps), kn_arg_struct(&image, sizeof image)));
}

kn_status kn_conv2d_blocked_backward_weights(kn_stream *stream, const void *problem_)
{
    const kn_conv2d_problem *problem = problem_;
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
        sum_shares(stream, problem, &g, sums ? kn_arg_buffer(sums, 0) : kn_conv2d_arg(s, problem->weight));
    kn_conv2d_problem weights_only = *problem;
    weights_only.bias.buffer = NULL;
    if (status == KN_OK && sums)
        status = kn_conv2d_total_gradient(stream, &weights_only, sums, g.shares, sums, 0, 0);
    kn_buffer_free(sums);
    return status == KN_OK && problem->bias.buffer ? kn_conv2d_bias_gradient(stream, problem) : status;
}

/* --- choice ------------------------------------------------------------------------------------------------------- */

/* Pixels of all images, and taps, are numbered in 32 bits; a group of the largest shape must fit the device. */
bool kn_conv2d_supports_blocked(const kn_limits *limits, const void *problem)
{
    const kn_conv2d_shape *s = &((const kn_conv2d_problem *)problem)->shape;
    const double most = 2147483647.0, images = (double)s->images;
    return images * (double)s->out_size[0] * (double)s->out_size[1] < most &&
           images * (double)s->in_size[0] * (double)s->in_size[1] < most &&
           (double)(s->in_channels + s->out_channels) * (double)(s->kernel_size[0] * s->kernel_size[1]) < most &&
           kn_choose_block(limits, s->f64, 1, 1, 1) != NULL;
}

/* As the blocked matrix product: not before it has been measured on a GPU. */
bool kn_conv2d_prefers_blocked(const kn_limits *limits, const void *problem)
{
    (void)limits;
    (void)problem;
    return false;
}
