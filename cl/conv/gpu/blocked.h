/* conv/gpu/blocked.h - convolution on GPUs as products whose matrices are never made (conv/gpu/blocked.cl,
 * pack_taps.cl). Places are offsets of 32 bits from an image near by. */
#ifndef KN_CONV_GPU_BLOCKED_H
#define KN_CONV_GPU_BLOCKED_H

#include "common/divisor.h"
#include "common/shared.h"

typedef struct kn_conv_pixels {
    kn_int all, height, width; /* pixels of all images; size of one channel of the image read */
    kn_int row_origin, row_step, column_origin, column_step;
    kn_int image; /* elements from one image read to the next, of which there is one for each `area` pixels */
    kn_divisor area, columns; /* pixels of one image; of a row of it */
} kn_conv_pixels;
KN_SHARED_SIZE(kn_conv_pixels, 8 * 4 + 2 * 12);

typedef struct kn_conv_tap_numbers {
    kn_int all, plane; /* taps of one group; elements from one channel to the next */
    kn_int row_distance, column_distance;
    kn_divisor area, columns; /* taps of one channel; of a row of the kernel */
} kn_conv_tap_numbers;
KN_SHARED_SIZE(kn_conv_tap_numbers, 4 * 4 + 2 * 12);

/* Weights of one group as a matrix: channel and tap strides; from one group to the next. */
typedef struct kn_conv_weight_matrix {
    kn_long channel, tap, group;
    kn_int aligned, filling; /* all that is read as vectors is at multiples of 16 bytes */
} kn_conv_weight_matrix;
KN_SHARED_SIZE(kn_conv_weight_matrix, 3 * 8 + 2 * 4);

/* Elements of x from one group of channels to the next; of y from one image, channel, row and column of the pixels to
 * the next. dense: rows follow each other without gaps, and four pixels from a multiple of Q on are neighbours in
 * memory, aligned; pointwise: as dense, of x, and there is one tap per channel, all of whose pixels are inside. */
typedef struct kn_conv_result {
    kn_long x_group, image, channel, row, column;
    kn_int channels, has_bias, dense, pointwise;
} kn_conv_result;
KN_SHARED_SIZE(kn_conv_result, 5 * 8 + 4 * 4);

/* The pixels in shares of per_share; of one group, channels of dy, and elements of x to the next; elements of dy from
 * one image to the next. */
typedef struct kn_conv_shares {
    kn_long x_group, dy_image;
    kn_int per_share, channels, groups, filling;
} kn_conv_shares;
KN_SHARED_SIZE(kn_conv_shares, 2 * 8 + 4 * 4);

/* The weights that a correlation uses, put in order. */
typedef struct kn_conv_pack_layout {
    kn_long group, channel, inner; /* elements of w from one to the next */
    kn_int first, row, column; /* the first place of the kernel used, and from one row and column used to the next */
    kn_int count;              /* of elements written */
    kn_divisor pitch, taps;    /* channels, filled up; taps of one group */
    kn_divisor area, columns;  /* taps of one channel; of a row of the kernel */
} kn_conv_pack_layout;
KN_SHARED_SIZE(kn_conv_pack_layout, 3 * 8 + 4 * 4 + 4 * 12);

#endif
