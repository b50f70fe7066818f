/* ops/loss/class_loss.h - shared by cross entropy and negative log-likelihood with class indices. */
#pragma once

#include <koine/loss.h>

#include "ops/dispatch/backward.h"

typedef struct kn_class_loss_params {
    int64_t ignore_index;
    double label_smoothing;
    kn_reduction reduction;
    bool logits; /* cross entropy; false: the input is log-probabilities */
} kn_class_loss_params;

/* The functions of both descriptors. Inputs: x [N, C, ...], target [N, ...] of class indices, class weights [C] or
 * NULL. */
kn_status kn_class_loss_shape(kn_call *call);
kn_status kn_class_loss_forward(kn_call *call);
kn_status kn_class_loss_backward(kn_grad_call *grad);
kn_status kn_class_loss_backward_recorded(kn_grad_call *grad); /* ops/loss/recorded.c */
kn_status kn_class_loss_reference(const kn_call *call);
kn_span_work kn_class_loss_work(const kn_call *call);
kn_span_work kn_class_loss_backward_work(const kn_grad_call *grad);

/* The record of a call with class indices. */
void kn_class_loss_enter(kn_entry *entry, bool logits);

extern const kn_op_param kn_class_loss_rows[3];

/* The common fields of both descriptors. */
#define KN_CLASS_LOSS(op_name, enter_)                                                                                 \
    .name = op_name, .inputs = {"input", "target", "?weight"},                                                         \
    .params = KN_PARAMS(kn_class_loss_args, kn_class_loss_rows, KN_CROSS_ENTROPY_DEFAULTS), .widens_halves = true,     \
    .enter = enter_, .record_size = sizeof(kn_class_loss_params), .shape = kn_class_loss_shape,                        \
    .forward = kn_class_loss_forward, .backward = kn_class_loss_backward,                                              \
    .backward_recorded = kn_class_loss_backward_recorded, .reference = kn_class_loss_reference,                        \
    .work = kn_class_loss_work, .backward_work = kn_class_loss_backward_work

#define KN_CLASS_LOSS_BACKWARD(of)                                                                                     \
    {                                                                                                                  \
        KN_BACKWARD_OP(of), .inputs = {"grad", "input", "target", "?weight"},                                          \
                            .dtypes[2] = KN_DTYPES_INDICES | 1u << KN_U8, .outputs = {"grad_input"},                   \
                            .widens_halves = true, .composes = true, .repeats_forward = true                           \
    }

/* The body of the public functions. params NULL: the defaults. */
kn_tensor *kn_class_loss(const kn_op *op, kn_tensor *input, kn_tensor *target, const kn_cross_entropy_params *params);
