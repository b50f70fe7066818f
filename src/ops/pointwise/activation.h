/* ops/pointwise/activation.h - the activations that operations apply to their own results (kn_activation), around the
 * kernels: names, gradients. What they do to a value stands in ops/pointwise/epilogue.h. Defined in bounds.c. */
#ifndef KN_OPS_POINTWISE_ACTIVATION_H
#define KN_OPS_POINTWISE_ACTIVATION_H

#include "autograd/op.h"
#include "ops/pointwise/epilogue.h"

/* The names of kn_activation, for rows of parameters; NULL ends them. */
extern const char *const kn_activation_names[];

/* dL/dz of y = activation(z), from the gradient of the call's output and from y: one pass that both gradients of a
 * product or a convolution then read. Scope-owned; the output's gradient itself without an activation; NULL on failure.
 */
kn_tensor *kn_activation_gradient(const kn_grad_call *grad, kn_activation activation, kn_tensor *y);

/* The same of recorded operations, from the gradient of y. */
kn_tensor *kn_activation_gradient_recorded(kn_tensor *gradient, kn_activation activation, kn_tensor *y);

#endif
