/* koine/nn/rnn.h - recurrent layers, and cells, which are one step. Constructors as in koine/module.h; the formulas are
 * in koine/rnn.h. Parameters have PyTorch's names (weight_ih_l0, bias_hh_l1_reverse, weight_hr_l0) and begin uniform in
 * +-1/sqrt(hidden_size).
 *
 *     kn_module *lstm = kn_nn_lstm(.input_size = 10, .hidden_size = 20, .num_layers = 2);
 *     kn_tensor *outputs[3];                                       // output, h_n, c_n
 *     kn_forward_many(lstm, &x, 1, outputs, 3);
 *     kn_forward_many(lstm, KN_TENSORS(x, h_0, c_0, lengths), outputs, 3);
 *
 * Inputs: x, [steps, batch, input_size], or [batch, steps, input_size] with batch_first, or without the batch;
 * optionally the initial states, h_0 [num_layers * directions, batch, hidden_size] and, of an LSTM, c_0 likewise (zeros
 * by default), with proj_size for h_0 if that is given; and optionally `lengths`, [batch], int64.
 *
 * Outputs: output, [steps, batch, directions * hidden_size] or with batch_first [batch, steps, ...], the states of the
 * last layer; h_n and, of an LSTM, c_n, the last states of all layers, shaped as h_0 and c_0.
 *
 * `lengths` takes the place of PyTorch's packed sequences: results and gradients are those of pack_padded_sequence and
 * pad_packed_sequence(total_length = steps), whatever is in x past a sequence's end, but nothing is packed. The lengths
 * may be in any order and stay on the device; a batch of other lengths is the same graph (koine/graph.h).
 * kn_pad_sequence (koine/rnn.h) makes x of single sequences. */
#ifndef KOINE_NN_RNN_H
#define KOINE_NN_RNN_H

#include <koine/common.h>
#include <koine/generator.h>
#include <koine/module.h>

KN_BEGIN_DECLS

typedef enum kn_rnn_nonlinearity { KN_RNN_NONLINEARITY_TANH, KN_RNN_NONLINEARITY_RELU } kn_rnn_nonlinearity;

typedef struct kn_nn_rnn_params {
    int64_t input_size, hidden_size;
    int64_t num_layers;               /* default 1 */
    bool bias;                        /* default true */
    bool batch_first;                 /* default false */
    double dropout;                   /* default 0; of the outputs of all layers but the last, in training mode */
    bool bidirectional;               /* default false */
    int64_t proj_size;                /* LSTM only; default 0: no projection of the state */
    kn_rnn_nonlinearity nonlinearity; /* RNN only; default tanh */
    kn_generator *generator;          /* of the dropout; default NULL: that of the device */
} kn_nn_rnn_params;
#define KN_NN_RNN_DEFAULTS .num_layers = 1, .bias = true
KN_API kn_nn_rnn_params kn_nn_rnn_params_init(void);
KN_API kn_module *kn_nn_rnn_with(const kn_nn_rnn_params *params);
KN_API kn_module *kn_nn_lstm_with(const kn_nn_rnn_params *params);
KN_API kn_module *kn_nn_gru_with(const kn_nn_rnn_params *params);
#define kn_nn_rnn(...) KN_CALL(kn_nn_rnn_with(&(kn_nn_rnn_params){KN_NN_RNN_DEFAULTS, __VA_ARGS__}))
#define kn_nn_lstm(...) KN_CALL(kn_nn_lstm_with(&(kn_nn_rnn_params){KN_NN_RNN_DEFAULTS, __VA_ARGS__}))
#define kn_nn_gru(...) KN_CALL(kn_nn_gru_with(&(kn_nn_rnn_params){KN_NN_RNN_DEFAULTS, __VA_ARGS__}))

/* Inputs: x, [batch, input_size] or [input_size], and optionally the state h, [batch, hidden_size] or [hidden_size],
 * and for an LSTMCell c, zeros by default. Output: h', and of an LSTMCell c'. */
typedef struct kn_nn_rnn_cell_params {
    int64_t input_size, hidden_size;
    bool bias;                        /* default true */
    kn_rnn_nonlinearity nonlinearity; /* RNNCell only; default tanh */
} kn_nn_rnn_cell_params;
#define KN_NN_RNN_CELL_DEFAULTS .bias = true
KN_API kn_nn_rnn_cell_params kn_nn_rnn_cell_params_init(void);
KN_API kn_module *kn_nn_rnn_cell_with(const kn_nn_rnn_cell_params *params);
KN_API kn_module *kn_nn_lstm_cell_with(const kn_nn_rnn_cell_params *params);
KN_API kn_module *kn_nn_gru_cell_with(const kn_nn_rnn_cell_params *params);
#define KN_NN_RNN_CELL_PARAMS(...)                                                                                     \
    &(kn_nn_rnn_cell_params) { KN_NN_RNN_CELL_DEFAULTS, __VA_ARGS__ }
#define kn_nn_rnn_cell(...) KN_CALL(kn_nn_rnn_cell_with(KN_NN_RNN_CELL_PARAMS(__VA_ARGS__)))
#define kn_nn_lstm_cell(...) KN_CALL(kn_nn_lstm_cell_with(KN_NN_RNN_CELL_PARAMS(__VA_ARGS__)))
#define kn_nn_gru_cell(...) KN_CALL(kn_nn_gru_cell_with(KN_NN_RNN_CELL_PARAMS(__VA_ARGS__)))

KN_END_DECLS

#endif
