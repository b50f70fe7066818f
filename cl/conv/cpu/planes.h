/* conv/cpu/planes.h - the correlation that every pass of a depthwise convolution on CPU devices is
 * (conv/cpu/planes.clh). */
#ifndef KN_CONV_CPU_PLANES_H
#define KN_CONV_CPU_PLANES_H

#include "common/shared.h"

typedef struct kn_conv_plane_shape {
    kn_long images, read_channels, channels; /* planes of the image read, of the result */
    kn_long read_rows, read_columns;         /* of a plane in memory */
    kn_long rows, columns;                   /* of a result plane in memory */
    kn_long width;                           /* of a row as laid out */
    kn_long spread_rows, spread_columns;     /* rows (columns) laid out per row of what is read */
    kn_long step_rows, step_columns;         /* rows (columns) laid out per row of the result */
    kn_long kernel_rows, kernel_columns;
    kn_long row_shift, row_distance, column_shift, column_distance; /* of taps: shift + u * distance */
    kn_long before, line;                                           /* pixels laid out before the image; all of them */
    kn_long rows_per_run, run; /* planes.cl: result rows summed at once, and their elements, in whole vectors */
    kn_long gradient_line;     /* planes.cl, gradients of the weights: elements of the line of dy */
} kn_conv_plane_shape;
KN_SHARED_SIZE(kn_conv_plane_shape, 23 * 8);

#endif
