/* nn/activation.c - activations and flatten: modules without parameters. */
#include <koine/norm.h>
#include <koine/pointwise.h>
#include <koine/shape.h>

#include "base/error.h"
#include "nn/module.h"

#define FORWARD(id)                                                                                                    \
    static kn_tensor *id##_forward(kn_module *module, kn_tensor *x)                                                    \
    {                                                                                                                  \
        (void)module;                                                                                                  \
        return kn_##id(x);                                                                                             \
    }
FORWARD(relu)
FORWARD(relu6)
FORWARD(sigmoid)
FORWARD(tanh)

static kn_tensor *flatten_forward(kn_module *module, kn_tensor *x)
{
    (void)module;
    return kn_flatten(x, 1, -1);
}

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
kn_module *kn_nn_sigmoid(void) { return kn_layer_new("Sigmoid", sigmoid_forward, NULL, NULL, 0); }
kn_module *kn_nn_tanh(void) { return kn_layer_new("Tanh", tanh_forward, NULL, NULL, 0); }

static void describe_flatten(kn_module *module, kn_text *text)
{
    (void)module;
    kn_text_append(text, "start_dim=1, end_dim=-1");
}

kn_module *kn_nn_flatten(void) { return kn_layer_new("Flatten", flatten_forward, describe_flatten, NULL, 0); }

/* --- hardtanh: self is the bounds ------------------------------------------------------------------------------ */

typedef struct hardtanh_bounds {
    double min_val, max_val;
} hardtanh_bounds;

static kn_tensor *hardtanh_forward(kn_module *module, kn_tensor *x)
{
    const hardtanh_bounds *bounds = module->self;
    return kn_hardtanh(x, bounds->min_val, bounds->max_val);
}

static void describe_hardtanh(kn_module *module, kn_text *text)
{
    const hardtanh_bounds *bounds = module->self;
    kn_text_format(text, "min_val=%g, max_val=%g", bounds->min_val, bounds->max_val);
}

kn_module *kn_nn_hardtanh(double min_val, double max_val)
{
    const hardtanh_bounds bounds = {.min_val = min_val, .max_val = max_val};
    if (!(min_val <= max_val))
        return kn_fail_null(KN_ERR_ARGUMENT, "Hardtanh: min_val (%g) must not be greater than max_val (%g)", min_val,
                            max_val);
    return kn_layer_new("Hardtanh", hardtanh_forward, describe_hardtanh, &bounds, sizeof bounds);
}

/* --- softmax: self is the dimension ---------------------------------------------------------------------------- */

static kn_tensor *softmax_forward(kn_module *module, kn_tensor *x) { return kn_softmax(x, *(int *)module->self); }

static kn_tensor *log_softmax_forward(kn_module *module, kn_tensor *x)
{
    return kn_log_softmax(x, *(int *)module->self);
}

static void describe_dim(kn_module *module, kn_text *text) { kn_text_format(text, "dim=%d", *(int *)module->self); }

kn_module *kn_nn_softmax(int dim) { return kn_layer_new("Softmax", softmax_forward, describe_dim, &dim, sizeof dim); }

kn_module *kn_nn_log_softmax(int dim)
{
    return kn_layer_new("LogSoftmax", log_softmax_forward, describe_dim, &dim, sizeof dim);
}
