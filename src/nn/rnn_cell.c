/* nn/rnn_cell.c - RNNCell, LSTMCell and GRUCell, and the parameters of recurrent layers. */
#include <koine/init.h>
#include <koine/shape.h>
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "nn/rnn.h"
#include "tensor/tensor.h"

/* --- parameters --------------------------------------------------------------------------------------------------- */

kn_status kn_rnn_check_nonlinearity(const char *name, kn_rnn_nonlinearity nonlinearity)
{
    return nonlinearity == KN_RNN_NONLINEARITY_TANH || nonlinearity == KN_RNN_NONLINEARITY_RELU
               ? KN_OK
               : kn_fail(KN_ERR_ARGUMENT, "%s: nonlinearity must be tanh or relu, not %d", name, (int)nonlinearity);
}

kn_status kn_rnn_check_sizes(const char *name, int64_t input_size, int64_t hidden_size)
{
    if (input_size < 1 || hidden_size < 1)
        return kn_fail(KN_ERR_ARGUMENT, "%s: input_size (%lld) and hidden_size (%lld) must be at least 1", name,
                       (long long)input_size, (long long)hidden_size);
    if (hidden_size > INT64_MAX / 4) /* gates */
        return kn_fail(KN_ERR_ARGUMENT, "%s: hidden_size (%lld) is too large", name, (long long)hidden_size);
    return KN_OK;
}

static kn_status register_all(kn_module *module, kn_tensor *to[KN_RNN_PARAMETERS], kn_rnn_dimensions size,
                              const char *suffix)
{
    static const char *const names[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr"};
    const int64_t gates = size.gates * size.hidden, state = size.proj > 0 ? size.proj : size.hidden;
    const int64_t shapes[KN_RNN_PARAMETERS][2] = {{gates, size.input},
                                                  {gates, state},
                                                  {size.bias ? gates : 0},
                                                  {size.bias ? gates : 0},
                                                  {size.proj, size.hidden}};
    const double bound = 1 / sqrt((double)size.hidden);

    for (int i = 0; i < KN_RNN_PARAMETERS; i++) {
        const int ndim = i == KN_BIAS_IH || i == KN_BIAS_HH ? 1 : 2;
        char name[64];
        to[i] = NULL;
        if (shapes[i][0] == 0)
            continue;
        snprintf(name, sizeof name, "%s%s", names[i], suffix);
        kn_tensor *made = kn_empty_with(ndim, shapes[i], &(kn_tensor_options){.dtype = KN_F32});
        if (!made || !kn_init_uniform_(made, -bound, bound) ||
            !(to[i] = kn_module_register_parameter(module, name, made))) {
            kn_error_make_sticky();
            return kn_error_status();
        }
    }
    return KN_OK;
}

kn_status kn_rnn_register(kn_module *module, kn_tensor *to[KN_RNN_PARAMETERS], kn_rnn_dimensions size,
                          const char *suffix)
{
    const int depth = kn_scope_begin();
    if (depth == 0)
        return kn_error_status();
    const kn_status status = register_all(module, to, size, suffix);
    kn_scope_end(depth);
    return status;
}

/* --- cells -------------------------------------------------------------------------------------------------------- */

typedef kn_tensor *(*cell_function)(kn_tensor *, kn_tensor *, kn_tensor *, kn_tensor *, kn_tensor *, kn_tensor *);

typedef struct rnn_cell {
    kn_tensor *parameters[KN_RNN_PARAMETERS];
    kn_nn_rnn_cell_params params;
    cell_function function; /* NULL: an LSTM's */
} rnn_cell;

enum { X, H, C, INPUTS };

/* x is a vector or a matrix, and the states are as x is. */
static kn_status check_inputs(const kn_module *module, kn_tensor *const *inputs, int count)
{
    const rnn_cell *self = module->self;
    const kn_tensor *x = inputs[X];
    char text[KN_DESCRIBE];

    if ((x->ndim != 1 && x->ndim != 2) || x->shape[x->ndim - 1] != self->params.input_size)
        return kn_fail(KN_ERR_SHAPE, "%s: the input must be [batch, %lld] or [%lld], not %s", module->type_name,
                       (long long)self->params.input_size, (long long)self->params.input_size,
                       kn_tensor_describe(text, sizeof text, x));
    for (int i = H; i < count; i++) {
        const kn_tensor *t = inputs[i];
        if (t && (t->ndim != x->ndim || t->shape[t->ndim - 1] != self->params.hidden_size ||
                  (t->ndim == 2 && t->shape[0] != x->shape[0])))
            return kn_fail(KN_ERR_SHAPE, "%s: the state %s must have the input's batch and %lld elements, not be %s",
                           module->type_name, i == H ? "h" : "c", (long long)self->params.hidden_size,
                           kn_tensor_describe(text, sizeof text, t));
    }
    return KN_OK;
}

static kn_tensor *batched(kn_tensor *t, bool is_batched) { return t && !is_batched ? kn_unsqueeze(t, 0) : t; }

static kn_status forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const rnn_cell *self = module->self;
    kn_tensor *const *p = self->parameters;
    const bool is_batched = inputs[X]->ndim == 2, is_lstm = !self->function;

    KN_TRY(check_inputs(module, inputs, is_lstm ? INPUTS : C));
    kn_tensor *x = batched(inputs[X], is_batched), *h = batched(inputs[H], is_batched);
    if (is_lstm)
        outputs[0] = kn_lstm_cell(x, h, batched(inputs[C], is_batched), p[KN_WEIGHT_IH], p[KN_WEIGHT_HH], p[KN_BIAS_IH],
                                  p[KN_BIAS_HH], &outputs[1]);
    else
        outputs[0] = self->function(x, h, p[KN_WEIGHT_IH], p[KN_WEIGHT_HH], p[KN_BIAS_IH], p[KN_BIAS_HH]);
    for (int i = 0; i <= is_lstm && !is_batched; i++)
        outputs[i] = kn_squeeze(outputs[i], 0);
    return KN_OK;
}

static void describe(kn_module *module, kn_text *text)
{
    const kn_nn_rnn_cell_params *p = &((const rnn_cell *)module->self)->params;

    kn_text_format(text, "%lld, %lld%s", (long long)p->input_size, (long long)p->hidden_size,
                   p->bias ? "" : ", bias=False");
    if (p->nonlinearity == KN_RNN_NONLINEARITY_RELU)
        kn_text_append(text, ", nonlinearity=relu");
}

static kn_module *make(const char *name, int gates, cell_function function, const kn_nn_rnn_cell_params *params)
{
    const kn_module_kind kind = {
        .forward_many = forward,
        .signature = {.inputs = function ? C : INPUTS, .optional = function ? 1 : 2, .outputs = function ? 1 : 2},
        .describe = describe,
        .is_layer = true};
    params = params ? params : &(kn_nn_rnn_cell_params){KN_NN_RNN_CELL_DEFAULTS};
    rnn_cell self = {.params = *params, .function = function};
    if (kn_rnn_check_sizes(name, params->input_size, params->hidden_size) != KN_OK)
        return kn_error_make_sticky();
    kn_module *module = kn_layer_new_kind(name, &kind, &self, sizeof self);
    if (!module)
        return NULL;
    const kn_rnn_dimensions size = {params->input_size, params->hidden_size, 0, gates, params->bias};
    return kn_rnn_register(module, ((rnn_cell *)module->self)->parameters, size, "") == KN_OK ? module
                                                                                              : kn_layer_failed(module);
}

kn_nn_rnn_cell_params kn_nn_rnn_cell_params_init(void) { return (kn_nn_rnn_cell_params){KN_NN_RNN_CELL_DEFAULTS}; }

kn_module *kn_nn_rnn_cell_with(const kn_nn_rnn_cell_params *params)
{
    if (params && kn_rnn_check_nonlinearity("RNNCell", params->nonlinearity) != KN_OK)
        return kn_error_make_sticky();
    const bool is_relu = params && params->nonlinearity == KN_RNN_NONLINEARITY_RELU;
    return make("RNNCell", 1, is_relu ? kn_rnn_relu_cell : kn_rnn_tanh_cell, params);
}

/* The other cells have no choice of a nonlinearity. */
static kn_module *make_gated(const char *name, int gates, cell_function function, const kn_nn_rnn_cell_params *params)
{
    if (params && params->nonlinearity != KN_RNN_NONLINEARITY_TANH)
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: only RNNCell has a nonlinearity", name);
    return make(name, gates, function, params);
}

kn_module *kn_nn_lstm_cell_with(const kn_nn_rnn_cell_params *params) { return make_gated("LSTMCell", 4, NULL, params); }
kn_module *kn_nn_gru_cell_with(const kn_nn_rnn_cell_params *params)
{
    return make_gated("GRUCell", 3, kn_gru_cell, params);
}
