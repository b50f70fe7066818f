/* ops/loss/element_loss.h - losses of a term per element of the input, the target and optional weights, all of one
 * shape: forward, backward and reference follow from the terms. */
#pragma once

#include "ops/loss/class_loss.h"
#include "ops/pointwise/elementwise.h"
#include "ops/shape/reduce.h"

enum { KN_LOSS_INPUT, KN_LOSS_TARGET, KN_LOSS_WEIGHT, KN_LOSS_POSITIVE, KN_LOSS_INPUTS };

/* Their inputs are those given, in order, in `slopes` after the gradient g. */
typedef struct kn_element_codes {
    kn_rows_code sum;            /* of the terms, divided by p */
    kn_pointwise_code each;      /* the terms, for the reduction "none" */
    kn_pointwise_code slopes[2]; /* times p: the gradients of input and target */
} kn_element_codes;

/* The op's `detail`. */
typedef struct kn_element_loss {
    kn_element_codes *codes;          /* by whether there is a weight (2), and one of the positives (1) */
    double factor;                    /* p of the slopes is this over the divisor */
    double (*term)(const double *in); /* the reference; a missing weight is 1 */
} kn_element_loss;

kn_status kn_element_loss_shape(kn_call *call);
kn_status kn_element_loss_forward(kn_call *call);
kn_status kn_element_loss_backward(kn_grad_call *grad);
kn_status kn_element_loss_reference(const kn_call *call);

/* What the sum over n elements is divided by. */
double kn_loss_divisor(const kn_reduction_args *params, int64_t n);

extern const kn_op_param kn_reduction_rows[1];

#define KN_ELEMENT_LOSS(loss)                                                                                          \
    .params = KN_PARAMS(kn_reduction_args, kn_reduction_rows, .reduction = KN_REDUCTION_MEAN), .widens_halves = true,  \
    .composes = true, .shape = kn_element_loss_shape, .forward = kn_element_loss_forward,                              \
    .backward = kn_element_loss_backward, .reference = kn_element_loss_reference, .detail = (void *)(loss)
