/* conv/common/correlation.h - the structs of the convolution kernels for CPU devices. */
#pragma once

#include "common/shared.h"

/* Zero-padding (conv/common/padding.clh). */
typedef struct kn_conv_padding {
    kn_long height, width;               /* of the image */
    kn_long padded_height, padded_width; /* of the padded image */
    kn_long top, left;                   /* position of the image in it; negative: cropped */
    kn_long planes;                      /* images * channels; 0: nothing to pad */
    kn_long planes_per_item;
} kn_conv_padding;
KN_SHARED_SIZE(kn_conv_padding, 8 * 8);

/* The taps per group: for `inner` channels, `rows` x `columns` positions of the kernel. Tap (u, v) of a channel reads,
 * from a pixel's start in the padded image, row row_origin + u * row_distance and column column_origin + v *
 * column_distance. */
typedef struct kn_conv_tap_list {
    kn_long inner, rows, columns;
    kn_long plane, pitch; /* channel and row strides of the padded image */
    kn_long row_origin, row_distance, column_origin, column_distance;
} kn_conv_tap_list;
KN_SHARED_SIZE(kn_conv_tap_list, 9 * 8);

/* The pixels and channels. */
typedef struct kn_conv_grid {
    kn_long images, rows, columns;               /* of output pixels */
    kn_long x_image, x_group, x_row, x_column;   /* elements of x per image, group of channels, output row and column */
    kn_long y_image, y_channel, y_row, y_column; /* of y per image, channel, row and column */
    kn_long taps, outer, groups;
    kn_long tiles_per_item;
} kn_conv_grid;
KN_SHARED_SIZE(kn_conv_grid, 15 * 8);

/* The weights of the taps: (r, s) with r = row_first + u * row_step, s = column_first + v * column_step. */
typedef struct kn_conv_weight_layout {
    kn_long groups, outer;                            /* groups; output channels per group */
    kn_long group_stride, outer_stride, inner_stride; /* elements per group, output channel, input channel */
    kn_long row_first, row_step, column_first, column_step;
    kn_long kernel_columns; /* S */
} kn_conv_weight_layout;
KN_SHARED_SIZE(kn_conv_weight_layout, 10 * 8);

/* For the gradient of the weights with vectors along the rows. */
typedef struct kn_conv_gradient_layout {
    kn_long images, rows, columns;   /* of dy */
    kn_long groups, outer, taps;     /* per group: channels of dy, taps */
    kn_long x_image, x_group, x_row; /* elements of x per image, group of channels, row of dy */
    kn_long shares;                  /* of the images */
} kn_conv_gradient_layout;
KN_SHARED_SIZE(kn_conv_gradient_layout, 10 * 8);
