/* conv/cpu/dilated.h - images divided by the places of a dilated kernel's taps (conv/cpu/dilated.cl). */
#pragma once

#include "common/shared.h"

/* Of `images` images of `channels` planes. Each image becomes row_step * column_step parts of their own images: part
 * (r, c) has the pixels (i * row_step + r, j * column_step + c) for i < rows and j < columns. */
typedef struct kn_conv_division {
    kn_long images, channels, height, width;
    kn_long row_step, column_step, rows, columns;
} kn_conv_division;
KN_SHARED_SIZE(kn_conv_division, 8 * 8);
