/* nn/dropout.c - dropout of elements and of channels, also for SELU; the identity in evaluation mode. */
#include "base/error.h"
#include "nn/module.h"

typedef kn_tensor *(*dropout_function)(kn_tensor *x, const kn_dropout_params *params);

typedef struct dropout_layer {
    kn_nn_dropout_params params;
    dropout_function apply;
} dropout_layer;

static kn_tensor *forward(kn_module *module, kn_tensor *x)
{
    const dropout_layer *self = module->self;
    if (!module->training)
        return x;
    return self->apply(
        x, &(kn_dropout_params){.p = self->params.p, .training = true, .generator = self->params.generator});
}

/* The functions for SELU have parameters with the same fields. */
static kn_tensor *alpha(kn_tensor *x, const kn_dropout_params *p)
{
    return kn_alpha_dropout(x, .p = p->p, .training = p->training, .generator = p->generator);
}

static kn_tensor *feature_alpha(kn_tensor *x, const kn_dropout_params *p)
{
    return kn_feature_alpha_dropout(x, .p = p->p, .training = p->training, .generator = p->generator);
}

static void describe(kn_module *module, kn_text *text)
{
    kn_text_format(text, "p=%g, inplace=False", ((const dropout_layer *)module->self)->params.p);
}

kn_nn_dropout_params kn_nn_dropout_params_init(void) { return (kn_nn_dropout_params){KN_NN_DROPOUT_DEFAULTS}; }

static kn_module *make(const char *name, dropout_function apply, const kn_nn_dropout_params *params)
{
    dropout_layer self = {params ? *params : (kn_nn_dropout_params){KN_NN_DROPOUT_DEFAULTS}, apply};
    if (!(self.params.p >= 0 && self.params.p <= 1))
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: p must be a probability from 0 to 1, not %g", name, self.params.p);
    return kn_layer_new(name, forward, describe, &self, sizeof self);
}

#define DROPOUT(id, type_name, apply)                                                                                  \
    kn_module *kn_nn_##id##_with(const kn_nn_dropout_params *params) { return make(type_name, apply, params); }
DROPOUT(dropout, "Dropout", kn_dropout_with)
DROPOUT(dropout1d, "Dropout1d", kn_dropout1d_with)
DROPOUT(dropout2d, "Dropout2d", kn_dropout2d_with)
DROPOUT(dropout3d, "Dropout3d", kn_dropout3d_with)
DROPOUT(alpha_dropout, "AlphaDropout", alpha)
DROPOUT(feature_alpha_dropout, "FeatureAlphaDropout", feature_alpha)
