/* nn/dropout.c - dropout of elements and of channels; the identity in evaluation mode. */
#include "base/error.h"
#include "nn/module.h"

static kn_tensor *element_forward(kn_module *module, kn_tensor *x)
{
    const kn_nn_dropout_params *self = module->self;
    if (!module->training)
        return x;
    return kn_dropout_with(x, &(kn_dropout_params){.p = self->p, .training = true, .generator = self->generator});
}

static kn_tensor *channel_forward(kn_module *module, kn_tensor *x)
{
    const kn_nn_dropout_params *self = module->self;
    if (!module->training)
        return x;
    return kn_dropout2d_with(x, &(kn_dropout_params){.p = self->p, .training = true, .generator = self->generator});
}

static void describe(kn_module *module, kn_text *text)
{
    kn_text_format(text, "p=%g, inplace=False", ((const kn_nn_dropout_params *)module->self)->p);
}

kn_nn_dropout_params kn_nn_dropout_params_init(void) { return (kn_nn_dropout_params){KN_NN_DROPOUT_DEFAULTS}; }

static kn_module *make(const char *name, kn_forward_function forward, const kn_nn_dropout_params *params)
{
    params = params ? params : &(kn_nn_dropout_params){KN_NN_DROPOUT_DEFAULTS};
    if (!(params->p >= 0 && params->p <= 1))
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: p must be a probability from 0 to 1, not %g", name, params->p);
    return kn_layer_new(name, forward, describe, params, sizeof *params);
}

kn_module *kn_nn_dropout_with(const kn_nn_dropout_params *params) { return make("Dropout", element_forward, params); }

kn_module *kn_nn_dropout2d_with(const kn_nn_dropout_params *params)
{
    return make("Dropout2d", channel_forward, params);
}
