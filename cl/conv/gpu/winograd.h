/* conv/gpu/winograd.h - Winograd's convolution on GPUs (conv/gpu/winograd.cl). */
#ifndef KN_CONV_GPU_WINOGRAD_H
#define KN_CONV_GPU_WINOGRAD_H

#include "common/divisor.h"
#include "common/shared.h"

/* The image that tiles are cut from, or put together to. */
typedef struct kn_winograd_image {
    kn_long plane;                   /* height * width */
    kn_int height, width, top, left; /* where the first tile, or its window, starts */
    kn_uint channels, tiles, places; /* tiles: of all images; places: of all shares, those from `tiles` on hold zeros */
    kn_divisor share, columns, rows; /* width of a share; tiles of a row, rows of an image */
} kn_winograd_image;
KN_SHARED_SIZE(kn_winograd_image, 8 + 7 * 4 + 3 * 12);

#endif
