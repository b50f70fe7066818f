/* ops/conv/cpu/weights_rows.c - the gradient of a convolution's weights and bias on CPU devices with vectors along the
 * rows (cl/conv/cpu/weights_rows.cl): for few taps or few channels. */
#include "ops/conv/common/correlation.h"

#include <stdio.h>

enum { TAPS = 9 }; /* of a 3 x 3 kernel; by one or two channels of accumulators */
enum {
    MIN_ITEMS = 64
}; /* target number of work-items; constant, because the order of the sums must not depend on the number of cores */

typedef struct rows_pass {
    const kn_conv_problem *problem;
    kn_conv_correlation read; /* what forward reads of x */
    kn_conv_gradient_layout layout;
    int64_t element, channels_per_tile, blocks, images_per_share;
    char options[KN_CONV_OPTIONS];
    kn_buffer *padded, *sums, *bias_part;
} rows_pass;

bool kn_conv_supports_rows_weights(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    return kn_conv_is_flat(s) && s->stride[2] == 1 && kn_conv_row_vector_width(limits, s->f64, s->out_size[2]) > 0;
}

/* Packing dy, which the alternative needs, costs as much as 12 taps, and as much as 48 where lines of channels are far
 * apart, unless each tap is in another channel: then reading x costs this one more. */
static bool has_few_taps(const kn_conv_shape *s)
{
    const int64_t taps = kn_conv_taps(s), pixels = s->out_size[1] * s->out_size[2];
    return taps <= 12 || (taps <= 48 && kn_conv_volume(s->kernel_size) > 1 && pixels >= 10000);
}

bool kn_conv_prefers_rows_weights(const kn_limits *limits, const void *problem)
{
    const kn_conv_shape *s = &((const kn_conv_problem *)problem)->shape;
    const bool few_channels = 2 * (s->out_channels / s->groups) <= kn_conv_vector_width(limits, s->f64);
    return limits->is_cpu && (few_channels || has_few_taps(s)) && kn_conv_row_is_wide(limits, s->f64, s->out_size[2]);
}

static void describe(rows_pass *w, const kn_limits *limits)
{
    const kn_conv_shape *s = &w->problem->shape;
    kn_conv_describe_correlation(&w->read, limits, w->problem, 0);
    w->layout = kn_conv_gradient_layout_of(&w->read);
    w->element = s->f64 ? 8 : 4;
    w->channels_per_tile = kn_conv_many_registers(limits) && w->layout.outer > 1 ? 2 : 1;
    w->blocks = s->groups * kn_div_up(w->layout.outer, w->channels_per_tile);
    int64_t items = kn_div_up(w->layout.taps, TAPS) * w->blocks;
    int64_t shares = kn_max_i64(1, kn_min_i64(s->images, kn_div_up(MIN_ITEMS, items)));
    /* At least several shares, so that an f32 sum does not run over all images. */
    shares = kn_max_i64(shares, kn_min_i64(16, s->images));
    w->images_per_share = kn_div_up(s->images, shares);
    w->layout.shares = kn_div_up(s->images, w->images_per_share);
    snprintf(w->options, sizeof w->options, "%s -DVW=%d -DKX=%d -DTAPS=%d", kn_options_f64_or_f32(s->f64),
             kn_conv_row_vector_width(limits, s->f64, s->out_size[2]), (int)w->channels_per_tile, TAPS);
}

static kn_status alloc_buffers(rows_pass *w, kn_stream *stream)
{
    int64_t channels = w->problem->shape.out_channels;
    KN_TRY(kn_conv_alloc_padded(&w->padded, stream, &w->read));
    KN_TRY(kn_buffer_alloc(&w->sums, stream, (size_t)(w->layout.shares * channels * w->layout.taps * w->element)));
    return kn_buffer_alloc(&w->bias_part, stream, (size_t)(w->layout.shares * channels * w->element));
}

static kn_status launch_padding(rows_pass *w, kn_stream *stream)
{
    return kn_run(stream, .source = "conv/cpu/weights_rows.cl", .kernel = "conv_pad",
                  .operation = "conv2d_backward_weights", .options = w->options, .dims = 1,
                  .global = {(size_t)kn_conv_pad_items(&w->read.padding)}, .local = {1},
                  KN_ARGS(kn_conv_arg(&w->problem->shape, w->problem->x), kn_arg_buffer(w->padded, 0),
                          kn_arg_struct(&w->read.padding, sizeof w->read.padding)));
}

static kn_status launch_sums(rows_pass *w, kn_stream *stream)
{
    const kn_conv_shape *s = &w->problem->shape;
    return kn_run(stream, .source = "conv/cpu/weights_rows.cl", .kernel = "conv_weights_rows",
                  .operation = "conv2d_backward_weights", .options = w->options, .dims = 3,
                  .global = {(size_t)kn_div_up(w->layout.taps, TAPS), (size_t)w->blocks, (size_t)w->layout.shares},
                  .local = {1, 1, 1},
                  KN_ARGS(kn_conv_arg_or(w->padded, s, w->problem->x), kn_conv_arg(s, w->problem->y),
                          kn_arg_buffer(w->sums, 0), kn_arg_buffer(w->bias_part, 0),
                          kn_arg_struct(&w->layout, sizeof w->layout),
                          kn_arg_struct(&w->read.taps, sizeof w->read.taps), kn_arg_i64(w->images_per_share)));
}

kn_status kn_conv_run_rows_weights(kn_stream *stream, const void *problem_)
{
    const kn_conv_problem *problem = problem_;
    rows_pass w = {.problem = problem};
    describe(&w, kn_device_limits(kn_stream_device(stream)));
    kn_status status = alloc_buffers(&w, stream);
    if (status == KN_OK && w.padded)
        status = launch_padding(&w, stream);
    if (status == KN_OK)
        status = launch_sums(&w, stream);
    if (status == KN_OK)
        status = kn_conv_total_gradient(stream, problem, w.sums, w.layout.shares, w.bias_part, w.layout.shares,
                                        w.layout.outer);
    kn_buffer_free(w.padded);
    kn_buffer_free(w.sums);
    kn_buffer_free(w.bias_part);
    return status;
}
