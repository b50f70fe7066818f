/* ops/conv/common/sums.c - what is left to add of a convolution's gradients on GPUs (cl/conv/common/sums.cl). */
#include "base/divisor.h"
#include "ops/conv/common/conv.h"

enum { GROUP = 256, TOTAL_GROUP = 64 };

static const char *type_options(const kn_conv_shape *s) { return s->f64 ? "-DT=double -DKN_USE_F64" : "-DT=float"; }

kn_status kn_conv_total_on_gpu(kn_stream *stream, const kn_conv_problem *problem, kn_buffer *sums, int64_t shares,
                               kn_buffer *bias_part, int64_t bias_parts, int64_t padded_outer)
{
    const kn_conv_shape *s = &problem->shape;
    const size_t most = kn_device_limits(kn_stream_device(stream))->max_work_group_size;
    const bool bias = problem->bias.buffer != NULL && bias_part != NULL && bias_parts > 0;
    const int64_t weights = sums ? s->out_channels * kn_conv_taps(s) : 0, channels = bias ? s->out_channels : 0;
    kn_buffer *any = sums ? sums : bias_part;
    return kn_run(stream, .source = "conv/common/sums.cl", .kernel = "conv_total",
                  .operation = "conv2d_backward_weights", .options = type_options(s), .dims = 1,
                  .global = {(size_t)(weights + channels)}, .local = {most < TOTAL_GROUP ? most : TOTAL_GROUP},
                  KN_ARGS(kn_arg_buffer(any, 0), kn_arg_buffer(bias ? bias_part : any, 0),
                          kn_conv_arg(s, problem->weight), kn_conv_arg(s, bias ? problem->bias : problem->weight),
                          kn_arg_i64(weights), kn_arg_i64(shares), kn_arg_i64(channels), kn_arg_i64(bias_parts),
                          kn_arg_i64(kn_max_i64(1, s->out_channels / s->groups)), kn_arg_i64(padded_outer)));
}

/* Work-groups enough for any GPU, none with less than FEW elements of a channel; more shares where a chain of additions
 * would be long. Fixed, so that the order of the sums depends on the shape alone. */
enum { GROUPS = 2048, FEW = 4096, MOST = 1 << 18 };

static int64_t choose_bias_shares(int64_t all, int64_t channels)
{
    const int64_t shares = kn_min_i64(kn_div_up(GROUPS, channels), all / FEW);
    return kn_max_i64(kn_max_i64(1, shares), kn_div_up(all, MOST));
}

bool kn_conv_sums_bias_on_gpu(const kn_limits *limits, const kn_conv_shape *s)
{
    const double all = (double)s->images * (double)kn_conv_volume(s->out_size);
    return !limits->is_cpu && limits->max_work_group_size >= GROUP && all < 1 << 30 && s->out_channels > 0;
}

kn_status kn_conv_bias_on_gpu(kn_stream *stream, const kn_conv_problem *problem)
{
    const kn_conv_shape *s = &problem->shape;
    const int64_t pixels = kn_conv_volume(s->out_size), all = s->images * pixels;
    const int64_t per_share = kn_max_i64(1, kn_div_up(all, choose_bias_shares(all, s->out_channels)));
    const int64_t shares = kn_max_i64(1, kn_div_up(all, per_share));
    const kn_divisor by_channels = kn_divisor_of(s->out_channels), by_pixels = kn_divisor_of(pixels);
    kn_buffer *part = NULL;
    if (shares > 1)
        KN_TRY(kn_buffer_alloc(&part, stream, (size_t)(shares * s->out_channels * (s->f64 ? 8 : 4))));
    kn_status status = kn_run(
        stream, .source = "conv/common/sums.cl", .kernel = "conv_bias_shares", .operation = "conv2d_backward_bias",
        .options = type_options(s), .dims = 1, .global = {(size_t)(shares * s->out_channels * GROUP)}, .local = {GROUP},
        KN_ARGS(kn_conv_arg(s, problem->y), part ? kn_arg_buffer(part, 0) : kn_conv_arg(s, problem->bias),
                kn_arg_i32((int32_t)all), kn_arg_i32((int32_t)per_share),
                kn_arg_struct(&by_channels, sizeof by_channels), kn_arg_struct(&by_pixels, sizeof by_pixels)));
    if (status == KN_OK && part) {
        kn_conv_problem whole = *problem; /* of one group: part is [shares][channels] */
        whole.shape.groups = 1;
        status = kn_conv_total_on_gpu(stream, &whole, NULL, 0, part, shares, s->out_channels);
    }
    kn_buffer_free(part);
    return status;
}
