/* ops/conv/any/reference.c - convolution on any device, one sum per element of the result (cl/conv/any/reference.cl).
 */
#include "ops/conv/conv2d.h"

static const char *type_options(const kn_conv2d_shape *s) { return s->f64 ? "-DT=double -DKN_USE_F64" : "-DT=float"; }

static size_t choose_items(kn_stream *stream, int64_t elements)
{
    const kn_limits *limits = kn_device_limits(kn_stream_device(stream));
    return limits->is_cpu ? (size_t)kn_min_i64(elements, 16 * limits->compute_units)
                          : kn_work_items(limits, elements, 1);
}

kn_conv2d_kernel_shape kn_conv2d_describe(const kn_conv2d_shape *s)
{
    return (kn_conv2d_kernel_shape){
        s->images,         s->in_channels, s->in_size[0],  s->in_size[1], s->out_channels, s->kernel_size[0],
        s->kernel_size[1], s->out_size[0], s->out_size[1], s->stride[0],  s->stride[1],    s->padding[0],
        s->padding[1],     s->dilation[0], s->dilation[1], s->groups,
    };
}

kn_status kn_conv2d_reference_forward(kn_stream *stream, const void *problem_)
{
    const kn_conv2d_problem *problem = problem_;
    const kn_conv2d_shape *s = &problem->shape;
    kn_conv2d_kernel_shape shape = kn_conv2d_describe(s);
    kn_conv2d_operand bias = problem->bias.buffer ? problem->bias : problem->weight;
    return kn_run(stream, .source = "conv/any/reference.cl", .kernel = "conv_reference_forward", .operation = "conv2d",
                  .options = type_options(s), .dims = 1,
                  .global = {choose_items(stream, s->images * s->out_channels * s->out_size[0] * s->out_size[1])},
                  KN_ARGS(kn_conv2d_arg(s, problem->x), kn_conv2d_arg(s, problem->weight), kn_conv2d_arg(s, bias),
                          kn_conv2d_arg(s, problem->y), kn_arg_struct(&shape, sizeof shape),
                          kn_arg_i32(problem->bias.buffer != NULL), KN_CONV2D_CUT_ARGS(s->f64, problem->activation)));
}

kn_status kn_conv2d_reference_backward_data(kn_stream *stream, const void *problem_)
{
    const kn_conv2d_problem *problem = problem_;
    const kn_conv2d_shape *s = &problem->shape;
    kn_conv2d_kernel_shape shape = kn_conv2d_describe(s);
    return kn_run(stream, .source = "conv/any/reference.cl", .kernel = "conv_reference_data",
                  .operation = "conv2d_backward_data", .options = type_options(s), .dims = 1,
                  .global = {choose_items(stream, s->images * s->in_channels * s->in_size[0] * s->in_size[1])},
                  KN_ARGS(kn_conv2d_arg(s, problem->y), kn_conv2d_arg(s, problem->weight), kn_conv2d_arg(s, problem->x),
                          kn_arg_struct(&shape, sizeof shape)));
}

kn_status kn_conv2d_bias_gradient(kn_stream *stream, const kn_conv2d_problem *problem)
{
    const kn_conv2d_shape *s = &problem->shape;
    if (kn_conv2d_sums_bias_on_gpu(kn_device_limits(kn_stream_device(stream)), s))
        return kn_conv2d_bias_on_gpu(stream, problem);
    return kn_run(stream, .source = "conv/any/reference.cl", .kernel = "conv_bias_gradient",
                  .operation = "conv2d_backward_bias", .options = type_options(s), .dims = 1,
                  .global = {choose_items(stream, s->out_channels)},
                  KN_ARGS(kn_conv2d_arg(s, problem->y), kn_conv2d_arg(s, problem->bias), kn_arg_i64(s->images),
                          kn_arg_i64(s->out_channels), kn_arg_i64(s->out_size[0] * s->out_size[1])));
}

kn_status kn_conv2d_reference_backward_weights(kn_stream *stream, const void *problem_)
{
    const kn_conv2d_problem *problem = problem_;
    const kn_conv2d_shape *s = &problem->shape;
    kn_conv2d_kernel_shape shape = kn_conv2d_describe(s);
    KN_TRY(kn_run(stream, .source = "conv/any/reference.cl", .kernel = "conv_reference_weights",
                  .operation = "conv2d_backward_weights", .options = type_options(s), .dims = 1,
                  .global = {choose_items(stream, s->out_channels * kn_conv2d_taps(s))},
                  KN_ARGS(kn_conv2d_arg(s, problem->x), kn_conv2d_arg(s, problem->y), kn_conv2d_arg(s, problem->weight),
                          kn_arg_struct(&shape, sizeof shape))));
    return problem->bias.buffer ? kn_conv2d_bias_gradient(stream, problem) : KN_OK;
}
