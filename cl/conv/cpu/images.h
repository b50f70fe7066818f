/* conv/cpu/images.h - convolution on CPU devices, one pixel of several images at a time (conv/cpu/images.cl). */
#pragma once

#include "conv/cpu/line.h"

typedef struct kn_conv_images_shape {
    kn_long images, groups, inner, outer;             /* inner, outer: channels read and written, per group */
    kn_long group_stride, outer_stride, inner_stride; /* of the weights */
    kn_long chunk;                                    /* channels whose weights are packed at a time */
    kn_long run;     /* rows of pixels, each of NX images, for which the weights are packed once */
    kn_long scratch; /* elements, per work-item */
    kn_conv_line rows, columns;
} kn_conv_images_shape;
KN_SHARED_SIZE(kn_conv_images_shape, 24 * 8);
