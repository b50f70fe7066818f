/* ops/pool/pool.h - the geometry of pooling in one to three dimensions, from the caller's parameters to the kernels'
 * argument. */
#ifndef KN_OPS_POOL_POOL_H
#define KN_OPS_POOL_POOL_H

#include <koine/functional.h>

#include "ops/dispatch/backward.h"

/* Which pooling an op is (its `detail`): how many dimensions, and whether it tells where the maxima lie. */
typedef struct kn_pool_kind {
    int dims;
    bool indices;
} kn_pool_kind;

/* As `pool` in cl/pool/pool.clh; arrays are {depth, height, width}, of images the depth is 1, of signals the height too.
 * Of adaptive pooling there is no kernel size: it is 0. */
typedef struct kn_pool_geometry {
    int64_t planes;
    int32_t size[3], out_size[3];
    int32_t kernel_size[3], stride[3], padding[3], dilation[3];
    int32_t end[3]; /* of the input with the padding behind it */
    int32_t count_include_pad;
    int64_t divisor;
} kn_pool_geometry;

/* From the parameters and the input's shape. */
kn_status kn_pool_resolve(kn_pool_geometry *g, int dims, const kn_pool_params *params, int ndim, const int64_t *shape);
kn_status kn_adaptive_pool_resolve(kn_pool_geometry *g, int dims, const kn_adaptive_pool_args *params, int ndim,
                                   const int64_t *shape);

/* The same of an op's call and of its backward pass, whose shapes were checked; volumes that can be taken for images
 * are. */
kn_pool_geometry kn_pool_of_call(const kn_call *call, bool adaptive);
kn_pool_geometry kn_pool_of_gradient(const kn_grad_call *grad, bool adaptive);

/* Shape rules: output 0 and, of ops that tell them, the indices. */
kn_status kn_pool_shape(kn_call *call);
kn_status kn_adaptive_pool_shape(kn_call *call);

/* Work: a comparison or addition per element of a window; for averages the same in backward. Windows of adaptive pooling
 * overlap by less than an element each way: they are taken to cover the input once. */
kn_work kn_pool_work(const kn_call *call);
kn_work kn_adaptive_pool_work(const kn_call *call);
kn_work kn_pool_average_backward_work(const kn_grad_call *grad);
kn_work kn_adaptive_pool_average_backward_work(const kn_grad_call *grad);
/* Adding a gradient where the maximum lay, once per output. */
kn_work kn_pool_max_backward_work(const kn_grad_call *grad);

/* Of maxima: the recorded pass, by X_with_indices_backward, from places in planes (int64, -1: none); and the gradient
 * of that operator: what lies at these places. */
kn_status kn_pool_max_backward_recorded(kn_grad_call *grad, kn_tensor *indices, const void *params);
kn_status kn_pool_max_backward_backward(kn_grad_call *grad);

#define KN_POOL_MAX_BACKWARD_OP(of)                                                                                    \
    KN_BACKWARD_OP(of), .inputs = {"grad", "x", "indices"}, .dtypes[2] = 1u << KN_I64, .outputs = {"grad_x"},          \
                        .widens_halves = true, .num_widened = 2, .backward = kn_pool_max_backward_backward,            \
                        .backward_recorded = kn_pool_max_backward_backward

/* The rows of kn_pool_params, which all poolings take; what has no meaning for one is refused. */
#define KN_POOL_ROWS 13
extern const kn_op_param kn_pool_rows[KN_POOL_ROWS];

/* A geometry as a kernel argument; must live until the launch returns. */
static inline kn_arg kn_arg_pool(const kn_pool_geometry *g) { return kn_arg_struct(g, sizeof *g); }

/* Launches a pooling kernel, whose further options and arguments are given, and sets its sizes: on CPU devices those of
 * `count` pieces of work (kn_work_for), without argument number `cut`; on the others that becomes how the work is cut,
 * and options are added (cl/pool/windows.clh). Writes `to`: the outputs or, `backward`, the input's gradient. */
kn_status kn_pool_launch(kn_stream *stream, const kn_launch_params *params, int cut, const kn_pool_geometry *g,
                         const kn_tensor *to, bool backward, int64_t count);

/* Body of the public functions of poolings that tell where the maxima lie. */
kn_tensor *kn_pool_with_indices(const kn_op *op, kn_tensor *x, const void *params, kn_tensor **indices);

#endif
