/* nn/linear.c - y = x weight^T + bias. */
#include <koine/matmul.h>

#include "base/error.h"
#include "nn/affine.h"

typedef struct linear {
    kn_affine affine;
    kn_nn_linear_params params;
} linear;

static kn_tensor *forward(kn_module *module, kn_tensor *x, kn_activation activation)
{
    linear *self = module->self;
    return kn_linear_with(x, self->affine.weight, self->affine.bias, &(kn_linear_params){.activation = activation});
}

static void describe(kn_module *module, kn_text *text)
{
    linear *self = module->self;
    kn_text_format(text, "in_features=%lld, out_features=%lld, bias=%s", (long long)self->params.in_features,
                   (long long)self->params.out_features, self->params.bias ? "True" : "False");
}

kn_nn_linear_params kn_nn_linear_params_init(void) { return (kn_nn_linear_params){KN_NN_LINEAR_DEFAULTS}; }

kn_module *kn_nn_linear_with(const kn_nn_linear_params *params)
{
    params = params ? params : &(kn_nn_linear_params){KN_NN_LINEAR_DEFAULTS};
    if (params->in_features < 1 || params->out_features < 1)
        return kn_fail_null(KN_ERR_ARGUMENT, "Linear: in_features (%lld) and out_features (%lld) must be at least 1",
                            (long long)params->in_features, (long long)params->out_features);
    linear self = {.params = *params};
    kn_module *module = kn_layer_new_activated("Linear", forward, describe, &self, sizeof self);
    if (module == NULL)
        return NULL;
    linear *made = module->self;
    const int64_t shape[] = {params->out_features, params->in_features};
    if (kn_affine_make(module, &made->affine, 2, shape, params->bias ? params->out_features : 0) != KN_OK)
        return kn_layer_failed(module);
    return module;
}

kn_affine_layer kn_linear_affine(kn_module *module)
{
    linear *self = module->kind.activated == forward ? module->self : NULL;
    return self != NULL ? (kn_affine_layer){.affine = &self->affine, .has_bias = &self->params.bias, .groups = 1}
                        : (kn_affine_layer){0};
}
