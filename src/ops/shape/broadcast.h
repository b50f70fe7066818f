/* ops/shape/broadcast.h - NumPy broadcasting, and its counterpart for gradients. */
#pragma once

#include "autograd/op.h"

/* The shape that `a` and `b` broadcast to; KN_ERR_SHAPE names both if they do not fit. */
kn_status kn_broadcast_shapes(int *ndim, int64_t shape[KN_MAX_DIMS], const kn_tensor *a, const kn_tensor *b);

/* The shape that all of them broadcast to. */
kn_status kn_broadcast_all(int *ndim, int64_t shape[KN_MAX_DIMS], kn_tensor *const *tensors, int count);

/* `gradient` summed over the dimensions along which `shape` was broadcast; the result has shape `shape`. Scope-owned or
 * `gradient` itself; NULL in, NULL out. */
kn_tensor *kn_sum_to_shape(kn_tensor *gradient, int ndim, const int64_t *shape);

/* Passes `gradient`, in the output's shape, to input `i`: summed over broadcast dimensions and converted to the input's
 * dtype. */
kn_status kn_give_gradient(kn_grad_call *grad, int i, kn_tensor *gradient);

/* float16 and bfloat16 as float32, for a backward pass of several recorded operations, of which each would round. */
kn_tensor *kn_widened(kn_tensor *tensor);
