/* ops/conv/common/sums.c - final sums of a convolution's gradients on GPUs (cl/conv/common/sums.cl). */
#include "base/divisor.h"
#include "ops/conv/common/conv.h"

enum { GROUP = 256, TOTAL_GROUP = 64 };

size_t kn_conv_work_items(kn_stream *stream, int64_t elements)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    return limits->is_cpu ? (size_t)kn_min_i64(elements, 16 * limits->compute_units)
                          : kn_work_items(limits, elements, 1);
}

/* --- of shares ---------------------------------------------------------------------------------------------------- */

kn_status kn_conv_total_gradient(kn_stream *stream, const kn_conv_problem *problem, kn_buffer *sums, int64_t shares,
                                 kn_buffer *bias_part, int64_t bias_parts, int64_t padded_outer)
{
    const kn_conv_shape *s = &problem->shape;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    const bool bias = problem->bias.buffer && bias_part;
    const int64_t weights = sums ? s->out_channels * kn_conv_taps(s) : 0, channels = bias ? s->out_channels : 0;
    const size_t most = limits->max_work_group_size;
    kn_buffer *any = sums ? sums : bias_part;
    if (weights + channels == 0)
        return KN_OK;
    return kn_run(stream, .source = "conv/common/sums.cl", .kernel = "conv_total",
                  .operation = "conv2d_backward_weights", .options = kn_options_f64_or_f32(s->f64), .dims = 1,
                  .global = {(size_t)(limits->is_cpu ? 8 * limits->compute_units : weights + channels)},
                  .local = {limits->is_cpu       ? 1
                            : most < TOTAL_GROUP ? most
                                                 : TOTAL_GROUP},
                  KN_ARGS(kn_arg_buffer(any, 0), kn_arg_buffer(bias ? bias_part : any, 0),
                          kn_conv_arg(s, problem->weight), kn_conv_arg(s, bias ? problem->bias : problem->weight),
                          kn_arg_i64(weights), kn_arg_i64(shares), kn_arg_i64(channels), kn_arg_i64(bias_parts),
                          kn_arg_i64(kn_max_i64(1, s->out_channels / s->groups)), kn_arg_i64(padded_outer)));
}

/* Enough work-groups for any GPU, each with at least FEW elements of a channel; more shares to limit the length of a
 * chain of additions. Constant, so that the order of the sums depends on the shape alone. */
enum { GROUPS = 2048, FEW = 4096, MOST = 1 << 18 };

static int64_t choose_bias_shares(int64_t all, int64_t channels)
{
    const int64_t shares = kn_min_i64(kn_div_up(GROUPS, channels), all / FEW);
    return kn_max_i64(kn_max_i64(1, shares), kn_div_up(all, MOST));
}

static kn_status sum_bias_by_groups(kn_stream *stream, const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    const int64_t pixels = kn_conv_volume(s->out_size), all = s->images * pixels;
    const int64_t per_share = kn_max_i64(1, kn_div_up(all, choose_bias_shares(all, s->out_channels)));
    const int64_t shares = kn_max_i64(1, kn_div_up(all, per_share));
    const kn_divisor by_channels = kn_divisor_of(s->out_channels), by_pixels = kn_divisor_of(pixels);
    kn_buffer *part = NULL;
    if (shares > 1)
        KN_TRY(kn_buffer_alloc(&part, stream, (size_t)(shares * s->out_channels * (s->f64 ? 8 : 4))));
    kn_status status =
        kn_run(stream, .source = "conv/common/sums.cl", .kernel = "conv_bias_shares",
               .operation = "conv2d_backward_bias", .options = kn_options_f64_or_f32(s->f64), .dims = 1,
               .global = {(size_t)(shares * s->out_channels * GROUP)}, .local = {GROUP},
               KN_ARGS(kn_conv_arg(s, problem->y), part ? kn_arg_buffer(part, 0) : kn_conv_arg(s, problem->bias),
                       kn_arg_i32((int32_t)all), kn_arg_i32((int32_t)per_share),
                       kn_arg_struct(&by_channels, sizeof by_channels), kn_arg_struct(&by_pixels, sizeof by_pixels)));
    if (status == KN_OK && part) {
        kn_conv_problem whole = *problem; /* as one group: part is [shares][channels] */
        whole.shape.groups = 1;
        status = kn_conv_total_gradient(stream, &whole, NULL, 0, part, shares, s->out_channels);
    }
    kn_buffer_free(part);
    return status;
}

kn_status kn_conv_bias_gradient(kn_stream *stream, const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    const double all = (double)s->images * (double)kn_conv_volume(s->out_size);
    if (!limits->is_cpu && limits->max_work_group_size >= GROUP && all < 1 << 30 && s->out_channels > 0)
        return sum_bias_by_groups(stream, problem);
    return kn_run(stream, .source = "conv/common/sums.cl", .kernel = "conv_bias_gradient",
                  .operation = "conv2d_backward_bias", .options = kn_options_f64_or_f32(s->f64), .dims = 1,
                  .global = {kn_conv_work_items(stream, s->out_channels)},
                  KN_ARGS(kn_conv_arg(s, problem->y), kn_conv_arg(s, problem->bias), kn_arg_i64(s->images),
                          kn_arg_i64(s->out_channels), kn_arg_i64(kn_conv_volume(s->out_size))));
}
