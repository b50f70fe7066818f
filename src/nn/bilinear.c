/* nn/bilinear.c - y = x1 A x2 + bias. */
#include <koine/matmul.h>
#include <math.h>

#include "base/error.h"
#include "nn/affine.h"

typedef struct bilinear {
    kn_affine affine;
    kn_nn_bilinear_params params;
} bilinear;

static kn_status forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const bilinear *self = module->self;
    outputs[0] = kn_bilinear(inputs[0], inputs[1], self->affine.weight, self->affine.bias);
    return outputs[0] ? KN_OK : kn_error_status();
}

static void describe(kn_module *module, kn_text *text)
{
    const kn_nn_bilinear_params *p = &((const bilinear *)module->self)->params;
    kn_text_format(text, "in1_features=%lld, in2_features=%lld, out_features=%lld, bias=%s", (long long)p->in1_features,
                   (long long)p->in2_features, (long long)p->out_features, p->bias ? "True" : "False");
}

kn_nn_bilinear_params kn_nn_bilinear_params_init(void) { return (kn_nn_bilinear_params){KN_NN_BILINEAR_DEFAULTS}; }

kn_module *kn_nn_bilinear_with(const kn_nn_bilinear_params *params)
{
    params = params ? params : &(kn_nn_bilinear_params){KN_NN_BILINEAR_DEFAULTS};
    if (params->in1_features < 1 || params->in2_features < 1 || params->out_features < 1)
        return kn_fail_null(
            KN_ERR_ARGUMENT,
            "Bilinear: in1_features (%lld), in2_features (%lld) and out_features (%lld) must be at least 1",
            (long long)params->in1_features, (long long)params->in2_features, (long long)params->out_features);
    const bilinear self = {.params = *params};
    const kn_module_kind kind = {
        .forward_many = forward, .signature = {.inputs = 2, .outputs = 1}, .describe = describe, .is_layer = true};
    kn_module *module = kn_layer_new_kind("Bilinear", &kind, &self, sizeof self);
    if (module == NULL)
        return NULL;
    const int64_t shape[] = {params->out_features, params->in1_features, params->in2_features};
    if (kn_affine_make_within(module, &((bilinear *)module->self)->affine, 3, shape,
                              params->bias ? params->out_features : 0, 1 / sqrt((double)params->in1_features)) != KN_OK)
        return kn_layer_failed(module);
    return module;
}
