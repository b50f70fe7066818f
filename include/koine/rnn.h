/* koine/rnn.h - recurrent layers as functions: one layer, in one direction, and one step of it. koine/nn/rnn.h has
 * modules of several layers, in both directions. Tensor expressions (koine/tensor.h) of floating dtypes; float16 and
 * bfloat16 are computed in float32.
 *
 * The gates of a cell, each a row of `hidden` elements of weight_ih x + bias_ih + weight_hh h + bias_hh, in the order
 * of PyTorch (s is the sigmoid):
 *
 *     rnn    1     h' = tanh(...) or relu(...)
 *     gru    r z n    h' = (1 - z) n + z h with r, z = s(...) and
 *                     n = tanh(weight_in x + bias_in + r (weight_hn h + bias_hn))
 *     lstm   i f g o  c' = f c + i g, h' = o tanh(c') with i, f, o = s(...), g = tanh(...) */
#ifndef KOINE_RNN_H
#define KOINE_RNN_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

typedef struct kn_rnn_params {
    kn_tensor *bias_ih, *bias_hh; /* [gates * hidden]; default NULL: none */
    kn_tensor *h0;                /* the initial state, [batch, hidden]; default NULL: zeros */
    /* [batch], int64 or int32, on x's device, from 0 to the number of steps: the length of each sequence, in any order;
     * default NULL: all steps. As with PyTorch's packed sequences, the last state is that of a sequence's last step,
     * the reverse direction begins there, and the output is 0 past it. A length out of range is reported when the
     * device is synchronised or read. */
    kn_tensor *lengths;
    bool reverse; /* default false; true: from the last step to the first, with the output in the order of x */
    /* Of an lstm: the initial cell, [batch, hidden], default NULL: zeros; and the projection of the state to another
     * size, proj_size (Sak et al., 2014), [proj_size, hidden], default NULL: none. The state and weight_hh's rows then
     * have proj_size elements. */
    kn_tensor *c0, *weight_hr;
    kn_tensor **h_n,
        **c_n; /* receive the last state and, of an lstm, the last cell; owned as the result is. Default NULL */
} kn_rnn_params;
#define KN_RNN_DEFAULTS .reverse = false
KN_API kn_rnn_params kn_rnn_params_init(void);

/* The states of all steps, [steps, batch, hidden], for x [steps, batch, input], weight_ih [gates * hidden, input] and
 * weight_hh [gates * hidden, hidden]. NULL params: the defaults. */
KN_API kn_tensor *kn_rnn_tanh_with(kn_tensor *x, kn_tensor *weight_ih, kn_tensor *weight_hh,
                                   const kn_rnn_params *params);
KN_API kn_tensor *kn_rnn_relu_with(kn_tensor *x, kn_tensor *weight_ih, kn_tensor *weight_hh,
                                   const kn_rnn_params *params);
KN_API kn_tensor *kn_gru_with(kn_tensor *x, kn_tensor *weight_ih, kn_tensor *weight_hh, const kn_rnn_params *params);
KN_API kn_tensor *kn_lstm_with(kn_tensor *x, kn_tensor *weight_ih, kn_tensor *weight_hh, const kn_rnn_params *params);
#define KN_RNN_PARAMS(...)                                                                                             \
    &(kn_rnn_params) { KN_RNN_DEFAULTS, __VA_ARGS__ }
#define kn_rnn_tanh(x, weight_ih, weight_hh, ...)                                                                      \
    KN_CALL(kn_rnn_tanh_with(x, weight_ih, weight_hh, KN_RNN_PARAMS(__VA_ARGS__)))
#define kn_rnn_relu(x, weight_ih, weight_hh, ...)                                                                      \
    KN_CALL(kn_rnn_relu_with(x, weight_ih, weight_hh, KN_RNN_PARAMS(__VA_ARGS__)))
#define kn_gru(x, weight_ih, weight_hh, ...) KN_CALL(kn_gru_with(x, weight_ih, weight_hh, KN_RNN_PARAMS(__VA_ARGS__)))
#define kn_lstm(x, weight_ih, weight_hh, ...) KN_CALL(kn_lstm_with(x, weight_ih, weight_hh, KN_RNN_PARAMS(__VA_ARGS__)))

/* One step: h' [batch, hidden] for x [batch, input] and h [batch, hidden]; c_next receives an lstm's c', unless NULL. h
 * and c may be NULL (zeros), as may the biases (none). */
KN_API kn_tensor *kn_rnn_tanh_cell(kn_tensor *x, kn_tensor *h, kn_tensor *weight_ih, kn_tensor *weight_hh,
                                   kn_tensor *bias_ih, kn_tensor *bias_hh);
KN_API kn_tensor *kn_rnn_relu_cell(kn_tensor *x, kn_tensor *h, kn_tensor *weight_ih, kn_tensor *weight_hh,
                                   kn_tensor *bias_ih, kn_tensor *bias_hh);
KN_API kn_tensor *kn_gru_cell(kn_tensor *x, kn_tensor *h, kn_tensor *weight_ih, kn_tensor *weight_hh,
                              kn_tensor *bias_ih, kn_tensor *bias_hh);
KN_API kn_tensor *kn_lstm_cell(kn_tensor *x, kn_tensor *h, kn_tensor *c, kn_tensor *weight_ih, kn_tensor *weight_hh,
                               kn_tensor *bias_ih, kn_tensor *bias_hh, kn_tensor **c_next);

/* Sequences [steps, ...] of different lengths as one tensor, [longest, count, ...], or with batch_first [count,
 * longest, ...], with `padding_value` past their ends. */
KN_API kn_tensor *kn_pad_sequence(kn_tensor *const *sequences, int count, bool batch_first, double padding_value);

KN_END_DECLS

#endif
