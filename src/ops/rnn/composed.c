/* ops/rnn/composed.c - a recurrent layer composed of differentiable operators, step by step: its gradients have
 * gradients (create_graph). */
#include <koine/activation.h>
#include <koine/autograd.h>
#include <koine/join.h>
#include <koine/logic.h>
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/shape.h>

#include "base/memory.h"
#include "ops/rnn/layer.h"

/* The layer's inputs by meaning; NULL if there is none. */
typedef struct composition {
    const kn_rnn_kind *kind;
    bool reverse;
    int64_t steps, hidden;
    kn_tensor *in[KN_RNN_INPUTS];
} composition;

/* --- forward ------------------------------------------------------------------------------------------------------ */

static kn_tensor *gate(const composition *c, kn_tensor *gates, int index)
{
    return kn_narrow(gates, 1, index * c->hidden, c->hidden);
}

static kn_tensor *sigmoid_of_sum(const composition *c, kn_tensor *x, kn_tensor *h, int index)
{
    return kn_sigmoid(kn_add(gate(c, x, index), gate(c, h, index)));
}

/* The next state, before its projection, of the two sides of the gates; *cell becomes the next one. */
static kn_tensor *next_state(const composition *c, kn_tensor *x, kn_tensor *h, kn_tensor *state, kn_tensor **cell)
{
    if (c->kind->cell == KN_RNN_LSTM) {
        kn_tensor *g = kn_tanh(kn_add(gate(c, x, 2), gate(c, h, 2)));
        *cell = kn_add(kn_mul(sigmoid_of_sum(c, x, h, 1), *cell), kn_mul(sigmoid_of_sum(c, x, h, 0), g));
        return kn_mul(sigmoid_of_sum(c, x, h, 3), kn_tanh(*cell));
    }
    if (c->kind->cell == KN_RNN_GRU) {
        kn_tensor *r = sigmoid_of_sum(c, x, h, 0), *z = sigmoid_of_sum(c, x, h, 1);
        kn_tensor *n = kn_tanh(kn_add(gate(c, x, 2), kn_mul(r, gate(c, h, 2))));
        return kn_add(n, kn_mul(z, kn_sub(state, n)));
    }
    return (c->kind->cell == KN_RNN_TANH ? kn_tanh : kn_relu)(kn_add(x, h));
}

static kn_tensor *given_or_zeros(const composition *c, int input, kn_tensor *x, int64_t columns)
{
    return c->in[input] ? c->in[input]
                        : kn_zeros_with(2, (int64_t[]){x->shape[1], columns},
                                        &(kn_tensor_options){.dtype = x->dtype, .device = kn_device_of(x)});
}

/* One step of state and cell, at `time`. Returns its output. x: the projected input of all steps. */
static kn_tensor *step(const composition *c, kn_tensor *x, int64_t time, kn_tensor **state, kn_tensor **cell)
{
    kn_tensor *h = kn_linear(*state, c->in[KN_RNN_WEIGHT_HH], c->in[KN_RNN_BIAS_HH]), *next_cell = *cell;
    kn_tensor *next = next_state(c, kn_select(x, 0, time), h, *state, &next_cell);

    if (c->in[KN_RNN_WEIGHT_HR])
        next = kn_linear(next, c->in[KN_RNN_WEIGHT_HR], NULL);
    if (!c->in[KN_RNN_LENGTHS]) {
        *state = next;
        *cell = next_cell;
        return next;
    }
    kn_tensor *goes_on = kn_unsqueeze(kn_gt_scalar(c->in[KN_RNN_LENGTHS], (double)time), 1);
    *state = kn_where(goes_on, next, *state);
    if (*cell)
        *cell = kn_where(goes_on, next_cell, *cell);
    return kn_mul(next, kn_to_dtype(goes_on, x->dtype));
}

/* The operator's results. */
static kn_status compose(const composition *c, kn_tensor **results)
{
    const bool is_lstm = c->kind->cell == KN_RNN_LSTM, is_single = c->kind->is_single;
    kn_tensor *in = is_single ? kn_unsqueeze(c->in[KN_RNN_X], 0) : c->in[KN_RNN_X], **outputs;
    kn_tensor *x = kn_linear(in, c->in[KN_RNN_WEIGHT_IH], c->in[KN_RNN_BIAS_IH]);

    if (!x)
        return kn_error_status();
    kn_tensor *state = given_or_zeros(c, KN_RNN_H0, x, c->in[KN_RNN_WEIGHT_HH]->shape[1]);
    kn_tensor *cell = is_lstm ? given_or_zeros(c, KN_RNN_C0, x, c->hidden) : NULL;
    outputs = kn_calloc((size_t)c->steps, sizeof *outputs);
    if (!outputs)
        return KN_ERR_MEMORY;
    for (int64_t i = 0; i < c->steps; i++) {
        const int64_t time = c->reverse ? c->steps - 1 - i : i;
        outputs[time] = step(c, x, time, &state, &cell);
    }
    results[0] = is_single ? state : kn_stack(outputs, (int)c->steps, 0);
    results[is_single ? 0 : 1] = state;
    if (is_lstm)
        results[is_single ? 1 : 2] = cell;
    kn_free(outputs);
    return results[0] ? KN_OK : kn_error_status();
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

static const struct {
    int input, slot;
} saved_inputs[] = {{KN_RNN_X, KN_RNN_SAVED_X},
                    {KN_RNN_WEIGHT_IH, KN_RNN_SAVED_WEIGHT_IH},
                    {KN_RNN_WEIGHT_HH, KN_RNN_SAVED_WEIGHT_HH},
                    {KN_RNN_BIAS_IH, KN_RNN_SAVED_BIAS_IH},
                    {KN_RNN_BIAS_HH, KN_RNN_SAVED_BIAS_HH},
                    {KN_RNN_H0, KN_RNN_SAVED_H0},
                    {KN_RNN_C0, KN_RNN_SAVED_C0},
                    {KN_RNN_WEIGHT_HR, KN_RNN_SAVED_WEIGHT_HR},
                    {KN_RNN_LENGTHS, KN_RNN_SAVED_LENGTHS}};

/* The inputs through a view each, whose nodes end the inner pass: a gradient is that of this use of the input alone,
 * even if the same tensor is another input, too, or others were computed from it. Returns how many are wanted. */
static int take_inputs(composition *c, const kn_grad_call *grad, kn_tensor **wanted, int *places)
{
    int count = 0;

    for (size_t i = 0; i < sizeof saved_inputs / sizeof *saved_inputs; i++) {
        const int place = kn_rnn_place(c->kind, saved_inputs[i].input);
        if (place < 0 || place >= grad->num_inputs || !grad->saved[saved_inputs[i].slot])
            continue;
        kn_tensor *view = kn_unsqueeze(kn_grad_saved_input(grad, saved_inputs[i].slot, place), 0);
        c->in[saved_inputs[i].input] = kn_squeeze(view, 0);
        if (grad->needs[place]) {
            places[count] = place;
            wanted[count++] = view;
        }
    }
    return count;
}

kn_status kn_rnn_backward_recorded(kn_grad_call *grad)
{
    const kn_rnn_kind *kind = grad->op->detail;
    const kn_tensor *gates = grad->saved[KN_RNN_SAVED_GATES];
    composition c = {.kind = kind,
                     .reverse = kn_rnn_reverses(grad->op, grad->params),
                     .steps = gates->shape[0],
                     .hidden = gates->shape[2] / kn_rnn_gates(kind->cell)};
    kn_tensor *results[3] = {NULL}, *wanted[KN_RNN_INPUTS], *gradients[KN_RNN_INPUTS] = {NULL}, *outputs[3], *given[3];
    int places[KN_RNN_INPUTS], used = 0;
    const int count = take_inputs(&c, grad, wanted, places);

    KN_TRY(compose(&c, results));
    for (int i = 0; i < grad->num_outputs; i++)
        if (grad->grad_outputs[i]) {
            outputs[used] = results[i];
            given[used++] = grad->grad_outputs[i];
        }
    KN_TRY(kn_autograd_grad(outputs, used, wanted, count, gradients, .grad_outputs = given, .create_graph = true,
                            .allow_unused = true));
    for (int i = 0; i < count; i++)
        if (gradients[i] && !(grad->grad_inputs[places[i]] = kn_squeeze(gradients[i], 0)))
            return kn_error_status();
    return KN_OK;
}
