/* nn/activation.c - activations and flatten: modules without parameters. */
#include <koine/ops.h>

#include "nn/module.h"

static kn_tensor *relu_forward(kn_module *module, kn_tensor *x)
{
    (void)module;
    return kn_relu(x);
}

static kn_tensor *sigmoid_forward(kn_module *module, kn_tensor *x)
{
    (void)module;
    return kn_sigmoid(x);
}

static kn_tensor *tanh_forward(kn_module *module, kn_tensor *x)
{
    (void)module;
    return kn_tanh(x);
}

static kn_tensor *flatten_forward(kn_module *module, kn_tensor *x)
{
    (void)module;
    return kn_flatten(x, 1, -1);
}

kn_module *kn_nn_relu(void) { return kn_layer_new("ReLU", relu_forward, NULL, NULL, 0); }
kn_module *kn_nn_sigmoid(void) { return kn_layer_new("Sigmoid", sigmoid_forward, NULL, NULL, 0); }
kn_module *kn_nn_tanh(void) { return kn_layer_new("Tanh", tanh_forward, NULL, NULL, 0); }

static void describe_flatten(kn_module *module, kn_text *text)
{
    (void)module;
    kn_text_append(text, "start_dim=1, end_dim=-1");
}

kn_module *kn_nn_flatten(void) { return kn_layer_new("Flatten", flatten_forward, describe_flatten, NULL, 0); }

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
