/* ops/conv/common/correlation.h - forward and backward-data as correlations of a (padded) image with a list of taps,
 * the form used by the CPU kernels.
 *
 * Forward is one correlation. Backward-data with stride 1 is the correlation of the padded dy with the flipped kernel.
 * With stride s, the rows of dx fall into s residue classes (row + padding) mod s; each reads only the taps r with r *
 * dilation in the same class, and is again a dense correlation. */
#pragma once

#include "ops/conv/common/conv.h"

typedef struct kn_conv_correlation {
    bool f64;
    kn_conv_operand x, weight, bias, y; /* x is read, y is written: in backward-data dy and dx */
    kn_conv_padding padding;
    kn_conv_tap_list taps;
    kn_conv_weight_layout weights;
    kn_conv_grid grid;
    kn_activation activation;
} kn_conv_correlation;

void kn_conv_describe_forward(kn_conv_correlation *c, const kn_limits *limits, const kn_conv_problem *problem);

/* In one dimension, the rows of dx with row mod stride = residue: row = stride * i + residue reads dy's rows i + origin
 * + u * distance through the kernel's rows first + u * step, u < taps. */
typedef struct kn_conv_residue_class {
    int64_t rows, first, step, taps, origin, distance;
} kn_conv_residue_class;
kn_conv_residue_class kn_conv_choose_residue(const kn_conv_shape *s, int dimension, int64_t residue);

/* Backward-data is kn_conv_residues correlations; false for one that writes nothing. All read the same padded dy. */
int64_t kn_conv_residues(const kn_conv_shape *s);
bool kn_conv_describe_residue(kn_conv_correlation *c, const kn_limits *limits, const kn_conv_problem *problem,
                              int64_t residue);

/* How to run a correlation: conv_prepare packs the weights in blocks of `block` output channels, then `launch` enqueues
 * the kernel. */
typedef struct kn_conv_workspace {
    kn_buffer *padded, *packed, *table;
} kn_conv_workspace;
typedef struct kn_conv_tile {
    int64_t block;
    int vector_width, channels, rows, columns; /* for the kernel's options */
    kn_status (*launch)(kn_stream *stream, const kn_conv_correlation *c, const kn_conv_workspace *w,
                        const struct kn_conv_tile *tile);
} kn_conv_tile;
kn_status kn_conv_correlate_forward(kn_stream *stream, const kn_conv_problem *problem, const kn_conv_tile *tile);
kn_status kn_conv_correlate_backward(kn_stream *stream, const kn_conv_problem *problem, const kn_conv_tile *tile);

/* In one dimension: the number of pairs of output row and tap that read inside the image, and of all pairs. */
void kn_conv_count_pairs(const kn_conv_shape *s, int dimension, bool backward, int64_t *inside, int64_t *all);
