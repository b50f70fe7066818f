/* nn/models/build.c - see build.h. */
#include "nn/models/build.h"

#include <koine/init.h>
#include <koine/pointwise.h>
#include <math.h>
#include <stdio.h>

#include "base/error.h"

kn_module *kn_model_of_kind(const char *type_name, const kn_module_kind *kind, const void *self, size_t self_size,
                            const kn_part *parts, int count)
{
    kn_module *model = kn_layer_new_kind(type_name, kind, self, self_size);
    for (int i = 0; i < count; i++) {
        if (!parts[i].name)
            continue;
        if (model && kn_module_register_module(model, parts[i].name, parts[i].module))
            continue;
        if (!model)
            kn_module_free(parts[i].module);
        model = kn_layer_failed(model);
    }
    return model;
}

kn_module *kn_model_of(const char *type_name, kn_forward_function forward, const kn_part *parts, int count)
{
    const kn_module_kind kind = KN_ONE_TO_ONE(forward);
    return kn_model_of_kind(type_name, &kind, NULL, 0, parts, count);
}

kn_module *kn_model_sequence(void) { return kn_nn_sequential_of(NULL, 0); }

kn_module *kn_model_add(kn_module *sequence, const char *name, kn_module *child)
{
    if (!sequence) {
        kn_module_free(child);
        return NULL;
    }
    return kn_nn_add_module(sequence, name, child) == KN_OK ? sequence : kn_layer_failed(sequence);
}

kn_module *kn_model_append(kn_module *sequence, kn_module *child)
{
    char name[16];
    snprintf(name, sizeof name, "%d", kn_module_child_count(sequence));
    return kn_model_add(sequence, name, child);
}

/* --- layers ------------------------------------------------------------------------------------------------------- */

kn_module *kn_model_conv_with(const kn_nn_conv_params *params)
{
    kn_module *conv = kn_nn_conv2d_with(params);
    if (!conv)
        return NULL;
    kn_tensor *weight = kn_module_get(conv, "weight"), *bias = params->bias ? kn_module_get(conv, "bias") : NULL;
    const double fan_out =
        (double)(kn_size(weight, 0) * kn_size(weight, 2) * kn_size(weight, 3)) / (double)params->groups;
    const bool done = kn_init_normal_(weight, 0, sqrt(2 / fan_out)) && (!bias || kn_init_uniform_(bias, 0, 0));
    return done ? conv : kn_layer_failed(conv);
}

kn_module *kn_model_conv(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t groups)
{
    kn_nn_conv_params params = {KN_NN_CONV_DEFAULTS};
    params.in_channels = in;
    params.out_channels = out;
    params.kernel_size = kernel;
    params.stride = stride;
    params.padding = (kernel - 1) / 2;
    params.groups = groups;
    params.bias = false;
    return kn_model_conv_with(&params);
}

kn_module *kn_model_conv_norm(const kn_conv_norm *layer)
{
    kn_nn_batch_norm_params norm = {KN_NN_BATCH_NORM_DEFAULTS};
    norm.num_features = layer->out;
    norm.eps = layer->eps > 0 ? layer->eps : norm.eps;
    norm.momentum = layer->momentum > 0 ? layer->momentum : norm.momentum;
    kn_module *all =
        kn_model_append(kn_model_sequence(), kn_model_conv(layer->in, layer->out, layer->kernel, layer->stride,
                                                           layer->groups > 0 ? layer->groups : 1));
    all = kn_model_append(all, kn_nn_batch_norm2d_with(&norm));
    return layer->activation ? kn_model_append(all, layer->activation()) : all;
}

kn_module *kn_model_linear(int64_t in, int64_t out, double std)
{
    kn_module *linear = kn_nn_linear(.in_features = in, .out_features = out);
    if (!linear)
        return NULL;
    const bool done = kn_init_normal_(kn_module_get(linear, "weight"), 0, std) &&
                      kn_init_uniform_(kn_module_get(linear, "bias"), 0, 0);
    return done ? linear : kn_layer_failed(linear);
}

kn_module *kn_model_embedding(int64_t count, int64_t size, double std)
{
    kn_module *table = kn_nn_embedding(.num_embeddings = count, .embedding_dim = size);
    if (!table)
        return NULL;
    return kn_init_normal_(kn_module_get(table, "weight"), 0, std) ? table : kn_layer_failed(table);
}

/* --- parameters --------------------------------------------------------------------------------------------------- */

kn_models_params kn_models_params_init(void) { return (kn_models_params){KN_MODELS_DEFAULTS}; }

double kn_model_dropout(const kn_models_params *params, double own)
{
    return params->dropout >= 0 ? params->dropout : own;
}
