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
    kn_long time, steps;           /* which of how many */
    kn_int has_bias, has_gradient; /* of the output, in the backward pass */
    kn_int has_lengths;
    kn_int has_output;  /* is the output stored besides the state? */
    kn_int keeps_gates; /* in the forward pass */
    kn_int unused;
} kn_rnn_step;
KN_SHARED_SIZE(kn_rnn_step, 4 * 8 + 6 * 4);

/* Some steps of a pass (rnn/steps.cl), whose tensors begin at time `start` and have `rows` of it. A work-item has
 * `panels_per_item` of `panels` panels and `rows_per_item` rows of the batch. */
typedef struct kn_rnn_walk {
    kn_long start, rows, reverse;
    kn_long first, end; /* steps of the pass; backward, its first one is the last in time */
    kn_long depth;      /* terms of the product's sums */
    kn_long panels, panels_per_item, rows_per_item;
} kn_rnn_walk;
KN_SHARED_SIZE(kn_rnn_walk, 9 * 8);
