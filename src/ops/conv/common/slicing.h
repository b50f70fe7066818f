/* ops/conv/common/slicing.h - a convolution of volumes as one of images, their slices.
 *
 * A slice of the result reads as many slices of the input as the kernel has taps along the depth. As further channels
 * of an image they are summed where channels are: with * in two dimensions,
 *
 *     y[n, k, o] = sum over c, u of x[n, c, o * stride - padding + u * dilation] * weight[k, c, u]
 *
 * is a convolution of images [N O, C U, H, W], whose weights are in place. Backward-weights reads the same images.
 * Backward-data is such a sum over k and u of slices of dy, for each residue of dx's slices modulo the stride
 * (ops/conv/common/correlation.h), with weights [K][U][C]. Images are volumes of one slice. */
#pragma once

#include "ops/conv/common/correlation.h"

#include "conv/any/slices.h"

typedef struct kn_conv_slicing {
    const kn_conv_problem *problem;
    kn_conv_problem flat;        /* the convolution of images; its x and y are still the volumes */
    kn_conv_residue_class depth; /* `rows` slices of the result per volume */
    kn_conv_slices x, y, weight; /* where the images' planes are; weight: backward-data only */
} kn_conv_slicing;

/* Number and description of a problem's slicings: backward-data has one for each residue, others one. */
int64_t kn_conv_slicings(const kn_conv_problem *problem);
kn_conv_slicing kn_conv_slice(const kn_conv_problem *problem, int64_t residue);

/* Runs all slicings; `run` is called for those that have something to sum, with weights that are in place. */
typedef kn_status kn_conv_run_slicing(kn_stream *stream, const kn_conv_slicing *slicing);
kn_status kn_conv_run_slicings(kn_stream *stream, const kn_conv_problem *problem, kn_conv_run_slicing *run);

/* Are the images in memory as the volumes are? */
bool kn_conv_slices_in_place(const kn_conv_slices *slices);

/* Copies volumes to images, and back; to a result without taps, zeros (`images` may be NULL). */
kn_status kn_conv_unfold(kn_stream *stream, const kn_conv_problem *problem, const kn_conv_slices *slices,
                         kn_conv_operand volumes, kn_buffer *images);
kn_status kn_conv_fold(kn_stream *stream, const kn_conv_problem *problem, const kn_conv_slices *slices,
                       kn_conv_operand volumes, kn_buffer *images);

/* Are the images a convolution for which the row `direct` is chosen? It reads and writes the volumes' slices where they
 * are. */
bool kn_conv_slices_run_directly(const kn_limits *limits, const kn_conv_problem *problem);
