/* vision/fold.h - the geometry of patches. */
#pragma once

#include "common/shared.h"

/* Arrays are {height, width}. */
typedef struct kn_fold_geometry {
    kn_long planes; /* N C */
    kn_int size[2], windows[2], kernel_size[2], dilation[2], padding[2], stride[2];
} kn_fold_geometry;
KN_SHARED_SIZE(kn_fold_geometry, 8 + 12 * 4);
