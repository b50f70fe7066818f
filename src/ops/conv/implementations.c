/* ops/conv/implementations.c - the implementations of each pass of a convolution, best first. */
#include "ops/conv/common/slicing.h"

#include <string.h>

#include "ops/gemm/instructions.h"

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

/* A row: its name and the end of the names of its functions. */
#define NAMED(name_, id, ...)                                                                                          \
    {                                                                                                                  \
        .name = name_, .supports = kn_conv_supports_##id, .prefers = kn_conv_prefers_##id, .run = kn_conv_run_##id,    \
        __VA_ARGS__                                                                                                    \
    }
#define ROW(id, ...) NAMED(#id, id, __VA_ARGS__)
#define CPUS .timed_on = KN_TIMED_ON_CPUS
#define OTHERS .timed_on = KN_TIMED_ON_OTHERS
#define ANYWHERE .timed_on = KN_TIMED_ANYWHERE
#define SPREADS .spreads_infinities = true
#define TF32 .works = kn_tensor_cores_work, .reduced_precision = KN_USES_TF32

/* clang-format off */
#define REFERENCE {.name = "reference", .run = kn_conv_run_reference, OTHERS}

/* Forward and backward-data. */
#define CORRELATIONS                    \
    ROW(gathered, CPUS),                \
    ROW(dilated, CPUS, SPREADS),        \
    ROW(products, CPUS),                \
    ROW(slices, ANYWHERE, SPREADS),     \
    ROW(winograd, CPUS, SPREADS),       \
    ROW(stencil, CPUS),                 \
    ROW(channels, CPUS),                \
    ROW(planes, CPUS),                  \
    ROW(pointwise, CPUS),               \
    ROW(bands, CPUS),                   \
    ROW(rows, CPUS),                    \
    ROW(images, CPUS),                  \
    ROW(direct, CPUS),                  \
    ROW(depthwise, OTHERS),             \
    ROW(tensor, OTHERS, TF32),          \
    ROW(winograd_gpu, OTHERS, SPREADS), \
    ROW(blocked, OTHERS),               \
    ROW(lowered, ANYWHERE),             \
    REFERENCE
/* clang-format on */
static const kn_implementation forward[] = {CORRELATIONS};
static const kn_implementation data[] = {ROW(patches, CPUS), CORRELATIONS};

static const kn_implementation gradients[] = {
    ROW(gathered, CPUS),
    ROW(dilated, CPUS, SPREADS),
    ROW(slices, ANYWHERE, SPREADS),
    NAMED("winograd", winograd_weights, CPUS, SPREADS),
    ROW(stencil, CPUS),
    ROW(channels, CPUS),
    ROW(planes, CPUS),
    ROW(pointwise, CPUS),
    NAMED("taps", taps_weights, CPUS),
    NAMED("rows", rows_weights, CPUS),
    NAMED("direct", direct_weights, CPUS),
    ROW(depthwise, OTHERS),
    ROW(tensor, OTHERS, TF32),
    ROW(winograd_gpu, OTHERS, SPREADS),
    ROW(blocked, OTHERS),
    ROW(lowered, ANYWHERE),
    REFERENCE,
};

const kn_implementation_table kn_conv_implementations[KN_CONV_PASSES] = {
    KN_IMPLEMENTATION_TABLE("conv2d", forward, KN_FAMILY_CONV, describe),
    KN_IMPLEMENTATION_TABLE("conv2d_backward_data", data, KN_FAMILY_CONV, describe),
    KN_IMPLEMENTATION_TABLE("conv2d_backward_weights", gradients, KN_FAMILY_CONV, describe),
};

static bool is_direct(const kn_implementation *row)
{
    return row->run == kn_conv_run_direct || row->run == kn_conv_run_direct_weights;
}

bool kn_conv_slices_run_directly(const kn_limits *limits, const kn_conv_problem *problem)
{
    const kn_implementation_table *table = &kn_conv_implementations[problem->pass];
    const kn_conv_slicing slicing = kn_conv_slice(problem, 0);
    for (int i = 0; i < table->count; i++) {
        const kn_implementation *row = &table->rows[i];
        if (row->supports && row->supports(limits, &slicing.flat) && row->prefers(limits, &slicing.flat))
            return is_direct(row);
    }
    return false;
}

kn_status kn_conv_run(kn_stream *stream, const kn_conv_problem *problem)
{
    return problem->bf16 ? kn_conv_run_pairs(stream, problem)
                         : kn_run_implementation(&kn_conv_implementations[problem->pass], stream, problem);
}
