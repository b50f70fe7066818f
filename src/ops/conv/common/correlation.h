/* ops/conv/common/correlation.h - forward and backward-data as correlations of a (padded) image with a list of taps,
 * the form used by the CPU kernels.
 *
 * Forward is one correlation. Backward-data with stride 1 is the correlation of the padded dy with the flipped kernel.
 * With stride s, the rows of dx fall into s residue classes (row + padding) mod s; each reads only the taps r with r *
 * dilation in the same class, and is again a dense correlation. */
#pragma once

#include "ops/conv/common/conv.h"

typedef struct kn_conv_correlation {
    const kn_conv_problem *problem;
    kn_conv_operand x, y; /* x is read, y is written: in backward-data dy and dx */
    kn_conv_padding padding;
    kn_conv_tap_list taps;
    kn_conv_weight_layout weights;
    kn_conv_grid grid;
} kn_conv_correlation;

/* In one dimension, the rows of dx with row mod stride = residue: row = stride * i + residue reads dy's rows i + origin
 * + u * distance through the kernel's rows first + u * step, u < taps. */
typedef struct kn_conv_residue_class {
    int64_t rows, first, step, taps, origin, distance;
} kn_conv_residue_class;
kn_conv_residue_class kn_conv_choose_residue(const kn_conv_shape *s, int dimension, int64_t residue);

/* The same for any pass: the others have one class, of all rows of y, whose row i * stride + origin of x is the first
 * that row i reads. */
kn_conv_residue_class kn_conv_choose_class(const kn_conv_problem *problem, int dimension, int64_t residue);

/* Number and description of the problem's correlations: backward-data has several, others one. false for one that
 * writes nothing. All read the same padded x. The problem must outlive the description. */
int64_t kn_conv_correlations(const kn_conv_problem *problem);
bool kn_conv_describe_correlation(kn_conv_correlation *c, const kn_limits *limits, const kn_conv_problem *problem,
                                  int64_t i);

/* The same for backward-weights' sums; the caller chooses the number of shares. */
kn_conv_gradient_layout kn_conv_gradient_layout_of(const kn_conv_correlation *c);

/* The padded x; NULL if no padding is needed. */
kn_status kn_conv_alloc_padded(kn_buffer **padded, kn_stream *stream, const kn_conv_correlation *c);

/* What is prepared before the main launch: the padded x if it is needed, for all correlations of the problem, and by
 * conv_prepare, for one of them at a time, the table of taps and the weights in blocks of `block` output channels. */
typedef struct kn_conv_workspace {
    kn_buffer *padded, *packed, *table;
    int64_t weights_at, table_at; /* where the correlation's weights and table start, in elements */
} kn_conv_workspace;
kn_status kn_conv_alloc_workspace(kn_conv_workspace *w, kn_stream *stream, const kn_conv_correlation *c, int64_t block);
kn_status kn_conv_prepare(kn_stream *stream, const kn_conv_correlation *c, const kn_conv_workspace *w, int64_t block);
void kn_conv_free_workspace(kn_conv_workspace *w);

/* What a kernel sums at a time, for its options; the output channels are padded to whole blocks. */
typedef struct kn_conv_tile {
    int64_t block;
    int vector_width, channels, rows, columns;
} kn_conv_tile;

/* The ratio of all pairs of output pixel and tap to those that read inside the image. */
double kn_conv_padding_factor(const kn_conv_problem *problem);

/* Forward and backward-data of conv/cpu/images.c: the time by that of multiplying the padding, too, in full tiles. */
double kn_conv_images_time(const kn_limits *limits, const kn_conv_problem *problem);
