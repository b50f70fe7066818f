/* conv/gpu/depthwise.h - depthwise convolution on GPUs (conv/gpu/depthwise.clh). */
#pragma once

#include "common/divisor.h"
#include "common/shared.h"

/* Planes, images of one channel, of x are height x width, those of y out_height x out_width; plane k of y is computed
 * from plane k / multiplier of x. Work-items go along a row, `strips` to each, then along the `blocks` of rows of a
 * plane, then the planes. The last four fields are for kernels whose size is not compiled in. */
typedef struct kn_depthwise_shape {
    kn_int height, width, out_height, out_width, top, left;
    kn_uint items;
    kn_divisor strips, blocks, channels, multiplier;
    kn_int kernel_height, kernel_width, dilation_height, dilation_width;
    kn_divisor stride_height, stride_width;
} kn_depthwise_shape;
KN_SHARED_SIZE(kn_depthwise_shape, 11 * 4 + 6 * 12);

/* For the weight gradient. Shares are numbered chunk of columns fastest; a share's units, blocks of rows of all images,
 * are distributed over its `walkers` rows of work-items. */
typedef struct kn_depthwise_shares {
    kn_divisor chunk, chunks, channels, taps; /* columns; shares that differ in them */
    kn_int units, units_per_share, walkers;
} kn_depthwise_shares;
KN_SHARED_SIZE(kn_depthwise_shares, 4 * 12 + 3 * 4);
