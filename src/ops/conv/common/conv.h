/* ops/conv/common/conv.h - convolution in one to three dimensions on buffers: the problem as the implementations see it, and
 * its three passes.
 *
 * Cross-correlation, N, C, then depth, height and width, contiguous; of images the depth is 1, of signals the height
 * too. With p, q the output's place along each dimension and r, s the kernel's:
 *
 *     y[n, k, p, q] = bias[k] + sum over c, r, s of x[n, c, p * stride - padding + r * dilation, ...] weight[k, c, r, s]
 *
 * with x taken as 0 outside. With groups, output channel k reads the input channels of its group only. Transposed
 * convolution is the pass over data: it takes y and gives x (ops/conv/conv.c).
 *
 * The tables are called "conv2d", "conv2d_backward_data" and "conv2d_backward_weights" (ops/dispatch/choice.h), whatever
 * the number of dimensions. */
#ifndef KN_OPS_CONV_COMMON_CONV_H
#define KN_OPS_CONV_COMMON_CONV_H

#include <koine/functional.h>

#include "base/integer.h"
#include "ops/dispatch/choice.h"
#include "ops/pointwise/epilogue.h"
#include "rt/rt.h"

/* Arrays are {depth, height, width}. The padding behind the data is whatever the output's size implies. */
typedef struct kn_conv_shape {
    bool f64;
    int64_t images, in_channels, in_size[3];
    int64_t out_channels, kernel_size[3], out_size[3];
    int64_t stride[3], padding[3], dilation[3];
    int64_t groups;
} kn_conv_shape;

typedef struct kn_conv_operand {
    kn_buffer *buffer; /* NULL: absent */
    int64_t offset;    /* elements */
} kn_conv_operand;

/* Forward writes y; backward-data writes x, the gradient of x, from that of y; backward-weights writes weight and,
 * unless absent, bias. */
typedef struct kn_conv_problem {
    kn_conv_shape shape;
    kn_conv_operand x, weight, bias, y;
    kn_activation activation; /* forward only: of the finished sum, bias included */
} kn_conv_problem;

extern const kn_implementation_table kn_conv_implementations, kn_conv_backward_data_implementations,
    kn_conv_backward_weights_implementations;

kn_status kn_conv_run_forward(kn_stream *stream, const kn_conv_problem *problem);
kn_status kn_conv_run_backward_data(kn_stream *stream, const kn_conv_problem *problem);
kn_status kn_conv_run_backward_weights(kn_stream *stream, const kn_conv_problem *problem);

/* Which convolution an op is: the number of its dimensions, and which way round. */
typedef struct kn_conv_kind {
    int dims;
    bool transposed;
} kn_conv_kind;

/* The shape rule (ops/conv/shape.c): all that the passes need to know, from the parameters and the inputs' shapes. A
 * transposed convolution's input is y and its output x. */
kn_status kn_conv_resolve(kn_conv_shape *s, const kn_conv_kind *kind, const kn_conv_params *params, kn_dtype dtype,
                          int input_ndim, const int64_t *input, int weight_ndim, const int64_t *weight);

/* --- between the files of this op --------------------------------------------------------------------------------- */

static inline int64_t kn_conv_volume(const int64_t size[3]) { return size[0] * size[1] * size[2]; }
static inline int64_t kn_conv_taps(const kn_conv_shape *s) /* of one group */
{
    return s->in_channels / s->groups * kn_conv_volume(s->kernel_size);
}
static inline kn_arg kn_conv_arg(const kn_conv_shape *s, kn_conv_operand operand)
{
    return kn_arg_buffer(operand.buffer, operand.offset * (s->f64 ? 8 : 4));
}

/* Of images or signals: what the implementations for images support. */
static inline bool kn_conv_is_flat(const kn_conv_shape *s)
{
    return s->in_size[0] == 1 && s->out_size[0] == 1 && s->kernel_size[0] == 1 && s->padding[0] == 0;
}

/* Two arguments of the forward kernels, T low and T high. */
#define KN_CONV_CUT_ARGS(f64, activation)                                                                              \
    kn_arg_f64_or_f32(f64, kn_bounds_of(activation).low), kn_arg_f64_or_f32(f64, kn_bounds_of(activation).high)

/* Rows of the tables, each with what it supports and prefers (ops/dispatch/choice.h); none: always. */

/* cpu/winograd.c: CPU devices, f32, 3 x 3 and 5 x 5 kernels; several times fewer multiplications. */
kn_implementation_predicate kn_conv_supports_winograd, kn_conv_prefers_winograd, kn_conv_prefers_winograd_data;
kn_status kn_conv_winograd_forward(kn_stream *stream, const void *problem);
kn_status kn_conv_winograd_backward_data(kn_stream *stream, const void *problem);

/* cpu/direct.c, cpu/weights.c: CPU devices, vectors along the output channels. */
kn_implementation_predicate kn_conv_supports_direct, kn_conv_prefers_direct;
kn_status kn_conv_direct_forward(kn_stream *stream, const void *problem);
kn_implementation_predicate kn_conv_supports_direct_data, kn_conv_prefers_direct_data;
kn_status kn_conv_direct_backward_data(kn_stream *stream, const void *problem);
kn_implementation_predicate kn_conv_supports_direct_weights, kn_conv_prefers_direct_weights;
kn_status kn_conv_direct_backward_weights(kn_stream *stream, const void *problem);

/* cpu/rows.c, cpu/weights_rows.c: CPU devices, vectors along the rows of the image; few channels or few taps. */
kn_implementation_predicate kn_conv_supports_rows, kn_conv_prefers_rows;
kn_status kn_conv_rows_forward(kn_stream *stream, const void *problem);
kn_implementation_predicate kn_conv_supports_rows_data, kn_conv_prefers_rows_data;
kn_status kn_conv_rows_backward_data(kn_stream *stream, const void *problem);
kn_implementation_predicate kn_conv_supports_rows_weights, kn_conv_prefers_rows_weights;
kn_status kn_conv_rows_backward_weights(kn_stream *stream, const void *problem);

/* cpu/bands.c: CPU devices, vectors along the pixels of a band of rows; 1 x 1, few channels, few taps. */
kn_implementation_predicate kn_conv_supports_bands, kn_conv_prefers_bands;
kn_status kn_conv_bands_forward(kn_stream *stream, const void *problem);
kn_implementation_predicate kn_conv_supports_bands_data, kn_conv_prefers_bands_data;
kn_status kn_conv_bands_backward_data(kn_stream *stream, const void *problem);

/* cpu/planes.c: CPU devices, a channel's image at a time; depthwise. */
kn_implementation_predicate kn_conv_supports_planes, kn_conv_prefers_planes;
kn_status kn_conv_planes_forward(kn_stream *stream, const void *problem);
kn_implementation_predicate kn_conv_supports_planes_data;
kn_status kn_conv_planes_backward_data(kn_stream *stream, const void *problem);
kn_status kn_conv_planes_backward_weights(kn_stream *stream, const void *problem);

/* cpu/channels.c: CPU devices, vectors along the channels; depthwise, small images. */
kn_implementation_predicate kn_conv_supports_channels, kn_conv_prefers_channels, kn_conv_prefers_channels_weights;
kn_status kn_conv_channels_forward(kn_stream *stream, const void *problem);
kn_implementation_predicate kn_conv_supports_channels_data;
kn_status kn_conv_channels_backward_data(kn_stream *stream, const void *problem);
kn_status kn_conv_channels_backward_weights(kn_stream *stream, const void *problem);

/* gpu/depthwise.c: GPUs, strips of a channel's image in registers; depthwise. */
kn_implementation_predicate kn_conv_supports_depthwise, kn_conv_supports_depthwise_weights, kn_conv_prefers_depthwise;
kn_status kn_conv_depthwise_forward(kn_stream *stream, const void *problem);
kn_status kn_conv_depthwise_backward_data(kn_stream *stream, const void *problem);
kn_status kn_conv_depthwise_backward_weights(kn_stream *stream, const void *problem);

/* cpu/pointwise.c: CPU devices, matrix products over the pixels of all images; 1 x 1. */
kn_implementation_predicate kn_conv_supports_pointwise, kn_conv_prefers_pointwise;
kn_status kn_conv_pointwise_forward(kn_stream *stream, const void *problem);
kn_implementation_predicate kn_conv_supports_pointwise_data, kn_conv_prefers_pointwise_data;
kn_status kn_conv_pointwise_backward_data(kn_stream *stream, const void *problem);
kn_implementation_predicate kn_conv_supports_pointwise_weights, kn_conv_prefers_pointwise_weights;
kn_status kn_conv_pointwise_backward_weights(kn_stream *stream, const void *problem);

/* cpu/images.c: CPU devices, the same pixel of several images; small images with much padding. */
kn_implementation_predicate kn_conv_supports_images, kn_conv_prefers_images;
kn_status kn_conv_images_forward(kn_stream *stream, const void *problem);
kn_implementation_predicate kn_conv_prefers_images_data;
kn_status kn_conv_images_backward_data(kn_stream *stream, const void *problem);

/* cpu/winograd_weights.c: CPU devices, 3 x 3 and 5 x 5 with stride 1 and many channels. */
kn_implementation_predicate kn_conv_supports_winograd_weights, kn_conv_prefers_winograd_weights;
kn_status kn_conv_winograd_backward_weights(kn_stream *stream, const void *problem);

/* gpu/winograd.c: GPUs, 3 x 3 and 5 x 5 with stride 1; matrix products of transformed tiles. */
kn_implementation_predicate kn_conv_supports_winograd_gpu, kn_conv_prefers_winograd_gpu,
    kn_conv_supports_winograd_gpu_data, kn_conv_prefers_winograd_gpu_data, kn_conv_supports_winograd_gpu_weights,
    kn_conv_prefers_winograd_gpu_weights;
kn_status kn_conv_winograd_gpu_forward(kn_stream *stream, const void *problem);
kn_status kn_conv_winograd_gpu_backward_data(kn_stream *stream, const void *problem);
kn_status kn_conv_winograd_gpu_backward_weights(kn_stream *stream, const void *problem);

/* gpu/blocked.c: GPUs; products of matrices that are never made, through local memory; the same on tensor cores, in
 * TF32. */
kn_implementation_predicate kn_conv_supports_blocked, kn_conv_supports_tensor, kn_conv_prefers_blocked;
kn_status kn_conv_blocked_forward(kn_stream *stream, const void *problem);
kn_status kn_conv_blocked_backward_data(kn_stream *stream, const void *problem);
kn_status kn_conv_blocked_backward_weights(kn_stream *stream, const void *problem);
kn_status kn_conv_tensor_forward(kn_stream *stream, const void *problem);
kn_status kn_conv_tensor_backward_data(kn_stream *stream, const void *problem);
kn_status kn_conv_tensor_backward_weights(kn_stream *stream, const void *problem);

/* any/lowered.c: matrix multiplication, after im2col where the kernel is not 1 x 1; any device. */
kn_implementation_predicate kn_conv_supports_lowered, kn_conv_prefers_lowered;
kn_status kn_conv_lowered_forward(kn_stream *stream, const void *problem);
kn_status kn_conv_lowered_backward_data(kn_stream *stream, const void *problem);
kn_status kn_conv_lowered_backward_weights(kn_stream *stream, const void *problem);

/* any/reference.c: one sum per element; any device. */
kn_status kn_conv_reference_forward(kn_stream *stream, const void *problem);
kn_status kn_conv_reference_backward_data(kn_stream *stream, const void *problem);
kn_status kn_conv_reference_backward_weights(kn_stream *stream, const void *problem);

/* db = the sum of dy over images and pixels. */
kn_status kn_conv_bias_gradient(kn_stream *stream, const kn_conv_problem *problem);

/* y, of `channels` channels of `pixels` each, plus the bias, cut off by the activation (any/lowered.c): for sums that
 * were stored without. */
kn_status kn_conv_finish(kn_stream *stream, const kn_conv_problem *problem, kn_conv_operand y, int64_t channels,
                         int64_t pixels);

/* Mirror of struct conv_shape in cl/conv/common/shape.clh, and the options for it and the shape's dtype: T, VOLUME. */
typedef struct kn_conv_kernel_shape {
    int64_t images, in_channels, depth, height, width;
    int64_t out_channels, kernel_depth, kernel_height, kernel_width, out_depth, out_height, out_width;
    int64_t stride_depth, stride_height, stride_width, front, top, left;
    int64_t dilation_depth, dilation_height, dilation_width, groups;
} kn_conv_kernel_shape;
kn_conv_kernel_shape kn_conv_describe(const kn_conv_shape *shape);
const char *kn_conv_volume_options(const kn_conv_shape *shape);

/* Mirrors of the structs in cl/conv/common/padding.clh. */
typedef struct kn_conv_padding {
    int64_t height, width, padded_height, padded_width, top, left, planes, planes_per_item;
} kn_conv_padding;
typedef struct kn_conv_tap_list {
    int64_t inner, rows, columns, plane, pitch, row_origin, row_distance, column_origin, column_distance;
} kn_conv_tap_list;

/* Mirror of conv_gradient in cl/conv/common/grid.clh. */
typedef struct kn_conv_gradient_layout {
    int64_t images, rows, columns, groups, outer, taps, x_image, x_group, x_row, x_column, pixels_per_share, shares,
        sum_outer, sum_tap;
} kn_conv_gradient_layout;

/* What backward-weights runs over; pixels_per_share and shares are the caller's to choose. */
void kn_conv_describe_gradient(const kn_conv_shape *s, const kn_limits *limits, kn_conv_padding *padding,
                               kn_conv_tap_list *taps, kn_conv_gradient_layout *layout);

/* weight = the sum, in order, of `shares` partial gradients (`sums` NULL: it is there already); bias, unless absent,
 * that of bias_parts partial ones, each of groups * padded_outer channels. */
kn_status kn_conv_total_gradient(kn_stream *stream, const kn_conv_problem *problem, kn_buffer *sums, int64_t shares,
                                 kn_buffer *bias_part, int64_t bias_parts, int64_t padded_outer);

/* gpu/sums.c: the same on GPUs, and db, of shapes that kn_conv_sums_bias_on_gpu allows. */
kn_status kn_conv_total_on_gpu(kn_stream *stream, const kn_conv_problem *problem, kn_buffer *sums, int64_t shares,
                               kn_buffer *bias_part, int64_t bias_parts, int64_t padded_outer);
bool kn_conv_sums_bias_on_gpu(const kn_limits *limits, const kn_conv_shape *s);
kn_status kn_conv_bias_on_gpu(kn_stream *stream, const kn_conv_problem *problem);

/* How x (`planes` images of size[1] x size[2]) must be padded so that rows low[1] .. high[1] and columns low[2] ..
 * high[2] can be read; planes is 0 in the result where it need not be. Either way padded_height x padded_width is what
 * the kernels then read, and {top, left} where the image starts in there. */
kn_conv_padding kn_conv_choose_padding(const kn_limits *limits, const int64_t size[3], int64_t planes,
                                       const int64_t low[3], const int64_t high[3]);
int64_t kn_conv_pad_items(const kn_conv_padding *padding);

/* The options for kernels whose vectors follow the device: `vectors` (KV) of them along the channels by `rows`
 * (-D`rows_name`). */
#define KN_CONV_OPTIONS 128
const char *kn_conv_options(char *buffer, const kn_limits *limits, bool f64, int vectors, const char *rows_name,
                            int rows);
int kn_conv_vector_width(const kn_limits *limits, bool f64); /* 16, 8 or 4 of f32; half as many of f64 */
bool kn_conv_many_registers(const kn_limits *limits);        /* 32 vector registers, else 16 */

/* For vectors along the rows: the widest that fits a row of `columns` pixels, 0 where none does; and whether it is wide
 * enough to pay. */
int kn_conv_row_vector_width(const kn_limits *limits, bool f64, int64_t columns);
bool kn_conv_row_is_wide(const kn_limits *limits, bool f64, int64_t columns);

/* Whether 32-bit offsets, as the tables of taps and starts hold them, can reach all of an image of `channels` channels.
 */
bool kn_conv_table_fits(const kn_conv_shape *s, int64_t channels);

#endif
