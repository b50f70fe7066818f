/* conv/cpu/parts.h - the parts into which the kernels with vectors along the channels divide a convolution's pixels
 * (conv/cpu/parts.clh). */
#pragma once

#include "conv/any/slices.h"

/* Rows or columns. Output row i reads rows i * step + first + 0 .. reach of the image, some of them in the padding. */
typedef struct kn_conv_axis {
    kn_long in;          /* size of the image */
    kn_long out;         /* number of output rows */
    kn_long step;        /* rows of the image from one output row to the next */
    kn_long copied_step; /* the same in the copy, which need not have the rows that no tap reads */
    kn_long first, reach;
    kn_long y_step;      /* elements of y from one output row to the next */
    kn_long part, parts; /* output rows per part; number of parts */
} kn_conv_axis;
KN_SHARED_SIZE(kn_conv_axis, 9 * 8);

/* A unit of work is a part of the images, rows and columns by `unit_blocks` blocks of output channels of a group.
 * Input channels are summed `chunk` at a time. x and y may be slices of volumes; a tap of x along the depth counts as
 * an input channel. */
typedef struct kn_conv_parts {
    kn_conv_axis rows, columns;
    kn_conv_slices x, y; /* of all images: x.images */
    kn_long image_part, image_parts;
    kn_long groups, inner, outer; /* channels read and written, per group */
    kn_long chunk, unit_blocks;
    kn_long pitch, plane, image; /* of the copy: elements per row, channel and image */
    kn_long in_place;            /* x is read without a copy: pitch, plane and image are its own */
    kn_long copy_size;           /* elements */
    kn_long units;
} kn_conv_parts;
KN_SHARED_SIZE(kn_conv_parts, (2 * 9 + 2 * 11 + 13) * 8);
