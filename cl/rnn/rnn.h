/* rnn/rnn.h - one step of a recurrent layer (rnn/cells.clh). */
#pragma once

#include "common/shared.h"

/* The cells: values of CELL in kernels. */
#define KN_RNN_TANH 0
#define KN_RNN_RELU 1
#define KN_RNN_GRU 2
#define KN_RNN_LSTM 3

typedef struct kn_rnn_step {
    kn_long batch, hidden;
    kn_long time, steps;                            /* which of how many */
    kn_long depth;                                  /* terms of the product's sums; 0: there is no product yet */
    kn_long panels, panels_per_item, rows_per_item; /* in tiles: how the work is divided */
    kn_int has_bias, has_gradient;                  /* of the output, in the backward pass */
    kn_int has_lengths, has_output;                 /* is the output stored besides the state? */
} kn_rnn_step;
KN_SHARED_SIZE(kn_rnn_step, 8 * 8 + 4 * 4);
