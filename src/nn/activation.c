/* nn/activation.c - activations: modules without parameters. */
#include <koine/pointwise.h>

#include "base/error.h"
#include "nn/operator_layer.h"
#include "ops/dispatch/operators.h"

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

kn_module *kn_nn_softmax(int dim)
{
    return kn_layer_of_operator("Softmax", &kn_softmax_op, &(kn_dim_args){dim}, "dim");
}

kn_module *kn_nn_log_softmax(int dim)
{
    return kn_layer_of_operator("LogSoftmax", &kn_log_softmax_op, &(kn_dim_args){dim}, "dim");
}
