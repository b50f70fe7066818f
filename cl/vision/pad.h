/* vision/pad.h - the geometry of padding. */
#pragma once

#include "common/shared.h"

enum { KN_PADS_BY_VALUE, KN_PADS_BY_MIRROR, KN_PADS_BY_EDGE, KN_PADS_BY_CIRCLE }; /* as kn_padding_mode */

/* Sizes of input and result, and the padding before; adjacent dimensions without padding are one. */
typedef struct kn_pad_geometry {
    kn_long rows;
    kn_long size[KN_MAX_DIMS], out_size[KN_MAX_DIMS], before[KN_MAX_DIMS];
    kn_int ndim, mode;
} kn_pad_geometry;
KN_SHARED_SIZE(kn_pad_geometry, 8 + 3 * KN_MAX_DIMS * 8 + 2 * 4);

/* One dimension of it: `outer` times [size, inner]. */
typedef struct kn_pad_axis {
    kn_long outer, size, out_size, before, inner;
    kn_int mode, unused;
} kn_pad_axis;
KN_SHARED_SIZE(kn_pad_axis, 5 * 8 + 2 * 4);
