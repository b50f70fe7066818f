/* ops/rnn/layer.h - shared by the files of the recurrent layers' descriptors. */
#pragma once

#include <koine/operators.h>

#include "ops/rnn/rnn.h"

/* A layer's record. in_bf16: the inputs were bf16, and so are the operands of the products over all steps, whose sums
 * are f32. */
typedef struct kn_rnn_record {
    kn_rnn_args args;
    bool in_bf16;
} kn_rnn_record;

/* Of a call's parameters, or its record; cells have neither. */
static inline bool kn_rnn_reverses(const kn_op *op, const void *params)
{
    return !((const kn_rnn_kind *)op->detail)->is_single && ((const kn_rnn_args *)params)->reverse;
}
static inline bool kn_rnn_multiplies_bf16(const kn_op *op, const void *record)
{
    return !((const kn_rnn_kind *)op->detail)->is_single && ((const kn_rnn_record *)record)->in_bf16;
}

/* What forward saves. */
enum {
    KN_RNN_SAVED_X,
    KN_RNN_SAVED_WEIGHT_IH,
    KN_RNN_SAVED_WEIGHT_HH,
    KN_RNN_SAVED_WEIGHT_HR,
    KN_RNN_SAVED_BIAS_IH,
    KN_RNN_SAVED_BIAS_HH,
    KN_RNN_SAVED_H0,
    KN_RNN_SAVED_C0,
    KN_RNN_SAVED_LENGTHS, /* int64 */
    KN_RNN_SAVED_GATES,
    KN_RNN_SAVED_STATES,
    KN_RNN_SAVED_EXTRA, /* cells or news */
    KN_RNN_SAVED
};

/* weight_hr may be NULL. */
kn_rnn_sizes kn_rnn_sizes_of(const kn_rnn_kind *kind, const kn_tensor *x, const kn_tensor *weight_hh,
                             const kn_tensor *weight_hr);

kn_status kn_rnn_shape(kn_call *call);                  /* operators.c */
kn_status kn_rnn_forward(kn_call *call);                /* layer.c */
kn_status kn_rnn_backward(kn_grad_call *grad);          /* backward.c */
kn_status kn_rnn_backward_recorded(kn_grad_call *grad); /* composed.c */
kn_span_work kn_rnn_work(const kn_call *call);
kn_span_work kn_rnn_backward_work(const kn_grad_call *grad);
kn_status kn_rnn_reference(const kn_call *call); /* reference.c */
