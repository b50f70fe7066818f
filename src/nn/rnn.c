/* nn/rnn.c - RNN, LSTM and GRU: layers in one or both directions, with dropout between them. */
#include "nn/rnn.h"

#include <koine/join.h>
#include <koine/shape.h>
#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"
#include "tensor/tensor.h"

typedef kn_tensor *(*layer_function)(kn_tensor *, kn_tensor *, kn_tensor *, const kn_rnn_params *);

typedef struct rnn {
    kn_nn_rnn_params params;
    layer_function function;
    bool is_lstm;
    kn_tensor *parameters[][KN_RNN_PARAMETERS]; /* by layer and direction */
} rnn;

static int directions_of(const rnn *self) { return self->params.bidirectional ? 2 : 1; }
static int64_t state_size(const rnn *self)
{
    return self->params.proj_size > 0 ? self->params.proj_size : self->params.hidden_size;
}

/* --- inputs ------------------------------------------------------------------------------------------------------- */

/* The inputs, with x as [steps, batch, input_size] and the states with a batch; missing ones are NULL. */
typedef struct arguments {
    kn_tensor *x, *h0, *c0, *lengths;
    bool is_batched;
} arguments;

static kn_status check_x(const kn_module *module, const kn_tensor *x)
{
    const rnn *self = module->self;
    char text[KN_DESCRIBE];

    if (x->ndim != 2 && x->ndim != 3)
        return kn_fail(KN_ERR_SHAPE, "%s: expected the input to have 2 or 3 dimensions, got %s", module->type_name,
                       kn_tensor_describe(text, sizeof text, x));
    if (x->shape[x->ndim - 1] != self->params.input_size)
        return kn_fail(KN_ERR_SHAPE, "%s: the input's last dimension must be input_size, %lld, not that of %s",
                       module->type_name, (long long)self->params.input_size, kn_tensor_describe(text, sizeof text, x));
    return KN_OK;
}

static kn_status check_state(const kn_module *module, const arguments *a, const char *name, const kn_tensor *state,
                             int64_t size)
{
    const rnn *self = module->self;
    const int64_t shape[] = {self->params.num_layers * directions_of(self), a->x->shape[1], size};
    const int64_t unbatched[] = {shape[0], size};
    char has[KN_DESCRIBE], wants[KN_DESCRIBE];

    if (!state ||
        (state->ndim == 3 && state->shape[0] == shape[0] && state->shape[1] == shape[1] && state->shape[2] == shape[2]))
        return KN_OK;
    return kn_fail(KN_ERR_SHAPE, "%s: expected %s to be %s, got %s", module->type_name, name,
                   kn_format_shape(wants, sizeof wants, a->is_batched ? 3 : 2, a->is_batched ? shape : unbatched),
                   kn_tensor_describe(has, sizeof has, state));
}

static kn_status take_inputs(arguments *a, const kn_module *module, kn_tensor *const *inputs)
{
    const rnn *self = module->self;

    KN_TRY(check_x(module, inputs[0]));
    *a = (arguments){.x = inputs[0], .h0 = inputs[1], .lengths = inputs[self->is_lstm ? 3 : 2]};
    a->c0 = self->is_lstm ? inputs[2] : NULL;
    a->is_batched = a->x->ndim == 3;
    if (!a->is_batched) {
        if (a->lengths)
            return kn_fail(KN_ERR_SHAPE, "%s: lengths are for an input with a batch", module->type_name);
        a->x = kn_unsqueeze(a->x, 1);
        a->h0 = a->h0 && a->h0->ndim == 2 ? kn_unsqueeze(a->h0, 1) : a->h0;
        a->c0 = a->c0 && a->c0->ndim == 2 ? kn_unsqueeze(a->c0, 1) : a->c0;
    } else if (self->params.batch_first) {
        a->x = kn_transpose(a->x, 0, 1);
    }
    if (!a->x || (inputs[1] && !a->h0) || (self->is_lstm && inputs[2] && !a->c0))
        return kn_error_status();
    KN_TRY(check_state(module, a, "h_0", a->h0, state_size(self)));
    return check_state(module, a, "c_0", a->c0, self->params.hidden_size);
}

/* --- layers ------------------------------------------------------------------------------------------------------- */

/* Layer and direction `index` of all; its last states go to h_n and c_n. */
static kn_tensor *apply_direction(const rnn *self, kn_tensor *x, const arguments *a, int64_t index, kn_tensor **h_n,
                                  kn_tensor **c_n)
{
    kn_tensor *const *p = self->parameters[index];
    const kn_rnn_params params = {.bias_ih = p[KN_BIAS_IH],
                                  .bias_hh = p[KN_BIAS_HH],
                                  .weight_hr = p[KN_WEIGHT_HR],
                                  .h0 = a->h0 ? kn_select(a->h0, 0, index) : NULL,
                                  .c0 = a->c0 ? kn_select(a->c0, 0, index) : NULL,
                                  .lengths = a->lengths,
                                  .reverse = index % directions_of(self) == 1,
                                  .h_n = h_n,
                                  .c_n = self->is_lstm ? c_n : NULL};
    return self->function(x, p[KN_WEIGHT_IH], p[KN_WEIGHT_HH], &params);
}

static kn_tensor *apply_layers(const kn_module *module, const arguments *a, kn_tensor **h_n, kn_tensor **c_n)
{
    const rnn *self = module->self;
    const int directions = directions_of(self);
    kn_tensor *x = a->x, *sides[2];

    for (int64_t layer = 0; layer < self->params.num_layers; layer++) {
        if (layer > 0 && self->params.dropout > 0 && module->training)
            x = kn_dropout_with(
                x,
                &(kn_dropout_params){.p = self->params.dropout, .training = true, .generator = self->params.generator});
        for (int side = 0; side < directions; side++) {
            const int64_t index = layer * directions + side;
            sides[side] = apply_direction(self, x, a, index, &h_n[index], &c_n[index]);
        }
        x = directions == 2 ? kn_cat(sides, 2, 2) : sides[0];
    }
    return x;
}

/* The result as the caller's input was. */
static kn_tensor *shaped(const rnn *self, const arguments *a, kn_tensor *output)
{
    return !a->is_batched ? kn_squeeze(output, 1) : self->params.batch_first ? kn_transpose(output, 0, 1) : output;
}

static kn_tensor *joined(const arguments *a, kn_tensor **states, int count)
{
    kn_tensor *all = kn_stack(states, count, 0);
    return a->is_batched ? all : kn_squeeze(all, 1);
}

static kn_status forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const rnn *self = module->self;
    const int count = (int)self->params.num_layers * directions_of(self);
    arguments a;

    KN_TRY(take_inputs(&a, module, inputs));
    kn_tensor **states = kn_calloc((size_t)count * 2, sizeof *states);
    if (!states)
        return KN_ERR_MEMORY;
    outputs[0] = shaped(self, &a, apply_layers(module, &a, states, states + count));
    if (outputs[0]) {
        outputs[1] = joined(&a, states, count);
        if (self->is_lstm)
            outputs[2] = joined(&a, states + count, count);
    }
    kn_free(states);
    return KN_OK;
}

/* --- construction ------------------------------------------------------------------------------------------------- */

static void describe(kn_module *module, kn_text *text)
{
    const kn_nn_rnn_params *p = &((const rnn *)module->self)->params;

    kn_text_format(text, "%lld, %lld", (long long)p->input_size, (long long)p->hidden_size);
    if (p->proj_size > 0)
        kn_text_format(text, ", proj_size=%lld", (long long)p->proj_size);
    if (p->num_layers != 1)
        kn_text_format(text, ", num_layers=%lld", (long long)p->num_layers);
    kn_text_format(text, "%s%s", p->bias ? "" : ", bias=False", p->batch_first ? ", batch_first=True" : "");
    if (p->dropout != 0)
        kn_text_format(text, ", dropout=%g", p->dropout);
    kn_text_append(text, p->bidirectional ? ", bidirectional=True" : "");
}

enum { MOST_LAYERS = 1000000 };

static kn_status check(const char *name, const kn_nn_rnn_params *p, bool is_lstm, bool is_rnn)
{
    KN_TRY(kn_rnn_check_sizes(name, p->input_size, p->hidden_size));
    if (p->num_layers < 1 || p->num_layers > MOST_LAYERS)
        return kn_fail(KN_ERR_ARGUMENT, "%s: num_layers (%lld) must be at least 1", name, (long long)p->num_layers);
    if (!(p->dropout >= 0 && p->dropout <= 1))
        return kn_fail(KN_ERR_ARGUMENT, "%s: dropout must be a probability from 0 to 1, not %g", name, p->dropout);
    if (p->proj_size != 0 && !is_lstm)
        return kn_fail(KN_ERR_ARGUMENT, "%s: only LSTM has proj_size", name);
    if (p->proj_size < 0 || p->proj_size >= p->hidden_size)
        return kn_fail(KN_ERR_ARGUMENT, "%s: proj_size (%lld) must be from 1 to hidden_size - 1, or 0 for none", name,
                       (long long)p->proj_size);
    if (p->nonlinearity != KN_RNN_NONLINEARITY_TANH && !is_rnn)
        return kn_fail(KN_ERR_ARGUMENT, "%s: only RNN has a nonlinearity", name);
    return kn_rnn_check_nonlinearity(name, p->nonlinearity);
}

static kn_status add_parameters(kn_module *module, int gates)
{
    rnn *self = module->self;
    const int directions = directions_of(self);

    for (int64_t i = 0; i < self->params.num_layers * directions; i++) {
        const int64_t layer = i / directions;
        const kn_rnn_dimensions size = {.input = layer == 0 ? self->params.input_size : directions * state_size(self),
                                        .hidden = self->params.hidden_size,
                                        .proj = self->params.proj_size,
                                        .gates = gates,
                                        .bias = self->params.bias};
        char suffix[32];
        snprintf(suffix, sizeof suffix, "_l%lld%s", (long long)layer, i % directions == 1 ? "_reverse" : "");
        KN_TRY(kn_rnn_register(module, self->parameters[i], size, suffix));
    }
    return KN_OK;
}

static kn_module *make(const char *name, int gates, layer_function function, const kn_nn_rnn_params *params)
{
    const bool is_lstm = gates == 4;
    const kn_module_kind kind = {
        .forward_many = forward,
        .signature = {.inputs = is_lstm ? 4 : 3, .optional = is_lstm ? 3 : 2, .outputs = is_lstm ? 3 : 2},
        .describe = describe,
        .is_layer = true};
    params = params ? params : &(kn_nn_rnn_params){KN_NN_RNN_DEFAULTS};
    if (check(name, params, is_lstm, gates == 1) != KN_OK)
        return kn_error_make_sticky();
    const size_t sides = (size_t)params->num_layers * (params->bidirectional ? 2 : 1);
    const size_t size = sizeof(rnn) + sides * sizeof(kn_tensor *[KN_RNN_PARAMETERS]);
    rnn *self = kn_calloc(1, size);
    if (!self)
        return kn_error_make_sticky();
    self->params = *params;
    self->function = function;
    self->is_lstm = is_lstm;
    kn_module *module = kn_layer_new_kind(name, &kind, self, size);
    kn_free(self);
    if (!module)
        return NULL;
    return add_parameters(module, gates) == KN_OK ? module : kn_layer_failed(module);
}

kn_nn_rnn_params kn_nn_rnn_params_init(void) { return (kn_nn_rnn_params){KN_NN_RNN_DEFAULTS}; }

kn_module *kn_nn_rnn_with(const kn_nn_rnn_params *params)
{
    const bool is_relu = params && params->nonlinearity == KN_RNN_NONLINEARITY_RELU;
    return make("RNN", 1, is_relu ? kn_rnn_relu_with : kn_rnn_tanh_with, params);
}

kn_module *kn_nn_gru_with(const kn_nn_rnn_params *params) { return make("GRU", 3, kn_gru_with, params); }
kn_module *kn_nn_lstm_with(const kn_nn_rnn_params *params) { return make("LSTM", 4, kn_lstm_with, params); }
