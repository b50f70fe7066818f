/* ops/conv/cpu/planes.h - depthwise convolution as correlation of planes, for its implementations: vectors along a
 * plane's pixels (stencil.c for small kernels with stride 1, planes.c) and along the channels (channels.c). */
#pragma once

#include "conv/cpu/planes.h"

#include "ops/conv/common/conv.h"

/* Forward and backward-weights read x, and the result (dy) is every stride-th pixel. Backward-data reads dy, spread out
 * by the stride. `width` is the image's; the fields from `before` on are 0. */
kn_conv_plane_shape kn_conv_plane_shape_of(const kn_conv_problem *problem);
kn_conv_plane_shape kn_conv_plane_shape_of_forward(const kn_conv_shape *s);

/* Of the taps along a dimension, the first one's distance from its pixel. */
static inline int64_t kn_conv_first_tap(int64_t shift, int64_t distance, int64_t taps)
{
    return kn_min_i64(shift, shift + (taps - 1) * distance);
}

/* One input channel per group; in backward-data also one output channel. */
bool kn_conv_is_depthwise(const kn_conv_problem *problem);

/* Depthwise forward or backward-data of long signals, where conv/cpu/bands.cl is faster than planes.c, which needs
 * masks, and with few taps than channels.c. */
bool kn_conv_is_depthwise_signal(const kn_limits *limits, const kn_conv_problem *problem);

/* Is this a gradient of weights that is computed row by row (weights_rows.c), unless others take it? */
static inline bool kn_conv_sums_rows(const kn_limits *limits, const kn_conv_problem *problem)
{
    return problem->pass == KN_CONV_WEIGHTS && kn_conv_supports_rows_weights(limits, problem) &&
           kn_conv_prefers_rows_weights(limits, problem);
}

/* A pass (plane_pass.c): first what the implementation sets, then what running it sets. The kernels of all take the
 * same arguments. */
typedef struct kn_conv_plane_pass {
    const kn_conv_problem *problem;
    const char *source, *kernel;
    kn_conv_plane_shape shape;
    int64_t element, vector_width;
    int64_t tasks;        /* independent tasks; for backward-weights, per share of the images */
    int64_t scratch_size; /* elements per work-item */
    char options[KN_CONV_OPTIONS];
    int64_t items, per_item;
    kn_buffer *scratch;
} kn_conv_plane_pass;

kn_status kn_conv_run_plane_pass(kn_stream *stream, kn_conv_plane_pass *pass);
