/* ops/rnn/layer.h - shared by the files of the recurrent layers' descriptors. */
#pragma once

#include "ops/rnn/rnn.h"

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
