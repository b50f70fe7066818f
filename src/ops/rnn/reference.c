/* ops/rnn/reference.c - recurrent layers in plain C. */
#include "ops/dispatch/reference.h"
#include "base/memory.h"
#include "ops/rnn/layer.h"

static const kn_tensor *input_of(const kn_call *call, int input)
{
    const int place = kn_rnn_place(call->op->detail, input);
    return place >= 0 && place < call->num_inputs ? call->inputs[place] : NULL;
}

static double at(const kn_tensor *t, int64_t i) { return t ? kn_reference_get(t, i) : 0; }
static double sigmoid(double a) { return 1 / (1 + exp(-a)); }

/* weight row * values + bias. */
static double affine(const kn_tensor *weight, const kn_tensor *bias, int64_t row, const double *values, int64_t count)
{
    double sum = at(bias, row);
    for (int64_t k = 0; k < count; k++)
        sum += at(weight, row * count + k) * values[k];
    return sum;
}

/* The next h and c of one unit, from the two sides of each gate. */
static void step_unit(int cell, const double *x, const double *h, double *state, double *c)
{
    if (cell == KN_RNN_LSTM) {
        *c = sigmoid(x[1] + h[1]) * *c + sigmoid(x[0] + h[0]) * tanh(x[2] + h[2]);
        *state = sigmoid(x[3] + h[3]) * tanh(*c);
    } else if (cell == KN_RNN_GRU) {
        const double r = sigmoid(x[0] + h[0]), z = sigmoid(x[1] + h[1]);
        *state = (1 - z) * tanh(x[2] + r * h[2]) + z * *state;
    } else {
        const double sum = x[0] + h[0];
        *state = cell == KN_RNN_TANH ? tanh(sum) : sum < 0 ? 0 : sum;
    }
}

/* One step of one row; `next` has room for the hidden state and its projection, `input` is x's row. */
static void step_row(const kn_call *call, kn_rnn_sizes size, const double *input, double *state, double *c,
                     double *next)
{
    const int cell = ((const kn_rnn_kind *)call->op->detail)->cell;
    const kn_tensor *projection = input_of(call, KN_RNN_WEIGHT_HR);

    for (int64_t j = 0; j < size.hidden; j++) {
        double x[4], h[4];
        for (int g = 0; g < kn_rnn_gates(cell); g++) {
            const int64_t row = g * size.hidden + j;
            x[g] = affine(call->inputs[KN_RNN_WEIGHT_IH], input_of(call, KN_RNN_BIAS_IH), row, input, size.input);
            h[g] = affine(call->inputs[KN_RNN_WEIGHT_HH], input_of(call, KN_RNN_BIAS_HH), row, state, size.outputs);
        }
        next[j] = projection ? 0 : state[j];
        step_unit(cell, x, h, &next[j], &c[j]);
    }
    for (int64_t j = 0; j < size.outputs; j++)
        state[j] = projection ? affine(projection, NULL, j, next, size.hidden) : next[j];
}

kn_status kn_rnn_reference(const kn_call *call)
{
    const kn_rnn_kind *kind = call->op->detail;
    const kn_tensor *x = call->inputs[KN_RNN_X], *lengths = input_of(call, KN_RNN_LENGTHS);
    const kn_rnn_sizes size =
        kn_rnn_sizes_of(kind, x, call->inputs[KN_RNN_WEIGHT_HH], input_of(call, KN_RNN_WEIGHT_HR));
    const bool reverse = kn_rnn_reverses(call->op, call->params);
    kn_tensor *h_n = kind->is_single ? call->outputs[0] : call->outputs[1];
    kn_tensor *c_n = kind->cell == KN_RNN_LSTM ? call->outputs[kind->is_single ? 1 : 2] : NULL;
    double *space = kn_malloc((size_t)(2 * size.hidden + size.outputs) * sizeof *space);
    double *c = space, *next = c ? c + size.hidden : NULL, *state = c ? next + size.hidden : NULL;

    if (!space)
        return KN_ERR_MEMORY;
    for (int64_t row = 0; row < size.batch; row++) {
        const int64_t length = lengths ? (int64_t)at(lengths, row) : size.steps;
        for (int64_t j = 0; j < size.outputs; j++)
            state[j] = at(input_of(call, KN_RNN_H0), row * size.outputs + j);
        for (int64_t j = 0; j < size.hidden; j++)
            c[j] = at(input_of(call, KN_RNN_C0), row * size.hidden + j);
        for (int64_t step = 0; step < length; step++) {
            const int64_t time = (reverse ? length - 1 - step : step) * size.batch + row;
            step_row(call, size, kn_reference_values(x) + time * size.input, state, c, next);
            for (int64_t j = 0; !kind->is_single && j < size.outputs; j++)
                kn_reference_set(call->outputs[0], time * size.outputs + j, state[j]);
        }
        for (int64_t j = 0; h_n && j < size.outputs; j++)
            kn_reference_set(h_n, row * size.outputs + j, state[j]);
        for (int64_t j = 0; c_n && j < size.hidden; j++)
            kn_reference_set(c_n, row * size.hidden + j, c[j]);
    }
    kn_free(space);
    return KN_OK;
}
