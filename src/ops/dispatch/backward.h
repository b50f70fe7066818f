/* ops/dispatch/backward.h - backward passes as operators: X_backward, derived from X's descriptor.
 *
 * Its first input is the gradient of X's result. The others are named after X's inputs, saved tensors (kn_op.saved), or
 * both. If X's input 0 is not among them, it has the shape and dtype of the gradient. Its outputs are the gradients of
 * X's inputs, named "grad_" plus the input's name; that of an omitted input is skipped. Its parameters are X's.
 *
 *     extern const kn_op kn_avg_pool2d_backward_op; // ahead of kn_avg_pool2d_op
 *     const kn_op kn_avg_pool2d_backward_op = {KN_BACKWARD_OP(avg_pool2d),
 *                                              .inputs = {"grad", "x"},
 *                                              .outputs = {"grad_x"}};
 *
 * If forward saves tensors that callers may not have, such as statistics, `.repeats_forward = true` computes them
 * again, unless X has them as further outputs and X_backward as optional inputs, "?mean", and all are given; `.restore`
 * makes what X saves from them.
 *
 * If it is differentiable itself, X may have KN_RECORDED_AS(avg_pool2d_backward), for second gradients. */
#pragma once

#include "ops/dispatch/invoke.h"

kn_status kn_backward_enter(kn_entry *entry);
kn_status kn_backward_shape(kn_call *call);
kn_status kn_backward_forward(kn_call *call);
kn_span_work kn_backward_work(const kn_call *call);

#define KN_BACKWARD_OP(of) KN_BACKWARD_OF(#of, &kn_##of##_op)
#define KN_BACKWARD_OF(of, op)                                                                                         \
    .name = of "_backward", .dtypes = {KN_DTYPES_FLOATING}, .backward_of = op, .skips_outputs = true,                  \
    .enter = kn_backward_enter, .shape = kn_backward_shape, .forward = kn_backward_forward, .work = kn_backward_work

/* For an X that is linear in input 0: the backward pass of X_backward with respect to its input gradient is X. */
kn_status kn_backward_of_linear(kn_grad_call *grad);

#define KN_LINEAR_BACKWARD_OP(of)                                                                                      \
    KN_BACKWARD_OP(of), .backward = kn_backward_of_linear, .backward_recorded = kn_backward_of_linear

/* X's backward_recorded: applies X_backward. `gradient` and `params` (a record of X) replace those of the call. */
kn_status kn_backward_recorded(kn_grad_call *grad);
kn_status kn_backward_recorded_with(kn_grad_call *grad, kn_tensor *gradient, const void *params);

#define KN_RECORDED_AS(operator_) .backward_operator = &kn_##operator_##_op, .backward_recorded = kn_backward_recorded
