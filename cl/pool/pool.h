/* pool/pool.h - the geometry of pooling (pool/pool.clh), and its work division on GPUs (pool/windows.clh). */
#pragma once

#include "common/divisor.h"
#include "common/shared.h"

/* Arrays are {depth, height, width}; images have depth 1, signals also height 1. The kernel size of adaptive pooling is
 * 0. */
typedef struct kn_pool_geometry {
    kn_long planes;
    kn_long divisor; /* average pooling; 0: the window's size */
    kn_int size[3], out_size[3];
    kn_int kernel_size[3], stride[3], padding[3], dilation[3];
    kn_int end[3]; /* of the input including trailing padding */
    kn_int count_include_pad;
} kn_pool_geometry;
KN_SHARED_SIZE(kn_pool_geometry, 2 * 8 + 22 * 4);

/* Work-items of a launch, with `columns` per row, `blocks` of rows per slice, slices per plane; the first plane. */
typedef struct kn_pool_blocking {
    kn_long first;
    kn_divisor columns, blocks, slices;
    kn_uint items;
} kn_pool_blocking;
KN_SHARED_SIZE(kn_pool_blocking, 8 + 3 * 12 + 4);
