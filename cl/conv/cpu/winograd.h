/* conv/cpu/winograd.h - Winograd's convolution on CPU devices (conv/cpu/winograd.cl, winograd_weights.cl). */
#pragma once

#include "common/shared.h"

typedef struct kn_winograd_shape {
    kn_long groups, images, inner, outer;             /* input and output channels, per group */
    kn_long height, width, out_height, out_width;     /* of x, of y */
    kn_long top, left;                                /* position in x of the first tile */
    kn_long tile_rows, tile_columns;                  /* per image */
    kn_long group_stride, outer_stride, inner_stride; /* of the weights */
    kn_long flipped;                                  /* the kernel is flipped */
    kn_long tiles, panels, chunk; /* tiles per block; blocks of KB output channels, and channels, per step */
    kn_long parts;                /* of the output channels, which work-items share for the same tiles */
    kn_long scratch;              /* elements, per work-item */
} kn_winograd_shape;
KN_SHARED_SIZE(kn_winograd_shape, 21 * 8);

/* --- the gradient of the weights ---------------------------------------------------------------------------------- */

/* x or dy. */
typedef struct kn_winograd_side {
    kn_long channels, blocks, height, width, top, left;
} kn_winograd_side;
KN_SHARED_SIZE(kn_winograd_side, 6 * 8);

/* Tiles are numbered image by image, row by row. A strip, the unit of the transforms, is strip_rows rows of tiles of
 * one image (the last one may have fewer). A chunk is a run of strips. */
typedef struct kn_winograd_chunk {
    kn_long tile_rows, tile_columns, strip_rows, strips_per_image, first_strip, strips, first_tile, tiles, pitch, stage;
} kn_winograd_chunk;
KN_SHARED_SIZE(kn_winograd_chunk, 10 * 8);

/* Work division of the products: rectangles of c_blocks by k_blocks. */
typedef struct kn_winograd_sharing {
    kn_long c_blocks, k_blocks, add, bias_channels, bias_strips;
} kn_winograd_sharing;
KN_SHARED_SIZE(kn_winograd_sharing, 5 * 8);
