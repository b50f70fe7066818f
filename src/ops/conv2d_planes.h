/* ops/conv2d_planes.h - depthwise convolution as correlation of planes, for the two ways of doing it: vectors along a
 * plane's pixels (ops/conv2d_planes.c) and along the channels (ops/conv2d_channels.c). */
#ifndef KN_OPS_CONV2D_PLANES_H
#define KN_OPS_CONV2D_PLANES_H

#include "ops/conv2d.h"

/* Mirror of plane_shape in cl/conv/planes.clh. */
typedef struct kn_conv2d_plane_shape {
    int64_t images, read_channels, channels, read_rows, read_columns, rows, columns, width, spread_rows, spread_columns,
        step_rows, step_columns, kernel_rows, kernel_columns, row_shift, row_distance, column_shift, column_distance,
        before, line, rows_per_run, run;
} kn_conv2d_plane_shape;

/* Forward and backward-weights: what is read is x, and the result (dy) every stride-th pixel. Backward-data: what is
 * read is dy, every pixel where the stride puts it. `width` is that of the image; from before on 0. */
kn_conv2d_plane_shape kn_conv2d_plane_shape_of_forward(const kn_conv2d_shape *s);
kn_conv2d_plane_shape kn_conv2d_plane_shape_of_backward(const kn_conv2d_shape *s);

/* Shares of the images where there are too few channels to go round; the results of one are the sums themselves. */
typedef struct kn_conv2d_plane_shares {
    int64_t shares, images_per_share;
    kn_buffer *sums, *bias_part; /* NULL where there is one share */
} kn_conv2d_plane_shares;

/* For backward-weights, `tasks` of which do not depend on one another: shares so that there are enough of them. Frees
 * nothing if it fails: the caller calls kn_conv2d_free_plane_shares either way. */
kn_status kn_conv2d_choose_plane_shares(kn_conv2d_plane_shares *shares, kn_stream *stream,
                                        const kn_conv2d_problem *problem, int64_t tasks);
kn_arg kn_conv2d_plane_sums(const kn_conv2d_plane_shares *shares, const kn_conv2d_problem *problem);
kn_arg kn_conv2d_plane_bias_sums(const kn_conv2d_plane_shares *shares, const kn_conv2d_problem *problem);
kn_status kn_conv2d_total_plane_shares(const kn_conv2d_plane_shares *shares, kn_stream *stream,
                                       const kn_conv2d_problem *problem);
void kn_conv2d_free_plane_shares(const kn_conv2d_plane_shares *shares);

#endif
