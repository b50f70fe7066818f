/* conv/gpu/blocked.h - convolution on GPUs as implicit GEMM (conv/gpu/blocked.cl, pack_taps.cl). Positions are 32-bit
 * offsets from a nearby image. */
#pragma once

#include "common/divisor.h"
#include "common/shared.h"

typedef struct kn_conv_pixels {
    kn_int all, height, width; /* pixels of all images; size of an input channel */
    kn_int row_origin, row_step, column_origin, column_step;
    kn_int image;             /* stride of the input images, one per `area` pixels */
    kn_divisor area, columns; /* pixels per image; per row */
} kn_conv_pixels;
KN_SHARED_SIZE(kn_conv_pixels, 8 * 4 + 2 * 12);

typedef struct kn_conv_tap_numbers {
    kn_int all, plane; /* taps per group; channel stride */
    kn_int row_distance, column_distance;
    kn_divisor area, columns; /* taps per channel; per kernel row */
} kn_conv_tap_numbers;
KN_SHARED_SIZE(kn_conv_tap_numbers, 4 * 4 + 2 * 12);

/* Weights of a group as a matrix: channel, tap and group strides. */
typedef struct kn_conv_weight_matrix {
    kn_long channel, tap, group;
    kn_int aligned, filling; /* all vector loads are aligned to 16 bytes */
} kn_conv_weight_matrix;
KN_SHARED_SIZE(kn_conv_weight_matrix, 3 * 8 + 2 * 4);

/* Strides: of x per group of channels; of y per image, channel, row and column of the pixels. dense: rows have no gaps,
 * and Q pixels from a multiple of Q on are contiguous and aligned; pointwise: the same for x, with one tap per channel
 * whose pixels are all inside. */
typedef struct kn_conv_result {
    kn_long x_group, image, channel, row, column;
    kn_int channels, has_bias, dense, pointwise;
} kn_conv_result;
KN_SHARED_SIZE(kn_conv_result, 5 * 8 + 4 * 4);

/* The pixels in shares of per_share; per group: channels of dy, stride of x; image stride of dy. */
typedef struct kn_conv_shares {
    kn_long x_group, dy_image;
    kn_int per_share, channels, groups, filling;
} kn_conv_shares;
KN_SHARED_SIZE(kn_conv_shares, 2 * 8 + 4 * 4);

/* The packed weights of a correlation. */
typedef struct kn_conv_pack_layout {
    kn_long group, channel, inner; /* strides of w */
    kn_int first, row, column;     /* first used position of the kernel; strides of used rows and columns */
    kn_int count;                  /* elements written */
    kn_divisor pitch, taps;        /* padded channels; taps per group */
    kn_divisor area, columns;      /* taps per channel; per kernel row */
} kn_conv_pack_layout;
KN_SHARED_SIZE(kn_conv_pack_layout, 3 * 8 + 4 * 4 + 4 * 12);
