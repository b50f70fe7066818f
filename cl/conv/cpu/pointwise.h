/* conv/cpu/pointwise.h - 1 x 1 convolutions on CPU devices (conv/cpu/pointwise.cl). */
#pragma once

#include "conv/cpu/gather.h"

#define KN_CONV_PACKED_TILES 32 /* of pixels, packed by a work-item */

typedef struct kn_conv_pointwise_shape {
    kn_long inner, outer;               /* input and output channels */
    kn_long inner_stride, outer_stride; /* of the weights */
    kn_long tiles, chunk;               /* tiles per block; channels per step */
    kn_long panel;                      /* elements from a packed tile of pixels to the next */
    kn_long spread;                     /* the result is x, with y's pixels spread out */
    kn_long scratch;                    /* elements, per work-item */
} kn_conv_pointwise_shape;
KN_SHARED_SIZE(kn_conv_pointwise_shape, 9 * 8);

/* The gradient of the weights: dw[r][c] = the sum over the pixels of all images of a[image][r][pixel] *
 * b[image][c][pixel], x and dy in either order. The first side's values are broadcast, read in place from MT rows, the
 * other's are packed into `u`. Shares of the pixels have sums of their own. */
typedef struct kn_conv_pointwise_product {
    kn_long images, plane, rows, columns;
    kn_long row_stride, column_stride; /* of dw; one of them is 1 */
    kn_long tiles, chunk, scratch;     /* row tiles per block; pixels per step */
    kn_long shares, share_pixels;
} kn_conv_pointwise_product;
KN_SHARED_SIZE(kn_conv_pointwise_product, 11 * 8);
