/* tensor/transpose.h - copies between layouts whose dense dimensions differ (tensor/transpose.cl). */
#pragma once

#include "common/divisor.h"
#include "common/shared.h"

/* The dimensions that are dense on neither side; strides in elements. */
typedef struct kn_transpose_outer {
    kn_long shape[KN_MAX_DIMS], source[KN_MAX_DIMS], destination[KN_MAX_DIMS];
    kn_int ndim, unused;
} kn_transpose_outer;
KN_SHARED_SIZE(kn_transpose_outer, 3 * KN_MAX_DIMS * 8 + 2 * 4);

/* Tiles are numbered along p first; the dimensions that are dense on neither side from the innermost on. */
typedef struct kn_transpose_tiles {
    kn_long step_s, step_d;
    kn_long source[KN_MAX_DIMS], destination[KN_MAX_DIMS];
    kn_divisor shape[KN_MAX_DIMS], along_p, along_q;
    kn_int ps, qs, ndim, unused;
} kn_transpose_tiles;
KN_SHARED_SIZE(kn_transpose_tiles, (2 + 2 * KN_MAX_DIMS) * 8 + (KN_MAX_DIMS + 2) * 12 + 4 * 4);
