/* vision/resize.h - resizing along one dimension: which elements make an element of the result, with which weights. */
#pragma once

#include "common/shared.h"

enum {
    KN_RESIZE_NEAREST,
    KN_RESIZE_NEAREST_EXACT,
    KN_RESIZE_LINEAR,
    KN_RESIZE_CUBIC,
    KN_RESIZE_LINEAR_SMOOTH, /* antialiased: the filter is as wide as the step, if that is longer than 1 */
    KN_RESIZE_CUBIC_SMOOTH
};

/* `outer` times [size, inner] becomes [out_size, inner], or back if `transposed`. The table has an entry per element
 * that is made: the first element read, their number, at most `most`, and as many weights. */
typedef struct kn_resize_axis {
    kn_long outer, inner;
    kn_int size, out_size, most, kind, align_corners, transposed;
} kn_resize_axis;
KN_SHARED_SIZE(kn_resize_axis, 2 * 8 + 6 * 4);
