/* ops/pointwise/strided.h - launching elementwise kernels over broadcast, strided operands (cl/pointwise/strided.clh).
 */
#ifndef KN_OPS_POINTWISE_STRIDED_H
#define KN_OPS_POINTWISE_STRIDED_H

#include "autograd/op.h"

/* The shape that `a` and `b` broadcast to by the NumPy rule; KN_ERR_SHAPE names both when they do not fit. */
kn_status kn_broadcast_shapes(int *ndim, int64_t shape[KN_MAX_DIMS], const kn_tensor *a, const kn_tensor *b);

/* Shape rules of elementwise ops: the inputs, of one dtype, broadcast into one output of `dtype`. */
kn_status kn_broadcast_output(kn_call *call, kn_dtype dtype);

/* One elementwise kernel: output = kernel(inputs), each input broadcast to the output's shape. `dtype` is what T is
 * compiled as. */
typedef struct kn_strided_launch {
    const char *source, *kernel, *operation;
    kn_dtype dtype;
    kn_tensor *output;
    const kn_tensor *inputs[3];
    const kn_arg *parameter; /* a further kernel parameter; NULL: none */
} kn_strided_launch;
kn_status kn_launch_strided(kn_stream *stream, const kn_strided_launch *launch);

/* `value` as an argument of type T. */
kn_arg kn_arg_element(kn_dtype dtype, double value);

/* Work-items for `count` elements of cheap work: on CPU devices a few per core with long loops, elsewhere enough to
 * fill the device. Kernels loop over what is left (KN_FOR). The local size is 0 (the driver's) on CPU devices. */
typedef struct kn_work_size {
    size_t global, local;
} kn_work_size;
kn_work_size kn_work_for(const kn_limits *limits, int64_t count);

/* `gradient` summed over the dimensions that broadcasting `shape` stretched: of shape `shape` again. Scope-owned or
 * `gradient` itself; NULL in, NULL out. */
kn_tensor *kn_sum_to_shape(kn_tensor *gradient, int ndim, const int64_t *shape);

/* Hands `gradient`, of the output's shape, to input `i`: summed over what was broadcast, in
 * the input's dtype. */
kn_status kn_give_gradient(kn_grad_call *grad, int i, kn_tensor *gradient);

#endif
