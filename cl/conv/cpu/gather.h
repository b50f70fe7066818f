/* conv/cpu/gather.h - where a 1 x 1 convolution of images reads and writes (conv/cpu/gather.cl, pointwise.cl). */
#pragma once

#include "common/shared.h"

/* The position of y's pixels in x: (i, j) is at (i * row_step - top, j * column_step - left), possibly outside. */
typedef struct kn_conv_sampling {
    kn_long images, rows, columns; /* of y */
    kn_long height, width;         /* of x */
    kn_long row_step, column_step, top, left;
} kn_conv_sampling;
KN_SHARED_SIZE(kn_conv_sampling, 9 * 8);
