/* conv/cpu/planes.h - depthwise convolution on CPU devices as a correlation of planes (conv/cpu/planes.clh). */
#pragma once

#include "common/shared.h"

typedef struct kn_conv_plane_shape {
    kn_long images, read_channels, channels; /* planes of the input and of the result */
    kn_long read_rows, read_columns;         /* of an input plane in memory */
    kn_long rows, columns;                   /* of a result plane in memory */
    kn_long width;                           /* of a laid-out row */
    kn_long spread_rows, spread_columns;     /* laid-out rows (columns) per input row (column) */
    kn_long step_rows, step_columns;         /* laid-out rows (columns) per result row (column) */
    kn_long kernel_rows, kernel_columns;
    kn_long row_shift, row_distance, column_shift, column_distance; /* of taps: shift + u * distance */
    kn_long before, line;                                           /* laid-out pixels before the image; in total */
    kn_long rows_per_run, run; /* planes.cl: result rows per step, and their elements, in whole vectors */
    kn_long gradient_line;     /* planes.cl, gradients of the weights: elements of the line of dy */
} kn_conv_plane_shape;
KN_SHARED_SIZE(kn_conv_plane_shape, 23 * 8);
