/* ops/rnn/rnn.h - one layer of a recurrent network, in one direction: torch.nn.RNN, GRU and LSTM, and their cells,
 * which are layers of one step. The formulas are in cl/rnn/cells.clh.
 *
 * Of all steps at once are the input's projection, gates = x weight_ih^T + bias_ih, and in the backward pass the
 * gradients of the weights, the biases and x; a pass (below) is what is left: the steps, one after the other. */
#pragma once

#include <koine/rnn.h>

#include "autograd/op.h"
#include "ops/dispatch/choice.h"
#include "rnn/rnn.h"

/* Of an operator, its `detail`. */
typedef struct kn_rnn_kind {
    int cell;       /* KN_RNN_... */
    bool is_single; /* one step: x [batch, input], without lengths and direction */
} kn_rnn_kind;

static inline int kn_rnn_gates(int cell) { return cell == KN_RNN_LSTM ? 4 : cell == KN_RNN_GRU ? 3 : 1; }

/* The inputs by meaning; those that the operator does not have are NULL. */
enum {
    KN_RNN_X,
    KN_RNN_WEIGHT_IH,
    KN_RNN_WEIGHT_HH,
    KN_RNN_BIAS_IH,
    KN_RNN_BIAS_HH,
    KN_RNN_H0,
    KN_RNN_C0,
    KN_RNN_WEIGHT_HR,
    KN_RNN_LENGTHS,
    KN_RNN_INPUTS
};
/* The place of an input among the operator's, -1 if it has none. */
int kn_rnn_place(const kn_rnn_kind *kind, int input);

/* outputs: the size of the output and the state, `hidden` unless it is projected. */
typedef struct kn_rnn_sizes {
    int64_t steps, batch, input, hidden, outputs;
} kn_rnn_sizes;

/* The layer's steps, or some consecutive ones. All tensors are contiguous and of one floating dtype, f32 or f64
 * (lengths: i64); NULL if there is none. The states and cells have one row more than steps: the initial one is the
 * first, or in reverse the last. */
typedef struct kn_rnn_pass {
    const char *operation;
    int cell;
    bool is_backward, reverse;
    bool keeps_gates; /* forward: gates and news are for the backward pass; otherwise there are no news */
    kn_rnn_sizes size;
    int64_t start, all_steps; /* the layer's first step here, and how many it has */
    kn_tensor *weight_hh, *bias_hh, *weight_hr, *lengths;
    /* [steps, batch, gates * hidden]: the projected input; after a forward pass that keeps them, the gates' values. */
    kn_tensor *gates;
    kn_tensor *states; /* [steps + 1, batch, outputs] */
    kn_tensor *cells;  /* lstm: [steps + 1, batch, hidden] */
    kn_tensor *news;   /* gru: [steps, batch, hidden], the product for the new state */
    kn_tensor *output; /* forward: [steps, batch, outputs]; backward: its gradient, or NULL */
    kn_tensor *raw;    /* with weight_hr: [batch, hidden], the state to be projected; backward: its gradient */
    /* Backward: the gradients of the projected input and of the product with the state (but for the gru the same
     * tensor), of the projected states [steps, batch, outputs], and of the last state and cell, which become those of
     * the initial ones. */
    kn_tensor *d_gates, *d_products, *d_projected, *d_state, *d_cell;
} kn_rnn_pass;

/* Enqueues the steps, with an implementation of the table "rnn": fused on CPU devices, else with the products of
 * ops/gemm. */
kn_status kn_rnn_run(kn_stream *stream, const kn_rnn_pass *pass);
extern const kn_implementation_table kn_rnn_implementations;

/* A pass is run in parts: what only one part needs - the gates without a backward pass, their gradients in it - has
 * room for this many steps. On a CPU device it then stays in cache; a GPU needs all steps at once to be busy. */
int64_t kn_rnn_steps_at_once(const kn_tensor *like, kn_rnn_sizes size, int cell);
/* The time at which `count` steps begin that follow `done` ones of the pass. */
int64_t kn_rnn_start_of(const kn_rnn_pass *pass, int64_t done, int64_t count);
/* Runs the `count` steps from `start` on; the pass has the tensors of all steps, but those of one part. */
kn_status kn_rnn_run_part(kn_stream *stream, const kn_rnn_pass *pass, int64_t start, int64_t count);

/* Rows from `first` on of a contiguous tensor [rows, ...]; of NULL it is NULL. */
kn_status kn_rnn_rows_from(kn_tensor **view, kn_tensor *t, int64_t first, int64_t count);

/* --- between the files of these operators ------------------------------------------------------------------------- */

/* Which rows of the pass's tensors a step has. */
typedef struct kn_rnn_place_in_time {
    int64_t time;        /* of gates and output */
    int64_t state, next; /* of states and cells: before and after it */
} kn_rnn_place_in_time;
kn_rnn_place_in_time kn_rnn_step_at(const kn_rnn_pass *pass, int64_t step); /* the step-th of the pass */

/* The kernels' arguments for it. */
kn_rnn_step kn_rnn_step_of(const kn_rnn_pass *pass, int64_t time);
/* Row `row` of a tensor [rows, ...]; of `instead` if it is NULL. */
kn_arg kn_rnn_row(const kn_tensor *t, int64_t row, const kn_tensor *instead);

kn_implementation_predicate kn_rnn_supports_fused, kn_rnn_prefers_fused; /* fused.c */
kn_implementation_run kn_rnn_fused, kn_rnn_by_products;                  /* fused.c, products.c */
