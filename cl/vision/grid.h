/* vision/grid.h - the geometry of sampling at the places of a grid. */
#pragma once

#include "common/shared.h"

/* `size`: of the input, {depth, height, width}, depth 1 for images; `points`: places per sample. For the input's
 * gradient each channel's volume is cut into `strips` along its first dimension, and the channels into `parts`. */
typedef struct kn_grid_geometry {
    kn_long batch, channels, points, strips, parts;
    kn_int size[3], align_corners;
} kn_grid_geometry;
KN_SHARED_SIZE(kn_grid_geometry, 5 * 8 + 4 * 4);

enum { KN_GRID_PADS_ZEROS, KN_GRID_PADS_BORDER, KN_GRID_PADS_REFLECTION }; /* as kn_grid_padding */
