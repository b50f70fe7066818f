/* ops/conv/common/conv.h - convolution in one to three dimensions on buffers: the problem passed to implementations,
 * and its three passes.
 *
 * Cross-correlation; layout N, C, depth, height, width, contiguous. Images have depth 1, signals also height 1. With p,
 * q the output's position along each dimension and r, s the kernel's:
 *
 *     y[n, k, p, q] = bias[k] + sum over c, r, s x[n, c, p * stride - padding + r * dilation, ...] weight[k, c, r, s]
 *
 * with zero padding. With groups, output channel k reads only the input channels of its group. Transposed convolution
 * is the backward-data pass: it maps y to x (ops/conv/conv.c).
 *
 * The tables are "conv2d", "conv2d_backward_data" and "conv2d_backward_weights" (ops/dispatch/choice.h), for any number
 * of dimensions. */
#pragma once

#include <koine/conv.h>
#include <koine/pointwise.h>

#include "base/dtype.h"
#include "base/integer.h"
#include "conv/common/correlation.h"
#include "conv/common/shape.h"
#include "ops/dispatch/choice.h"
#include "ops/pointwise/epilogue.h"
#include "rt/rt.h"
#include "vision/fold.h"

typedef struct kn_conv_operand {
    kn_buffer *buffer; /* NULL: absent */
    int64_t offset;    /* elements */
} kn_conv_operand;

typedef enum kn_conv_pass { KN_CONV_FORWARD, KN_CONV_DATA, KN_CONV_WEIGHTS, KN_CONV_PASSES } kn_conv_pass;

/* Forward writes y. Backward-data reads dy in y and writes dx to x; backward-weights writes dw to weight and, unless
 * absent, db to bias. */
typedef struct kn_conv_problem {
    kn_conv_pass pass;
    kn_conv_shape shape;
    kn_conv_operand x, weight, bias, y; /* bias: absent in backward-data */
    kn_activation activation;           /* forward only: applied to the sum including bias */
    bool bf16;                          /* all four are; only if kn_conv_supports_pairs, and without db */
} kn_conv_problem;

extern const kn_implementation_table kn_conv_implementations[KN_CONV_PASSES];

/* Chooses an implementation of the problem's pass and enqueues it. */
kn_status kn_conv_run(kn_stream *stream, const kn_conv_problem *problem);

/* Does the device compute problems of this shape in bf16, faster than in f32 (cpu/pairs.c)? Of those it does, is
 * backward-data one, or is it to be computed in f32? */
bool kn_conv_supports_pairs(kn_stream *stream, const kn_conv_shape *s);
bool kn_conv_data_is_bf16(const kn_conv_shape *s);

/* The convolution of an op: number of dimensions, and whether transposed. */
typedef struct kn_conv_kind {
    int dims;
    bool transposed;
} kn_conv_kind;

/* The shape rule (ops/conv/shape.c): computes everything that the passes need from the parameters and the inputs'
 * shapes. A transposed convolution's input is y and its output x. */
kn_status kn_conv_resolve(kn_conv_shape *s, const kn_conv_kind *kind, const kn_conv_params *params, kn_dtype dtype,
                          int input_ndim, const int64_t *input, int weight_ndim, const int64_t *weight);

/* Of an op's call; and its shape rule, with the bias; and its plain C reference. */
struct kn_call;
kn_status kn_conv_resolve_call(kn_conv_shape *s, const struct kn_call *call, kn_dtype dtype);
kn_status kn_conv_shape_rule(struct kn_call *call);
kn_status kn_conv_reference(const struct kn_call *call);

/* Halves (halves.c): is the op computed in bf16? What it reads, contiguous in a dtype, and where it writes, owned; the
 * latter is delivered by a conversion if it is not what was given. The bias's gradient by the operator for sums. */
struct kn_grad_call;
struct kn_op;
struct kn_tensor;
bool kn_conv_is_bf16(const struct kn_op *op, kn_stream *stream, kn_dtype dtype, const kn_conv_shape *s);
kn_status kn_conv_operand_as(struct kn_tensor **operand, struct kn_tensor *given, kn_dtype dtype); /* NULL: KN_OK */
kn_status kn_conv_result_as(struct kn_tensor **result, struct kn_tensor *given, kn_dtype dtype);
kn_status kn_conv_deliver(struct kn_tensor *given, const struct kn_tensor *result);
kn_status kn_conv_bias_gradient_bf16(struct kn_grad_call *grad, struct kn_tensor *dy);

/* --- between the files of this op --------------------------------------------------------------------------------- */

static inline const char *kn_conv_operation(const kn_conv_problem *p)
{
    static const char *const names[] = {"conv2d", "conv2d_backward_data", "conv2d_backward_weights"}; /* the tables' */
    return names[p->pass];
}

static inline int64_t kn_conv_volume(const int64_t size[3]) { return size[0] * size[1] * size[2]; }
static inline int64_t kn_conv_taps(const kn_conv_shape *s) /* per group */
{
    return s->in_channels / s->groups * kn_conv_volume(s->kernel_size);
}
static inline int64_t kn_conv_element(const kn_conv_shape *s) { return s->f64 ? 8 : 4; } /* bytes */
static inline kn_arg kn_conv_arg(const kn_conv_shape *s, kn_conv_operand operand)
{
    return kn_arg_buffer(operand.buffer, operand.offset * kn_conv_element(s));
}

static inline kn_arg kn_conv_arg_or(kn_buffer *buffer, const kn_conv_shape *s, kn_conv_operand operand)
{
    return buffer ? kn_arg_buffer(buffer, 0) : kn_conv_arg(s, operand);
}
static inline kn_arg kn_conv_bias_arg(const kn_conv_problem *p) /* some buffer if there is no bias */
{
    return kn_conv_arg(&p->shape, p->bias.buffer ? p->bias : p->weight);
}

/* The images that a pass reads, x or dy, and those that it writes, y or dx; of backward-weights x and dy. */
typedef struct kn_conv_side {
    kn_conv_operand operand;
    int64_t channels; /* of one group */
    const int64_t *size;
} kn_conv_side;
static inline kn_conv_side kn_conv_side_of(const kn_conv_problem *p, bool y)
{
    const kn_conv_shape *s = &p->shape;
    return y ? (kn_conv_side){p->y, s->out_channels / s->groups, s->out_size}
             : (kn_conv_side){p->x, s->in_channels / s->groups, s->in_size};
}
static inline kn_conv_side kn_conv_from(const kn_conv_problem *p)
{
    return kn_conv_side_of(p, p->pass == KN_CONV_DATA);
}
static inline kn_conv_side kn_conv_to(const kn_conv_problem *p) { return kn_conv_side_of(p, p->pass != KN_CONV_DATA); }

/* Images or signals, which the implementations for images support. */
static inline bool kn_conv_is_flat(const kn_conv_shape *s)
{
    return s->in_size[0] == 1 && s->out_size[0] == 1 && s->kernel_size[0] == 1 && s->padding[0] == 0;
}

/* A 1 x 1 kernel without stride or padding, which change the size. */
static inline bool kn_conv_reads_each_pixel_once(const kn_conv_shape *s)
{
    for (int d = 0; d < 3; d++)
        if (s->kernel_size[d] != 1 || s->padding[d] != 0 || s->in_size[d] != s->out_size[d])
            return false;
    return true;
}

/* The last arguments of the forward kernels, int has_bias, T low and T high: the bounds of the activation. */
#define KN_CONV_EPILOGUE_ARGS(problem) kn_arg_i32((problem)->bias.buffer != NULL), KN_CONV_BOUND_ARGS(problem)
#define KN_CONV_BOUND_ARGS(problem)                                                                                    \
    kn_arg_f64_or_f32((problem)->shape.f64, kn_bounds_of((problem)->activation).low),                                  \
        kn_arg_f64_or_f32((problem)->shape.f64, kn_bounds_of((problem)->activation).high)

/* Rows of the tables (ops/dispatch/choice.h), with their predicates; those named _weights, from files of their own, are
 * for backward-weights. */
#define KN_CONV_ROW(id)                                                                                                \
    kn_implementation_predicate kn_conv_supports_##id, kn_conv_prefers_##id;                                           \
    kn_implementation_run kn_conv_run_##id

/* CPU devices, f32, kernels of 3 or 5 taps along rows, columns or both with stride 1; a fraction of the
 * multiplications. */
KN_CONV_ROW(winograd);
KN_CONV_ROW(winograd_weights);
/* CPU devices, vectors along the output channels; of volumes, reads the slices where they are. */
KN_CONV_ROW(direct);
KN_CONV_ROW(direct_weights);
/* CPU devices, vectors along the rows of the image; few channels or few taps. */
KN_CONV_ROW(rows);
KN_CONV_ROW(rows_weights);
/* CPU devices, one tap at a time; small images with much padding. */
KN_CONV_ROW(taps_weights);
/* CPU devices, vectors along the pixels of a band of rows; 1 x 1, few channels, few taps. Not backward-weights. */
KN_CONV_ROW(bands);
/* CPU devices, a channel's image at a time; depthwise. */
KN_CONV_ROW(planes);
/* CPU devices, a channel's image at a time in a padded grid; depthwise, stride 1, up to 5 x 5. */
KN_CONV_ROW(stencil);
/* CPU devices, vectors along the channels; depthwise, small images. */
KN_CONV_ROW(channels);
/* CPU devices, matrix products over the pixels of all images; 1 x 1. */
KN_CONV_ROW(pointwise);
/* CPU devices, strided or padded 1 x 1: copies of the pixels that are read, for the other implementations. Not
 * backward-data. */
KN_CONV_ROW(gathered);
/* CPU devices, dilated kernels with stride 1: the pixels of taps apart as images of their own, for the other
 * implementations. */
KN_CONV_ROW(dilated);
/* CPU devices, a matrix product per image or volume; 1 x 1, 64 pixels and more. Not backward-weights. */
KN_CONV_ROW(products);
/* CPU devices, the same pixel of several images; small images with much padding. Not backward-weights. */
KN_CONV_ROW(images);
/* GPUs, strips of a channel's image in registers; depthwise. */
KN_CONV_ROW(depthwise);
/* GPUs, 3 x 3 and 5 x 5 with stride 1; matrix products of transformed tiles. */
KN_CONV_ROW(winograd_gpu);
/* GPUs, implicit GEMM through local memory; the same on tensor cores, in TF32. */
KN_CONV_ROW(blocked);
KN_CONV_ROW(tensor);
/* Any device, volumes: copies of their slices as images, for the other implementations. */
KN_CONV_ROW(slices);
/* Any device, GEMM, after im2col unless the kernel is 1 x 1; `patches`: the same, backward-data of windows that do not
 * overlap, on CPU devices. */
KN_CONV_ROW(lowered);
KN_CONV_ROW(patches);
/* Any device, one sum per element; supports everything. */
kn_implementation_run kn_conv_run_reference;

/* Patches as columns (any/lowered.c): the geometry, and whether no two windows have an element in common. */
kn_fold_geometry kn_conv_patches_of(const kn_conv_shape *s, int64_t images);
bool kn_conv_windows_are_apart(const kn_conv_shape *s);

/* All passes of problems in bf16, which have no table. */
kn_implementation_run kn_conv_run_pairs;

/* Work-items for `elements` results, each computed by itself. */
size_t kn_conv_work_items(kn_stream *stream, int64_t elements);

/* db = the sum of dy over images and pixels. */
kn_status kn_conv_bias_gradient(kn_stream *stream, const kn_conv_problem *problem);

/* Adds the bias to y, `channels` channels of `pixels` each, and applies the activation (any/lowered.c): the epilogue
 * for implementations without one. */
kn_status kn_conv_finish(kn_stream *stream, const kn_conv_problem *problem, kn_conv_operand y, int64_t channels,
                         int64_t pixels);

/* Sums `shares` partial gradients, in order, to weight (`sums` NULL: already done) and, unless absent or bias_part is
 * NULL, bias_parts partial ones of groups * padded_outer channels each to bias. */
kn_status kn_conv_total_gradient(kn_stream *stream, const kn_conv_problem *problem, kn_buffer *sums, int64_t shares,
                                 kn_buffer *bias_part, int64_t bias_parts, int64_t padded_outer);

/* How to pad x (`planes` images of size[1] x size[2]) so that rows low[1] .. high[1] and columns low[2] .. high[2] can
 * be read; the result has planes 0 if no padding is needed. In both cases the kernels read padded_height x
 * padded_width, and the image starts at {top, left}. */
kn_conv_padding kn_conv_choose_padding(const kn_limits *limits, const int64_t size[3], int64_t planes,
                                       const int64_t low[3], const int64_t high[3]);
int64_t kn_conv_pad_items(const kn_conv_padding *padding);

/* Options for kernels with the device's vector width: `vectors` (KV) vectors along the channels by `rows`
 * (-D`rows_name`). */
#define KN_CONV_OPTIONS 128
const char *kn_conv_options(char *buffer, const kn_limits *limits, bool f64, int vectors, const char *rows_name,
                            int rows);
int kn_conv_vector_width(const kn_limits *limits, bool f64); /* 16, 8 or 4 of f32; half as many of f64 */
bool kn_conv_many_registers(const kn_limits *limits);        /* 32 vector registers, otherwise 16 */

/* A core's own, in bytes, from which on some choices differ (kn_limits.core_cache). */
enum { KN_CONV_LARGE_CACHE = 3 << 19 };

/* For vectors along the rows: the widest that fits a row of `columns` pixels, or 0; and whether it is wide enough to be
 * worth using. */
int kn_conv_row_vector_width(const kn_limits *limits, bool f64, int64_t columns);
bool kn_conv_row_is_wide(const kn_limits *limits, bool f64, int64_t columns);

/* Do the 32-bit offsets in the tables of taps and starts reach all of a group's image that the pass reads? */
bool kn_conv_table_fits(const kn_conv_problem *problem);
