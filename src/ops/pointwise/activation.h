/* ops/pointwise/activation.h - fused activations (kn_activation) outside the kernels: names and gradients. Their
 * formulas are in ops/pointwise/epilogue.h. Defined in bounds.c. */
#pragma once

#include "autograd/op.h"
#include "ops/pointwise/epilogue.h"

/* The names of kn_activation, for rows of parameters; NULL-terminated. */
extern const char *const kn_activation_names[];

/* dL/dz of y = activation(z), from the gradient of the call's output and y: computed in one pass and used by both
 * gradients of a product or convolution. Scope-owned; the output's gradient itself without an activation; NULL on
 * failure. */
kn_tensor *kn_activation_gradient(const kn_grad_call *grad, kn_activation activation, kn_tensor *y);

/* The same with recorded operations, from the gradient of y. */
kn_tensor *kn_activation_gradient_recorded(kn_tensor *gradient, kn_activation activation, kn_tensor *y);
