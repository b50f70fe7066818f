/* vision/fold.h - the geometry of patches of images or volumes. */
#pragma once

#include "common/shared.h"

/* Arrays are {depth, height, width}; images have a depth of 1. */
typedef struct kn_fold_geometry {
    kn_long planes; /* N C */
    kn_int size[3], windows[3], kernel_size[3], dilation[3], padding[3], stride[3];
} kn_fold_geometry;
KN_SHARED_SIZE(kn_fold_geometry, 8 + 18 * 4);
