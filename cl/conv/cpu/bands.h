/* conv/cpu/bands.h - a band of rows of the images that a convolution reads (conv/cpu/bands.clh). */
#ifndef KN_CONV_CPU_BANDS_H
#define KN_CONV_CPU_BANDS_H

#include "common/shared.h"

/* One residue class of result rows (or columns): of backward-data with stride s, those with row mod s = residue; of
 * forward all. Result row i of the class, row i * out_step + residue of the result, reads from offset `origin` on, in
 * `taps` steps of `distance`, through the kernel's rows first + u * weight_step. */
typedef struct kn_conv_band_class {
    kn_int rows, origin, taps, distance, first, weight_step;
} kn_conv_band_class;
KN_SHARED_SIZE(kn_conv_band_class, 6 * 4);

#define KN_CONV_BAND_CLASSES 8

typedef struct kn_conv_band_axis {
    kn_int in, out; /* size of what is read and of what is written */
    kn_int rows;    /* result rows, of the class that has most */
    kn_int step;    /* rows read from one result row to the next */
    kn_int low;     /* result row 0 reads from here on */
    kn_int phases;  /* planes: of the step, those that any tap reads */
    kn_int halo;    /* rows of a plane beyond those of the band */
    kn_int classes; /* also how many rows further on the next of a class is written */
    kn_conv_band_class of[KN_CONV_BAND_CLASSES];
} kn_conv_band_axis;
KN_SHARED_SIZE(kn_conv_band_axis, (8 + KN_CONV_BAND_CLASSES * 6) * 4);

typedef struct kn_conv_band_layout {
    kn_long images, groups, inner, outer; /* channels of one group: summed over, and written */
    kn_long plane;                        /* elements of one plane of a band */
    kn_long pitch;
    kn_long rows_per_band, bands;
    kn_long bands_per_image; /* 0: bands run on from image to image */
    kn_int flat;             /* a band is one run of elements, in the image as in the plane */
    kn_int in_place;         /* and is read there: no band is longer than what is left of its image */
} kn_conv_band_layout;
KN_SHARED_SIZE(kn_conv_band_layout, 9 * 8 + 2 * 4);

/* Where weights are: (block of KX result channels, channel of it, channel summed over, row and column of the kernel).
 */
typedef struct kn_conv_band_weights {
    kn_long group, block, outer, inner, row, column;
} kn_conv_band_weights;
KN_SHARED_SIZE(kn_conv_band_weights, 6 * 8);

/* Blocks that a work-item packs. */
#define KN_CONV_BAND_BLOCKS 4

#endif
