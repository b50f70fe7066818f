/* conv/cpu/direct.h - the parts into which direct convolution divides its pixels (conv/cpu/direct.cl). */
#pragma once

#include "common/shared.h"

/* Rows or columns. Output row i reads rows i * step + first + 0 .. reach of the image, some of them in the padding. */
typedef struct kn_conv_direct_axis {
    kn_long in;          /* size of the image */
    kn_long out;         /* number of output rows */
    kn_long step;        /* rows of the image from one output row to the next */
    kn_long copied_step; /* the same in the copy, which need not have the rows that no tap reads */
    kn_long first, reach;
    kn_long y_step;      /* elements of y from one output row to the next */
    kn_long part, parts; /* output rows per part; number of parts */
} kn_conv_direct_axis;
KN_SHARED_SIZE(kn_conv_direct_axis, 9 * 8);

/* Output columns that are KN_CONV_DIRECT_CLASSES or fewer apart and share a copy of the image: in backward-data with a
 * stride they have taps and weights of their own, and alternate in y. */
#define KN_CONV_DIRECT_CLASSES 8
typedef struct kn_conv_direct_class {
    kn_long out;            /* number of output columns, at most one less than the first class has */
    kn_long taps;           /* per input channel */
    kn_long weights, table; /* where they start, in elements of `packed` and `table` */
} kn_conv_direct_class;
KN_SHARED_SIZE(kn_conv_direct_class, 4 * 8);

/* A unit of work is a part of the images, rows and columns by `unit_blocks` blocks of output channels of a group.
 * Input channels are summed `chunk` at a time. */
typedef struct kn_conv_direct_layout {
    kn_conv_direct_axis rows, columns;
    kn_conv_direct_class of[KN_CONV_DIRECT_CLASSES];
    kn_long classes;
    kn_long images, image_part, image_parts;
    kn_long groups, inner, outer; /* channels read and written, per group */
    kn_long x_channel, y_channel; /* elements per channel of an image */
    kn_long chunk, unit_blocks;
    kn_long pitch, plane, image; /* of the copy: elements per row, channel and image */
    kn_long in_place;            /* x is read without a copy: pitch, plane and image are its own */
    kn_long sums;                /* pixels per block and class: a unit's, and PX - 1 that fill the last tile */
    kn_long units, units_per_item;
    kn_long copy_size, scratch_size; /* elements per work-item: of the copy, and in all */
} kn_conv_direct_layout;
KN_SHARED_SIZE(kn_conv_direct_layout, (2 * 9 + KN_CONV_DIRECT_CLASSES * 4 + 20) * 8);
