/* rows_rnn.c - recurrent layers and their cells. All results are joined, so that gradients reach the last states too.
 */
#include <string.h>

#include "ops/rows.h"

typedef kn_tensor *(*layer)(kn_tensor *, kn_tensor *, kn_tensor *, const kn_rnn_params *);

typedef struct layer_case {
    layer function;
    bool is_lstm, reverse, has_biases, has_states, has_lengths, projects;
} layer_case;

static kn_tensor *flat(kn_tensor *x) { return kn_flatten(x, 0, -1); }

/* Inputs: x [steps, batch, input], weight_ih, weight_hh, then what the case has: the lengths or weight_hr, the biases
 * [2, gates * hidden] or the states [2, batch, hidden]. */
static kn_tensor *build_layer(kn_tensor *const *x, const void *params)
{
    const layer_case *c = params;
    kn_tensor *h_n = NULL, *c_n = NULL;
    kn_rnn_params p = {KN_RNN_DEFAULTS};
    int at = 3;
    p.reverse = c->reverse;
    p.h_n = &h_n;
    p.c_n = c->is_lstm ? &c_n : NULL;
    if (c->has_lengths)
        p.lengths = x[at++];
    if (c->projects)
        p.weight_hr = x[at++];
    if (c->has_biases) {
        p.bias_ih = kn_select(x[at], 0, 0);
        p.bias_hh = kn_select(x[at++], 0, 1);
    }
    if (c->has_states) {
        p.h0 = kn_select(x[at], 0, 0);
        p.c0 = c->is_lstm ? kn_select(x[at], 0, 1) : NULL;
    }
    kn_tensor *all[] = {flat(c->function(x[0], x[1], x[2], &p)), flat(h_n), c->is_lstm ? flat(c_n) : NULL};
    return kn_cat(all, c->is_lstm ? 3 : 2, 0);
}

/* Inputs: x, weight_ih, weight_hh, biases [2, gates * hidden], states [2, batch, hidden]. */
static kn_tensor *build_cell(kn_tensor *const *x, const void *params)
{
    kn_tensor *c, *b_ih = x[3] ? kn_select(x[3], 0, 0) : NULL, *b_hh = x[3] ? kn_select(x[3], 0, 1) : NULL;
    kn_tensor *h = x[4] ? kn_select(x[4], 0, 0) : NULL;
    const char *cell = params;
    if (strcmp(cell, "lstm") == 0) {
        h = kn_lstm_cell(x[0], h, x[4] ? kn_select(x[4], 0, 1) : NULL, x[1], x[2], b_ih, b_hh, &c);
        return kn_cat((kn_tensor *[]){h, c}, 2, 1);
    }
    return (strcmp(cell, "gru") == 0    ? kn_gru_cell
            : strcmp(cell, "tanh") == 0 ? kn_rnn_tanh_cell
                                        : kn_rnn_relu_cell)(x[0], h, x[1], x[2], b_ih, b_hh);
}

/* clang-format off */
#define LSTM(...) &(const layer_case){.function = kn_lstm_with, .is_lstm = true, __VA_ARGS__}
#define GRU(...) &(const layer_case){.function = kn_gru_with, __VA_ARGS__}
#define TANH(...) &(const layer_case){.function = kn_rnn_tanh_with, __VA_ARGS__}
#define RELU(...) &(const layer_case){.function = kn_rnn_relu_with, __VA_ARGS__}
#define ALL .has_biases = true, .has_states = true
/* x, weight_ih and weight_hh of a layer */
#define SIZES(t, b, i, h, gates) FLOATS(t, b, i), FLOATS(gates * h, i), FLOATS(gates * h, h)
#define CELL(name, cell, b, i, h, gates) \
    {name "_cell/all", build_cell, {FLOATS(b, i), FLOATS(gates * h, i), FLOATS(gates * h, h), FLOATS(2, gates * h), FLOATS(2, b, h)}, cell}, \
    {name "_cell/plain", build_cell, {FLOATS(b, i), FLOATS(gates * h, i), FLOATS(gates * h, h)}, cell, .full = true}
#define LAYER(name, make, gates) \
    {name "/all", build_layer, {SIZES(3, 2, 4, 5, gates), FLOATS(2, gates * 5), FLOATS(2, 2, 5)}, make(ALL), 20, .tables = "rnn"}, \
    {name "/lengths", build_layer, {SIZES(4, 3, 2, 3, gates), INDICES(5, 3), FLOATS(2, 3, 3)}, make(.has_lengths = true, .has_states = true), 20, .tables = "rnn"}, \
    {name "/reverse_lengths", build_layer, {SIZES(4, 3, 2, 3, gates), INDICES(5, 3), FLOATS(2, 3, 3)}, make(.has_lengths = true, .has_states = true, .reverse = true), 20, .tables = "rnn", .full = true}, \
    {name "/reverse", build_layer, {SIZES(3, 2, 4, 5, gates), FLOATS(2, gates * 5), FLOATS(2, 2, 5)}, make(ALL, .reverse = true), 20, .full = true}, \
    {name "/plain", build_layer, {SIZES(3, 2, 4, 5, gates)}, make(.reverse = false), 20, .full = true}, \
    {name "/panels", build_layer, {SIZES(2, 13, 3, 37, gates), FLOATS(2, gates * 37), FLOATS(2, 13, 37)}, make(ALL), 100, .tables = "rnn"}, \
    {name "/one", build_layer, {SIZES(1, 1, 1, 1, gates)}, make(.reverse = false), 4, .full = true}, \
    {name "/layouts", build_layer, {SIZES(3, 2, 4, 5, gates), FLOATS(2, gates * 5), FLOATS(2, 2, 5)}, make(ALL), 20, .layouts = true, .full = true}, \
    {name "/empty_batch", build_layer, {SIZES(3, 0, 4, 5, gates)}, make(.reverse = false), 20}

OP_ROWS_BEGIN
static const op_row rows[] = {
    LAYER("lstm", LSTM, 4),
    LAYER("gru", GRU, 3),
    LAYER("rnn_tanh", TANH, 1),
    LAYER("rnn_relu", RELU, 1),
    {"lstm/projected", build_layer, {FLOATS(4, 3, 2), FLOATS(20, 2), FLOATS(20, 3), FLOATS(3, 5), FLOATS(2, 20)}, LSTM(.projects = true, .has_biases = true), 30, .tables = "rnn"},
    {"lstm/projected_lengths", build_layer, {FLOATS(4, 3, 2), FLOATS(20, 2), FLOATS(20, 3), INDICES(5, 3), FLOATS(3, 5)}, LSTM(.projects = true, .has_lengths = true, .reverse = true), 30},
    CELL("lstm", "lstm", 3, 4, 5, 4),
    CELL("gru", "gru", 3, 4, 5, 3),
    CELL("rnn_tanh", "tanh", 3, 4, 5, 1),
    CELL("rnn_relu", "relu", 3, 4, 5, 1),
};
OP_ROWS_END
/* clang-format on */

OP_TABLE(rnn_rows, rows, .has_golden = true);
