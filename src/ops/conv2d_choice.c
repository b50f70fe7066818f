/* ops/conv2d_choice.c - the implementations of each pass of a convolution, best first. */
#include "ops/conv2d.h"

#include <string.h>

#include "ops/blocked.h"

static int describe(const void *problem_, int64_t numbers[KN_PROBLEM_NUMBERS])
{
    const kn_conv2d_problem *problem = problem_;
    const kn_conv2d_shape *s = &problem->shape;
    const int64_t all[] = {s->f64,
                           s->images,
                           s->in_channels,
                           s->in_size[0],
                           s->in_size[1],
                           s->out_channels,
                           s->kernel_size[0],
                           s->kernel_size[1],
                           s->out_size[0],
                           s->out_size[1],
                           s->stride[0],
                           s->stride[1],
                           s->padding[0],
                           s->padding[1],
                           s->dilation[0],
                           s->dilation[1],
                           s->groups,
                           problem->bias.buffer != NULL,
                           problem->activation};
    memcpy(numbers, all, sizeof all);
    return (int)(sizeof all / sizeof all[0]);
}

static const kn_implementation forward[] = {
    {.name = "winograd",
     .supports = kn_conv2d_supports_winograd,
     .prefers = kn_conv2d_prefers_winograd,
     .run = kn_conv2d_winograd_forward,
     .timed_on = KN_TIMED_ON_CPUS,
     .spreads_infinities = true},
    {.name = "channels",
     .supports = kn_conv2d_supports_channels,
     .prefers = kn_conv2d_prefers_channels,
     .run = kn_conv2d_channels_forward,
     .timed_on = KN_TIMED_ON_CPUS},
    {.name = "planes",
     .supports = kn_conv2d_supports_planes,
     .prefers = kn_conv2d_prefers_planes,
     .run = kn_conv2d_planes_forward,
     .timed_on = KN_TIMED_ON_CPUS},
    {.name = "pointwise",
     .supports = kn_conv2d_supports_pointwise,
     .prefers = kn_conv2d_prefers_pointwise,
     .run = kn_conv2d_pointwise_forward,
     .timed_on = KN_TIMED_ON_CPUS},
    {.name = "bands",
     .supports = kn_conv2d_supports_bands,
     .prefers = kn_conv2d_prefers_bands,
     .run = kn_conv2d_bands_forward,
     .timed_on = KN_TIMED_ON_CPUS},
    {.name = "rows",
     .supports = kn_conv2d_supports_rows,
     .prefers = kn_conv2d_prefers_rows,
     .run = kn_conv2d_rows_forward,
     .timed_on = KN_TIMED_ON_CPUS},
    {.name = "images",
     .supports = kn_conv2d_supports_images,
     .prefers = kn_conv2d_prefers_images,
     .run = kn_conv2d_images_forward,
     .timed_on = KN_TIMED_ON_CPUS},
    {.name = "direct",
     .supports = kn_conv2d_supports_direct,
     .prefers = kn_conv2d_prefers_direct,
     .run = kn_conv2d_direct_forward,
     .timed_on = KN_TIMED_ON_CPUS},
    {.name = "tensor",
     .supports = kn_conv2d_supports_tensor,
     .prefers = kn_conv2d_prefers_blocked,
     .works = kn_tensor_cores_work,
     .run = kn_conv2d_tensor_forward,
     .timed_on = KN_TIMED_ON_OTHERS,
     .reduced_precision = KN_USES_TF32},
    {.name = "blocked",
     .supports = kn_conv2d_supports_blocked,
     .prefers = kn_conv2d_prefers_blocked,
     .run = kn_conv2d_blocked_forward,
     .timed_on = KN_TIMED_ON_OTHERS},
    {.name = "lowered",
     .supports = kn_conv2d_supports_lowered,
     .prefers = kn_conv2d_prefers_lowered,
     .run = kn_conv2d_lowered_forward},
    {.name = "reference", .run = kn_conv2d_reference_forward, .timed_on = KN_TIMED_ON_OTHERS},
};
const kn_implementation_table kn_conv2d_implementations =
    KN_IMPLEMENTATION_TABLE("conv2d", forward, KN_FAMILY_CONV, describe);

static const kn_implementation backward_data[] = {
    {.name = "winograd",
     .supports = kn_conv2d_supports_winograd,
     .prefers = kn_conv2d_prefers_winograd_data,
     .run = kn_conv2d_winograd_backward_data,
     .timed_on = KN_TIMED_ON_CPUS,
     .spreads_infinities = true},
    {.name = "channels",
     .supports = kn_conv2d_supports_channels_data,
     .prefers = kn_conv2d_prefers_channels,
     .run = kn_conv2d_channels_backward_data,
     .timed_on = KN_TIMED_ON_CPUS},
    {.name = "planes",
     .supports = kn_conv2d_supports_planes_data,
     .prefers = kn_conv2d_prefers_planes,
     .run = kn_conv2d_planes_backward_data,
     .timed_on = KN_TIMED_ON_CPUS},
    {.name = "pointwise",
     .supports = kn_conv2d_supports_pointwise_data,
     .prefers = kn_conv2d_prefers_pointwise_data,
     .run = kn_conv2d_pointwise_backward_data,
     .timed_on = KN_TIMED_ON_CPUS},
    {.name = "bands",
     .supports = kn_conv2d_supports_bands_data,
     .prefers = kn_conv2d_prefers_bands_data,
     .run = kn_conv2d_bands_backward_data,
     .timed_on = KN_TIMED_ON_CPUS},
    {.name = "rows",
     .supports = kn_conv2d_supports_rows_data,
     .prefers = kn_conv2d_prefers_rows_data,
     .run = kn_conv2d_rows_backward_data,
     .timed_on = KN_TIMED_ON_CPUS},
    {.name = "images",
     .supports = kn_conv2d_supports_images,
     .prefers = kn_conv2d_prefers_images_data,
     .run = kn_conv2d_images_backward_data,
     .timed_on = KN_TIMED_ON_CPUS},
    {.name = "direct",
     .supports = kn_conv2d_supports_direct_data,
     .prefers = kn_conv2d_prefers_direct_data,
     .run = kn_conv2d_direct_backward_data,
     .timed_on = KN_TIMED_ON_CPUS},
    {.name = "tensor",
     .supports = kn_conv2d_supports_tensor,
     .prefers = kn_conv2d_prefers_blocked,
     .works = kn_tensor_cores_work,
     .run = kn_conv2d_tensor_backward_data,
     .timed_on = KN_TIMED_ON_OTHERS,
     .reduced_precision = KN_USES_TF32},
    {.name = "blocked",
     .supports = kn_conv2d_supports_blocked,
     .prefers = kn_conv2d_prefers_blocked,
     .run = kn_conv2d_blocked_backward_data,
     .timed_on = KN_TIMED_ON_OTHERS},
    {.name = "lowered",
     .supports = kn_conv2d_supports_lowered,
     .prefers = kn_conv2d_prefers_lowered,
     .run = kn_conv2d_lowered_backward_data},
    {.name = "reference", .run = kn_conv2d_reference_backward_data, .timed_on = KN_TIMED_ON_OTHERS},
};
const kn_implementation_table kn_conv2d_backward_data_implementations =
    KN_IMPLEMENTATION_TABLE("conv2d_backward_data", backward_data, KN_FAMILY_CONV, describe);

static const kn_implementation backward_weights[] = {
    {.name = "winograd",
     .supports = kn_conv2d_supports_winograd_weights,
     .prefers = kn_conv2d_prefers_winograd_weights,
     .run = kn_conv2d_winograd_backward_weights,
     .timed_on = KN_TIMED_ON_CPUS,
     .spreads_infinities = true},
    {.name = "channels",
     .supports = kn_conv2d_supports_channels,
     .prefers = kn_conv2d_prefers_channels_weights,
     .run = kn_conv2d_channels_backward_weights,
     .timed_on = KN_TIMED_ON_CPUS},
    {.name = "planes",
     .supports = kn_conv2d_supports_planes,
     .prefers = kn_conv2d_prefers_planes,
     .run = kn_conv2d_planes_backward_weights,
     .timed_on = KN_TIMED_ON_CPUS},
    {.name = "pointwise",
     .supports = kn_conv2d_supports_pointwise_weights,
     .prefers = kn_conv2d_prefers_pointwise_weights,
     .run = kn_conv2d_pointwise_backward_weights,
     .timed_on = KN_TIMED_ON_CPUS},
    {.name = "rows",
     .supports = kn_conv2d_supports_rows_weights,
     .prefers = kn_conv2d_prefers_rows_weights,
     .run = kn_conv2d_rows_backward_weights,
     .timed_on = KN_TIMED_ON_CPUS},
    {.name = "direct",
     .supports = kn_conv2d_supports_direct_weights,
     .prefers = kn_conv2d_prefers_direct_weights,
     .run = kn_conv2d_direct_backward_weights,
     .timed_on = KN_TIMED_ON_CPUS},
    {.name = "tensor",
     .supports = kn_conv2d_supports_tensor,
     .prefers = kn_conv2d_prefers_blocked,
     .works = kn_tensor_cores_work,
     .run = kn_conv2d_tensor_backward_weights,
     .timed_on = KN_TIMED_ON_OTHERS,
     .reduced_precision = KN_USES_TF32},
    {.name = "blocked",
     .supports = kn_conv2d_supports_blocked,
     .prefers = kn_conv2d_prefers_blocked,
     .run = kn_conv2d_blocked_backward_weights,
     .timed_on = KN_TIMED_ON_OTHERS},
    {.name = "lowered",
     .supports = kn_conv2d_supports_lowered,
     .prefers = kn_conv2d_prefers_lowered,
     .run = kn_conv2d_lowered_backward_weights},
    {.name = "reference", .run = kn_conv2d_reference_backward_weights, .timed_on = KN_TIMED_ON_OTHERS},
};
const kn_implementation_table kn_conv2d_backward_weights_implementations =
    KN_IMPLEMENTATION_TABLE("conv2d_backward_weights", backward_weights, KN_FAMILY_CONV, describe);

kn_status kn_conv2d_run_forward(kn_stream *stream, const kn_conv2d_problem *problem)
{
    return kn_run_implementation(&kn_conv2d_implementations, stream, problem);
}

kn_status kn_conv2d_run_backward_data(kn_stream *stream, const kn_conv2d_problem *problem)
{
    return kn_run_implementation(&kn_conv2d_backward_data_implementations, stream, problem);
}

kn_status kn_conv2d_run_backward_weights(kn_stream *stream, const kn_conv2d_problem *problem)
{
    return kn_run_implementation(&kn_conv2d_backward_weights_implementations, stream, problem);
}
