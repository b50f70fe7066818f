/* ops/conv/implementations.c - the implementations of each pass of a convolution, best first. */
#include "ops/conv/common/conv.h"

#include <string.h>

#include "ops/gemm/blocked.h"

static int describe(const void *problem_, int64_t numbers[KN_PROBLEM_NUMBERS])
{
    const kn_conv_problem *problem = problem_;
    const kn_conv_shape *s = &problem->shape;
    const int64_t *const sizes[] = {s->in_size, s->kernel_size, s->out_size, s->stride, s->padding, s->dilation};
    const int64_t all[] = {s->f64,
                           s->images,
                           s->in_channels,
                           s->out_channels,
                           s->groups,
                           problem->bias.buffer != NULL,
                           problem->activation};
    int count = sizeof all / sizeof all[0];
    memcpy(numbers, all, sizeof all);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++, count += 3)
        memcpy(numbers + count, sizes[i], 3 * sizeof *numbers);
    return count;
}

/* A row: its name, the ends of the names of its predicates `supports` and `prefers`, its pass. */
#define ROW(id, supports_, prefers_, pass, ...)                                                                        \
    {                                                                                                                  \
        .name = #id, .supports = kn_conv_supports_##supports_, .prefers = kn_conv_prefers_##prefers_,                  \
        .run = kn_conv_##id##_##pass, __VA_ARGS__                                                                      \
    }
#define CPUS .timed_on = KN_TIMED_ON_CPUS
#define OTHERS .timed_on = KN_TIMED_ON_OTHERS
#define ANYWHERE .timed_on = KN_TIMED_ANYWHERE
#define SPREADS .spreads_infinities = true
#define TF32 .works = kn_tensor_cores_work, .reduced_precision = KN_USES_TF32

static const kn_implementation forward[] = {
    ROW(winograd, winograd, winograd, forward, CPUS, SPREADS),
    ROW(channels, channels, channels, forward, CPUS),
    ROW(planes, planes, planes, forward, CPUS),
    ROW(pointwise, pointwise, pointwise, forward, CPUS),
    ROW(bands, bands, bands, forward, CPUS),
    ROW(rows, rows, rows, forward, CPUS),
    ROW(images, images, images, forward, CPUS),
    ROW(direct, direct, direct, forward, CPUS),
    ROW(depthwise, depthwise, depthwise, forward, OTHERS),
    ROW(tensor, tensor, blocked, forward, OTHERS, TF32),
    ROW(winograd_gpu, winograd_gpu, winograd_gpu, forward, OTHERS, SPREADS),
    ROW(blocked, blocked, blocked, forward, OTHERS),
    ROW(lowered, lowered, lowered, forward, ANYWHERE),
    {.name = "reference", .run = kn_conv_reference_forward, OTHERS},
};
const kn_implementation_table kn_conv_implementations =
    KN_IMPLEMENTATION_TABLE("conv2d", forward, KN_FAMILY_CONV, describe);

static const kn_implementation backward_data[] = {
    ROW(winograd, winograd, winograd_data, backward_data, CPUS, SPREADS),
    ROW(channels, channels_data, channels, backward_data, CPUS),
    ROW(planes, planes_data, planes, backward_data, CPUS),
    ROW(pointwise, pointwise_data, pointwise_data, backward_data, CPUS),
    ROW(bands, bands_data, bands_data, backward_data, CPUS),
    ROW(rows, rows_data, rows_data, backward_data, CPUS),
    ROW(images, images, images_data, backward_data, CPUS),
    ROW(direct, direct_data, direct_data, backward_data, CPUS),
    ROW(depthwise, depthwise, depthwise, backward_data, OTHERS),
    ROW(tensor, tensor, blocked, backward_data, OTHERS, TF32),
    ROW(winograd_gpu, winograd_gpu_data, winograd_gpu_data, backward_data, OTHERS, SPREADS),
    ROW(blocked, blocked, blocked, backward_data, OTHERS),
    ROW(lowered, lowered, lowered, backward_data, ANYWHERE),
    {.name = "reference", .run = kn_conv_reference_backward_data, OTHERS},
};
const kn_implementation_table kn_conv_backward_data_implementations =
    KN_IMPLEMENTATION_TABLE("conv2d_backward_data", backward_data, KN_FAMILY_CONV, describe);

static const kn_implementation backward_weights[] = {
    ROW(winograd, winograd_weights, winograd_weights, backward_weights, CPUS, SPREADS),
    ROW(channels, channels, channels_weights, backward_weights, CPUS),
    ROW(planes, planes, planes, backward_weights, CPUS),
    ROW(pointwise, pointwise_weights, pointwise_weights, backward_weights, CPUS),
    ROW(rows, rows_weights, rows_weights, backward_weights, CPUS),
    ROW(direct, direct_weights, direct_weights, backward_weights, CPUS),
    ROW(depthwise, depthwise_weights, depthwise, backward_weights, OTHERS),
    ROW(tensor, tensor, blocked, backward_weights, OTHERS, TF32),
    ROW(winograd_gpu, winograd_gpu_weights, winograd_gpu_weights, backward_weights, OTHERS, SPREADS),
    ROW(blocked, blocked, blocked, backward_weights, OTHERS),
    ROW(lowered, lowered, lowered, backward_weights, ANYWHERE),
    {.name = "reference", .run = kn_conv_reference_backward_weights, OTHERS},
};
const kn_implementation_table kn_conv_backward_weights_implementations =
    KN_IMPLEMENTATION_TABLE("conv2d_backward_weights", backward_weights, KN_FAMILY_CONV, describe);

kn_status kn_conv_run_forward(kn_stream *stream, const kn_conv_problem *problem)
{
    return kn_run_implementation(&kn_conv_implementations, stream, problem);
}

kn_status kn_conv_run_backward_data(kn_stream *stream, const kn_conv_problem *problem)
{
    return kn_run_implementation(&kn_conv_backward_data_implementations, stream, problem);
}

kn_status kn_conv_run_backward_weights(kn_stream *stream, const kn_conv_problem *problem)
{
    return kn_run_implementation(&kn_conv_backward_weights_implementations, stream, problem);
}
