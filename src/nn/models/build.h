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

#define KN_PARTS(...) (const kn_part[]){__VA_ARGS__}, KN_COUNT(((const kn_part[]){__VA_ARGS__}))

/* A network whose forward function finds its children by index, in this order. */
kn_module *kn_model_of(const char *type_name, kn_forward_function forward, const kn_part *parts, int count);
#define KN_MODEL_OF(type_name, forward, ...) kn_model_of(type_name, forward, KN_PARTS(__VA_ARGS__))

/* The same for a forward function with parameters (`self`, copied), or of several inputs or outputs. */
kn_module *kn_model_of_kind(const char *type_name, const kn_module_kind *kind, const void *self, size_t self_size,
                            const kn_part *parts, int count);

/* The kinds: one tensor to one; the second of two inputs optional or not. */
#define KN_ONE_TO_ONE(function)                                                                                        \
    {                                                                                                                  \
        .forward = function, .signature = {.inputs = 1, .outputs = 1}, .is_layer = true                                \
    }
#define KN_TWO_TO_ONE(function, optional_)                                                                             \
    {                                                                                                                  \
        .forward_many = function, .signature = {.inputs = 2, .optional = optional_, .outputs = 1}, .is_layer = true    \
    }

/* Appends to a Sequential, by a name or by the index. Returns the Sequential. */
kn_module *kn_model_add(kn_module *sequence, const char *name, kn_module *child);
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

/* An embedding with rows from normal(0, std); or with a row of zeros at padding_idx, which does not learn. */
kn_module *kn_model_embedding(int64_t count, int64_t size, double std);
kn_module *kn_model_embedding_padded(int64_t count, int64_t size, double std, int64_t padding_idx);

/* A permutation of the dimensions of images: [N, C, H, W] to [N, H, W, C], or back. */
kn_module *kn_model_permute(bool last);

/* A new parameter of the model, with values from normal(mean, std); borrowed. */
kn_tensor *kn_model_parameter(kn_module *model, const char *name, int ndim, const int64_t *shape, double mean,
                              double std);

/* The modules of child `index`, applied. */
static inline kn_tensor *kn_apply_child(kn_module *module, int index, kn_tensor *x)
{
    return kn_forward(kn_module_child(module, index), x);
}

double kn_model_dropout(const kn_models_params *params, double own); /* the caller's, or the network's own */

/* --- the networks ------------------------------------------------------------------------------------------------- */

/* clang-format off */
#define KN_MODELS(X) \
    X(alexnet) \
    X(convnext_tiny) \
    X(convnext_small) \
    X(convnext_base) \
    X(convnext_large) \
    X(densenet121) \
    X(densenet161) \
    X(densenet169) \
    X(densenet201) \
    X(efficientnet_b0) \
    X(lenet5) \
    X(mobilenet_v2) \
    X(mobilenet_v3_large) \
    X(mobilenet_v3_small) \
    X(resnet18) \
    X(resnet34) \
    X(resnet50) \
    X(resnet101) \
    X(resnet152) \
    X(resnext50_32x4d) \
    X(resnext101_32x8d) \
    X(unet) \
    X(vgg11) \
    X(vgg11_bn) \
    X(vgg13) \
    X(vgg13_bn) \
    X(vgg16) \
    X(vgg16_bn) \
    X(vgg19) \
    X(vgg19_bn) \
    X(vit_b_16) \
    X(vit_b_32) \
    X(vit_l_16) \
    X(vit_l_32) \
    X(vit_h_14) \
    X(wide_resnet50_2) \
    X(wide_resnet101_2)
/* clang-format on */

#define KN_MODEL_DECLARED(name) kn_module *kn_model_##name(const kn_models_params *params);
KN_MODELS(KN_MODEL_DECLARED)
