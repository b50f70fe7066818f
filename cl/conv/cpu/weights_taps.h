/* conv/cpu/weights_taps.h - the gradient of a convolution's weights, one tap at a time (conv/cpu/weights_taps.cl). */
#pragma once

#include "conv/cpu/line.h"

typedef struct kn_conv_taps_shape {
    kn_long groups, inner, outer;             /* channels of x and dy, per group */
    kn_long images, shares, images_per_share; /* which have sums of their own */
    kn_long tiles;                            /* of ROWS channels of dy, summed while a block of x is in the cache */
    kn_conv_line rows, columns;
} kn_conv_taps_shape;
KN_SHARED_SIZE(kn_conv_taps_shape, 21 * 8);
