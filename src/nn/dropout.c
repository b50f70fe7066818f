/* nn/dropout.c - dropout of elements, channels and samples, also for SELU; the identity in evaluation mode. */
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

/* --- stochastic depth --------------------------------------------------------------------------------------------- */

typedef struct depth_layer {
    double p;
    kn_stochastic_depth_mode mode;
} depth_layer;

static kn_tensor *depth_forward(kn_module *module, kn_tensor *x)
{
    const depth_layer *self = module->self;
    return kn_stochastic_depth(x, self->p, self->mode, .training = module->training);
}

static void describe_depth(kn_module *module, kn_text *text)
{
    const depth_layer *self = module->self;
    kn_text_format(text, "p=%g, mode=%s", self->p, self->mode == KN_STOCHASTIC_DEPTH_ROW ? "row" : "batch");
}

kn_module *kn_nn_stochastic_depth(double p, kn_stochastic_depth_mode mode)
{
    const depth_layer self = {p, mode};
    if (!(p >= 0 && p <= 1))
        return kn_fail_null(KN_ERR_ARGUMENT, "StochasticDepth: p must be a probability from 0 to 1, not %g", p);
    if (mode != KN_STOCHASTIC_DEPTH_BATCH && mode != KN_STOCHASTIC_DEPTH_ROW)
        return kn_fail_null(KN_ERR_ARGUMENT, "StochasticDepth: mode must be batch or row, not %d", (int)mode);
    return kn_layer_new("StochasticDepth", depth_forward, describe_depth, &self, sizeof self);
}
