/* ops/pool/pool.h - the geometry of pooling in one to three dimensions, from the caller's parameters to the kernel
 * argument. */
#pragma once

#include <koine/pool.h>

#include "ops/dispatch/backward.h"
#include "pool/pool.h"

/* A pooling op's `detail`. Its params are a kn_pool_params or, if adaptive, a kn_adaptive_pool_args. */
typedef struct kn_pool_kind {
    int dims;
    bool adaptive, average;
    bool indices; /* returns the indices of the maxima */
} kn_pool_kind;

static inline const kn_pool_kind *kn_pool_kind_of(const kn_op *op) { return op->detail; }

/* From the parameters and the input's shape. */
kn_status kn_pool_resolve(kn_pool_geometry *g, const kn_pool_kind *kind, const void *params, int ndim,
                          const int64_t *shape);

/* The same for an op's call and its backward pass, whose shapes were checked; volumes become images where possible. */
kn_pool_geometry kn_pool_of_call(const kn_call *call);
kn_pool_geometry kn_pool_of_gradient(const kn_grad_call *grad);

/* Shape rule: output 0 and, for ops that return them, the indices. */
kn_status kn_pool_shape(kn_call *call);

/* The plain C reference of all poolings (reference.c). */
kn_status kn_pool_reference(const kn_call *call);

/* Work: a comparison or addition per element of a window; for averages the same in backward. Windows of adaptive
 * pooling overlap by less than an element per dimension and count as covering the input once. */
kn_span_work kn_pool_work(const kn_call *call);
kn_span_work kn_pool_average_backward_work(const kn_grad_call *grad);
/* One addition at the maximum per output. */
kn_span_work kn_pool_max_backward_work(const kn_grad_call *grad);

/* For max pooling: the recorded backward pass, which calls X_with_indices_backward with indices in planes (int64, -1:
 * none); and the gradient of that operator, which selects the elements at these indices. */
kn_status kn_pool_max_backward_recorded(kn_grad_call *grad, kn_tensor *indices, const void *params);
kn_status kn_pool_max_backward_backward(kn_grad_call *grad);

/* The parameters of fractional max pooling, for an input with these last dimensions. */
kn_status kn_fractional_args(kn_fractional_pool_args *args, const kn_fractional_max_pool_params *params, int dims,
                             const int64_t *size);

#define KN_POOL_MAX_BACKWARD_OP(of)                                                                                    \
    KN_BACKWARD_OP(of), .inputs = {"grad", "x", "indices"}, .dtypes[2] = 1u << KN_I64, .outputs = {"grad_x"},          \
                        .widens_halves = true, .num_widened = 2, .backward = kn_pool_max_backward_backward,            \
                        .backward_recorded = kn_pool_max_backward_backward

/* What all poolings have in common; the arguments are of a kn_pool_kind. */
#define KN_POOL_OP(op, ...)                                                                                            \
    .name = #op, .inputs = {"x"}, .dtypes = {KN_DTYPES_FLOATING}, .widens_halves = true,                               \
    .reference = kn_pool_reference, .work = kn_pool_work, .detail = &(kn_pool_kind)                                    \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

#define KN_POOL_AVERAGE_BACKWARD_OP(of)                                                                                \
    KN_LINEAR_BACKWARD_OP(of), .inputs = {"grad", "x"}, .outputs = {"grad_x"}, .widens_halves = true

/* The rows of kn_pool_params, shared by all poolings; each rejects those that it does not support. */
#define KN_POOL_ROWS 13
extern const kn_op_param kn_pool_rows[KN_POOL_ROWS];

/* Is there no depth? */
static inline bool kn_pool_is_image(const kn_pool_geometry *g)
{
    return g->size[0] == 1 && g->out_size[0] == 1 && g->kernel_size[0] <= 1 && g->padding[0] == 0;
}

/* Are windows reduced by vectors along their lines, on CPU devices (cl/pool/runs.clh), from `least` contiguous elements
 * on? Otherwise vectors lie across the outputs, which must be many and close to one another. */
static inline bool kn_pool_has_long_lines(const kn_limits *limits, const kn_pool_geometry *g, int least)
{
    const bool joined = g->kernel_size[2] >= g->size[2] && g->dilation[1] == 1; /* the lines of a window */
    const int64_t run = joined ? (int64_t)g->kernel_size[1] * g->size[2] : g->kernel_size[2];
    return limits->is_cpu && g->dilation[2] == 1 && run >= least && (g->stride[2] > 2 || g->out_size[2] < 8);
}

/* On CPU devices images whose channels are innermost in memory, as PyTorch's channels_last has them, are pooled into
 * such images, by vectors of channels (cl/pool/channels.clh): an `arrange`, and is this such a call? */
void kn_pool_arrange(const kn_call *call, kn_tensor *output);
bool kn_pool_has_inner_channels(const kn_call *call);
/* The geometry of such a call, whose planes are images; *channels of each. */
kn_pool_geometry kn_pool_of_images(const kn_call *call, int64_t *channels);

/* Forward of an average of such a call, adaptive or not. */
kn_status kn_pool_average_channels(kn_call *call);

/* Does a contiguous input have small planes, and so many that they are pooled as the lanes of vectors
 * (cl/pool/planes.clh)? */
bool kn_pool_has_small_planes(const kn_limits *limits, const kn_pool_geometry *g);

/* The average of such, adaptive or not, or its gradient. */
kn_status kn_pool_average_planes(kn_stream *stream, const kn_op *op, const kn_pool_geometry *g, const kn_tensor *from,
                                 kn_tensor *to, bool backward);

/* A geometry as a kernel argument; must live until the launch returns. */
static inline kn_arg kn_arg_pool(const kn_pool_geometry *g) { return kn_arg_struct(g, sizeof *g); }

/* Launches a pooling kernel with the given options and arguments, and sets its sizes: on CPU devices for `count`
 * elements (kn_work_for); on others the work division is one more argument, and options are added
 * (cl/pool/windows.clh). Writes `to`: the outputs or, if `backward`, the input's gradient. */
kn_status kn_pool_launch(kn_stream *stream, const kn_launch_params *params, const kn_pool_geometry *g,
                         const kn_tensor *to, bool backward, int64_t count);

/* Body of the public functions that return the indices of the maxima. */
kn_tensor *kn_pool_with_indices(const kn_op *op, kn_tensor *x, const void *params, kn_tensor **indices);
