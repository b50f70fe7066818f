/* conv/gpu/winograd.h - Winograd's convolution on GPUs (conv/gpu/winograd.cl). */
#pragma once

#include "common/divisor.h"
#include "common/shared.h"

/* The image that tiles are read from or written to. */
typedef struct kn_winograd_image {
    kn_long plane;                   /* height * width */
    kn_int height, width, top, left; /* top, left: start of the first tile or its window */
    kn_uint channels, tiles, places; /* tiles: of all images; places: of all shares, zeros from `tiles` on */
    kn_divisor share, columns, rows; /* width of a share; tiles per row, rows per image */
} kn_winograd_image;
KN_SHARED_SIZE(kn_winograd_image, 8 + 7 * 4 + 3 * 12);
