/* nn/models/build.h - what the networks of the zoo are made with. Functions take ownership of the modules they get,
 * also on failure, and return NULL with a sticky error if one of them is NULL. */
#pragma once

#include <koine/models.h>

#include "nn/module.h"

#define KN_COUNT(array) (int)(sizeof(array) / sizeof(array)[0])

/* A named child. One without a name is left out. */
typedef struct kn_part {
    const char *name;
    kn_module *module;
} kn_part;

/* A network whose forward function finds its children by index, in this order. */
kn_module *kn_model_of(const char *type_name, kn_forward_function forward, const kn_part *parts, int count);
#define KN_MODEL_OF(type_name, forward, ...)                                                                           \
    kn_model_of(type_name, forward, (const kn_part[]){__VA_ARGS__}, KN_COUNT(((const kn_part[]){__VA_ARGS__})))

/* Appends to a Sequential; children are named by index. Returns the Sequential. */
kn_module *kn_model_append(kn_module *sequence, kn_module *child);
kn_module *kn_model_sequence(void); /* an empty one */

/* A square convolution without bias that keeps the size at stride 1, initialised as He et al. (2015) do: normal, with
 * the variance 2 / fan_out. */
kn_module *kn_model_conv(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t groups);
/* The same with all of a convolution's parameters. */
kn_module *kn_model_conv_with(const kn_nn_conv_params *params);

/* Conv2dNormActivation of torchvision: convolution, batch norm and `activation` (NULL: none). */
typedef struct kn_conv_norm {
    int64_t in, out, kernel, stride, groups; /* groups 0: 1 */
    double eps, momentum;                    /* of the norm; 0: the defaults */
    kn_module *(*activation)(void);
} kn_conv_norm;
kn_module *kn_model_conv_norm(const kn_conv_norm *layer);

/* A linear layer with weights from normal(0, std) and no bias at first. */
kn_module *kn_model_linear(int64_t in, int64_t out, double std);

/* The modules of child `index`, applied. */
static inline kn_tensor *kn_apply_child(kn_module *module, int index, kn_tensor *x)
{
    return kn_forward(kn_module_child(module, index), x);
}

/* params, or the defaults. */
const kn_models_params *kn_models_params_of(const kn_models_params *params);
double kn_models_dropout(const kn_models_params *params, double own); /* the caller's, or the network's own */
