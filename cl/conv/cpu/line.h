/* conv/cpu/line.h - the taps of a row or column of pixels. */
#pragma once

#include "common/shared.h"

/* Of rows or of columns: pixel i reads through tap u the pixel (i * step + origin + u * distance) / division, if that
 * is whole and in the image. */
typedef struct kn_conv_line {
    kn_long from, to, taps; /* the sizes of the images read and written (of weights: x and dy) and of the kernel */
    kn_long step, origin, distance, division;
} kn_conv_line;
KN_SHARED_SIZE(kn_conv_line, 7 * 8);
