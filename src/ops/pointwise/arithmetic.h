/* ops/pointwise/arithmetic.h - what add, sub and mul share with add_, sub_ and mul_: the gradient and the reference are
 * the same whether the result is a new tensor or the old one changed. Defined in elementwise_binary.c. */
#ifndef KN_OPS_POINTWISE_ARITHMETIC_H
#define KN_OPS_POINTWISE_ARITHMETIC_H

#include "autograd/op.h"

/* Whether these are no bool tensors: PyTorch does not subtract them, nor from them. NULL passes. */
kn_status kn_sub_check(const char *function, const kn_tensor *a, const kn_tensor *b);

kn_status kn_add_backward(kn_grad_call *grad);
kn_status kn_sub_backward(kn_grad_call *grad);
kn_status kn_add_reference(const kn_call *call);
kn_status kn_sub_reference(const kn_call *call);
kn_status kn_mul_reference(const kn_call *call);

#endif
