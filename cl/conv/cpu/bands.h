/* conv/cpu/bands.h - a band of rows of the input images (conv/cpu/bands.clh). */
#pragma once

#include "common/shared.h"

/* A residue class of output rows (or columns): in backward-data with stride s those with row mod s = residue; in
 * forward all. Row i of the class, output row i * out_step + residue, reads from offset `origin` on, in `taps` steps of
 * `distance`, through the kernel's rows first + u * weight_step. */
typedef struct kn_conv_band_class {
    kn_int rows, origin, taps, distance, first, weight_step;
} kn_conv_band_class;
KN_SHARED_SIZE(kn_conv_band_class, 6 * 4);

#define KN_CONV_BAND_CLASSES 8

typedef struct kn_conv_band_axis {
    kn_int in, out; /* input and output size */
    kn_int rows;    /* output rows of the largest class */
    kn_int step;    /* input rows per output row */
    kn_int low;     /* first row read by output row 0 */
    kn_int phases;  /* planes, out of `step`, read by any tap */
    kn_int halo;    /* rows of a plane beyond those of the band */
    kn_int classes; /* also the distance of a class's rows in the output */
    kn_conv_band_class of[KN_CONV_BAND_CLASSES];
} kn_conv_band_axis;
KN_SHARED_SIZE(kn_conv_band_axis, (8 + KN_CONV_BAND_CLASSES * 6) * 4);

typedef struct kn_conv_band_layout {
    kn_long images, groups, inner, outer; /* input and output channels per group */
    kn_long plane;                        /* elements of one plane of a band */
    kn_long pitch;
    kn_long rows_per_band, bands;
    kn_long bands_per_image; /* 0: bands may span images */
    kn_int flat;             /* a band is contiguous in the image as in the plane */
    kn_int in_place;         /* and is read there: bands do not extend past their image */
} kn_conv_band_layout;
KN_SHARED_SIZE(kn_conv_band_layout, 9 * 8 + 2 * 4);

/* Strides of the weights: block of KX output channels, output channel within it, input channel, row and column of the
 * kernel. */
typedef struct kn_conv_band_weights {
    kn_long group, block, outer, inner, row, column;
} kn_conv_band_weights;
KN_SHARED_SIZE(kn_conv_band_weights, 6 * 8);

/* Blocks per packing work-item. */
#define KN_CONV_BAND_BLOCKS 4
