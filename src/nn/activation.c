/* nn/activation.c - activations: modules without parameters. */
#include <koine/activation.h>
#include <koine/norm.h>
#include <koine/tensor.h>

#include "base/error.h"
#include "nn/operator_layer.h"
#include "ops/dispatch/operators.h"
#include "ops/dispatch/params_text.h"

#define FORWARD(id)                                                                                                    \
    static kn_tensor *id##_forward(kn_module *module, kn_tensor *x)                                                    \
    {                                                                                                                  \
        (void)module;                                                                                                  \
        return kn_##id(x);                                                                                             \
    }
FORWARD(relu)
FORWARD(relu6)

/* An activation that the preceding layer may apply instead (fusion). */
static kn_module *activation(const char *name, kn_forward_function forward, kn_activation which)
{
    kn_module *module = kn_layer_new(name, forward, NULL, NULL, 0);
    if (module != NULL)
        module->kind.activation = which;
    return module;
}

kn_module *kn_nn_relu(void) { return activation("ReLU", relu_forward, KN_ACTIVATION_RELU); }
kn_module *kn_nn_relu6(void) { return activation("ReLU6", relu6_forward, KN_ACTIVATION_RELU6); }
KN_LAYER_OF_OPERATOR(sigmoid, sigmoid, "Sigmoid")
KN_LAYER_OF_OPERATOR(tanh, tanh, "Tanh")
KN_LAYER_OF_OPERATOR(silu, silu, "SiLU")
KN_LAYER_OF_OPERATOR(mish, mish, "Mish")
KN_LAYER_OF_OPERATOR(selu, selu, "SELU")
KN_LAYER_OF_OPERATOR(log_sigmoid, logsigmoid, "LogSigmoid")
KN_LAYER_OF_OPERATOR(softsign, softsign, "Softsign")
KN_LAYER_OF_OPERATOR(tanhshrink, tanhshrink, "Tanhshrink")
KN_LAYER_OF_OPERATOR(hardsigmoid, hardsigmoid, "Hardsigmoid")
KN_LAYER_OF_OPERATOR(hardswish, hardswish, "Hardswish")

/* --- with parameters ---------------------------------------------------------------------------------------------- */

kn_module *kn_nn_hardtanh(double min_val, double max_val)
{
    const kn_scalar_args bounds = {{kn_scalar_real(min_val), kn_scalar_real(max_val)}};
    if (!(min_val <= max_val))
        return kn_fail_null(KN_ERR_ARGUMENT, "Hardtanh: min_val (%g) must not be greater than max_val (%g)", min_val,
                            max_val);
    return kn_layer_of_operator("Hardtanh", &kn_hardtanh_op, &bounds, "min_val max_val");
}

#define WITH(id, type_name, shown)                                                                                     \
    kn_module *kn_nn_##id##_with(const kn_##id##_params *params)                                                       \
    {                                                                                                                  \
        return kn_layer_of_operator(type_name, &kn_##id##_op, params, shown);                                          \
    }
WITH(elu, "ELU", "alpha")
WITH(leaky_relu, "LeakyReLU", "negative_slope")
WITH(softplus, "Softplus", "beta threshold")
WITH(hardshrink, "Hardshrink", "=lambd")
WITH(softshrink, "Softshrink", "=lambd")
WITH(gelu, "GELU", "approximate")

kn_module *kn_nn_celu_with(const kn_celu_params *params)
{
    if (params && params->alpha == 0)
        return kn_fail_null(KN_ERR_ARGUMENT, "CELU: alpha must not be 0: x is divided by it");
    return kn_layer_of_operator("CELU", &kn_celu_op, params, "alpha");
}

kn_module *kn_nn_threshold(double threshold, double value)
{
    const kn_scalar_args args = {{kn_scalar_real(threshold), kn_scalar_real(value)}};
    return kn_layer_of_operator("Threshold", &kn_threshold_op, &args, "threshold value");
}

kn_module *kn_nn_glu(int dim) { return kn_layer_of_operator("GLU", &kn_glu_op, &(kn_dim_args){dim}, "dim"); }

kn_module *kn_nn_softmax(int dim)
{
    return kn_layer_of_operator("Softmax", &kn_softmax_op, &(kn_dim_args){dim}, "dim");
}

kn_module *kn_nn_log_softmax(int dim)
{
    return kn_layer_of_operator("LogSoftmax", &kn_log_softmax_op, &(kn_dim_args){dim}, "dim");
}

kn_module *kn_nn_softmin(int dim)
{
    return kn_layer_of_operator("Softmin", &kn_softmin_op, &(kn_dim_args){dim}, "dim");
}

/* --- with a forward function of their own ------------------------------------------------------------------------- */

static kn_tensor *softmax2d_forward(kn_module *module, kn_tensor *x)
{
    char text[KN_DESCRIBE];
    if (x->ndim == 3 || x->ndim == 4)
        return kn_softmax(x, -3);
    kn_fail(KN_ERR_SHAPE, "%s: expected [N, C, H, W] or [C, H, W], got %s", module->type_name,
            kn_tensor_describe(text, sizeof text, x));
    return kn_error_make_sticky();
}

kn_module *kn_nn_softmax2d(void) { return kn_layer_new("Softmax2d", softmax2d_forward, NULL, NULL, 0); }

static kn_tensor *rrelu_forward(kn_module *module, kn_tensor *x)
{
    kn_rrelu_params params = *(const kn_rrelu_params *)module->self;
    params.training = module->training;
    return kn_rrelu_with(x, &params);
}

static void describe_rrelu(kn_module *module, kn_text *text)
{
    for (int i = 0; i < 2; i++) {
        const kn_op_param *bound = &kn_rrelu_op.params.rows[i];
        kn_text_format(text, "%s%s=", i > 0 ? ", " : "", bound->name);
        kn_param_append(text, bound, (const char *)module->self + bound->offset, true);
    }
}

kn_module *kn_nn_rrelu_with(const kn_rrelu_params *params)
{
    params = params ? params : &(kn_rrelu_params){KN_RRELU_DEFAULTS};
    if (!(params->lower <= params->upper))
        return kn_fail_null(KN_ERR_ARGUMENT, "RReLU: lower (%g) must not be greater than upper (%g)", params->lower,
                            params->upper);
    return kn_layer_new("RReLU", rrelu_forward, describe_rrelu, params, sizeof *params);
}

/* --- PReLU -------------------------------------------------------------------------------------------------------- */

static kn_tensor *prelu_forward(kn_module *module, kn_tensor *x)
{
    return kn_prelu(x, *(kn_tensor *const *)module->self);
}

static void describe_prelu(kn_module *module, kn_text *text)
{
    kn_text_format(text, "num_parameters=%lld", (long long)kn_numel(*(kn_tensor *const *)module->self));
}

kn_nn_prelu_params kn_nn_prelu_params_init(void) { return (kn_nn_prelu_params){KN_NN_PRELU_DEFAULTS}; }

kn_module *kn_nn_prelu_with(const kn_nn_prelu_params *params)
{
    params = params ? params : &(kn_nn_prelu_params){KN_NN_PRELU_DEFAULTS};
    if (params->num_parameters < 1)
        return kn_fail_null(KN_ERR_ARGUMENT, "PReLU: num_parameters must be at least 1, not %lld",
                            (long long)params->num_parameters);
    kn_tensor *weight = NULL;
    kn_module *module = kn_layer_new("PReLU", prelu_forward, describe_prelu, &weight, sizeof weight);
    if (!module)
        return NULL;
    weight = kn_full(KN_SHAPE(params->num_parameters), params->init);
    weight = weight ? kn_module_register_parameter(module, "weight", weight) : NULL;
    if (!weight) {
        kn_module_free(module);
        return kn_error_make_sticky();
    }
    *(kn_tensor **)module->self = weight;
    return module;
}
