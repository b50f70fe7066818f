/* conv/cpu/weights_taps.h - the gradient of a convolution's weights, one tap at a time (conv/cpu/weights_taps.cl). */
#pragma once

#include "common/shared.h"

/* Of rows or of columns: pixel i of dy reads through tap u the pixel i * step + origin + u * distance of x, if that is
 * in the image. */
typedef struct kn_conv_taps_line {
    kn_long x, dy, taps; /* the sizes of the images and of the kernel */
    kn_long step, origin, distance;
} kn_conv_taps_line;
KN_SHARED_SIZE(kn_conv_taps_line, 6 * 8);

typedef struct kn_conv_taps_shape {
    kn_long groups, inner, outer;             /* channels of x and dy, per group */
    kn_long images, shares, images_per_share; /* which have sums of their own */
    kn_long tiles;                            /* of ROWS channels of dy, summed while a block of x is in the cache */
    kn_conv_taps_line rows, columns;
} kn_conv_taps_shape;
KN_SHARED_SIZE(kn_conv_taps_shape, 19 * 8);
