/* ops/loss/class_loss.h - what cross entropy and negative log-likelihood with class indices share. */
#ifndef KN_OPS_LOSS_CLASS_LOSS_H
#define KN_OPS_LOSS_CLASS_LOSS_H

#include <koine/functional.h>

#include "autograd/op.h"

typedef struct kn_class_loss_params {
    int64_t ignore_index;
    double label_smoothing;
    kn_reduction reduction;
    bool logits; /* cross entropy; else log-probabilities are given */
} kn_class_loss_params;

/* The functions of both descriptors. Inputs: x [N, C, ...], target [N, ...] of class indices, class weights [C] or
 * NULL. */
kn_status kn_class_loss_shape(kn_call *call);
kn_status kn_class_loss_forward(kn_call *call);
kn_status kn_class_loss_backward(kn_grad_call *grad);
kn_status kn_class_loss_reference(const kn_call *call);
kn_work kn_class_loss_work(const kn_call *call);
kn_work kn_class_loss_backward_work(const kn_grad_call *grad);

/* Checks the caller's parameters; fails as tensor expressions do. */
bool kn_class_loss_check(const char *function, const kn_tensor *input, const kn_tensor *target,
                         const kn_cross_entropy_params *params);

/* Applies one of the two ops; float16 by way of float32. weight may be NULL. */
kn_tensor *kn_class_loss_apply(const kn_op *op, const kn_class_loss_params *params, kn_tensor *input, kn_tensor *target,
                               kn_tensor *weight);

#endif
