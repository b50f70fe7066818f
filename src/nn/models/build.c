/* nn/models/build.c - see build.h. */
#include "nn/models/build.h"

#include <koine/autograd.h>
#include <koine/init.h>
#include <koine/pointwise.h>
#include <koine/shape.h>
#include <math.h>
#include <stdio.h>

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
    return kn_model_embedding_padded(count, size, std, KN_NO_PADDING_IDX);
}

kn_module *kn_model_embedding_padded(int64_t count, int64_t size, double std, int64_t padding_idx)
{
    kn_module *table = kn_nn_embedding(.num_embeddings = count, .embedding_dim = size, .padding_idx = padding_idx);
    KN_NO_GRAD;
    if (!table)
        return NULL;
    kn_tensor *weight = kn_init_normal_(kn_module_get(table, "weight"), 0, std);
    if (weight && padding_idx != KN_NO_PADDING_IDX) {
        KN_SCOPE;
        weight = kn_zero_(kn_select(weight, 0, padding_idx));
    }
    return weight ? table : kn_layer_failed(table);
}

/* --- shapes ------------------------------------------------------------------------------------------------------- */

static kn_tensor *channels_last(kn_module *m, kn_tensor *x)
{
    (void)m;
    return kn_permute(x, (const int[]){0, 2, 3, 1});
}

static kn_tensor *channels_first(kn_module *m, kn_tensor *x)
{
    (void)m;
    return kn_permute(x, (const int[]){0, 3, 1, 2});
}

kn_module *kn_model_permute(bool last)
{
    return kn_layer_new("Permute", last ? channels_last : channels_first, NULL, NULL, 0);
}

/* --- parameters --------------------------------------------------------------------------------------------------- */

kn_tensor *kn_model_parameter(kn_module *model, const char *name, int ndim, const int64_t *shape, double mean,
                              double std)
{
    const int depth = model ? kn_scope_begin() : 0;
    if (depth == 0)
        return NULL;
    kn_tensor *made = kn_full_with(ndim, shape, kn_scalar_real(mean), &(kn_tensor_options){.dtype = KN_F32});
    made = made ? kn_module_register_parameter(model, name, made) : NULL;
    const bool done = made && (std == 0 || kn_init_normal_(made, mean, std));
    kn_scope_end(depth);
    return done ? made : NULL;
}

kn_models_params kn_models_params_init(void) { return (kn_models_params){KN_MODELS_DEFAULTS}; }

double kn_model_dropout(const kn_models_params *params, double own)
{
    return params->dropout >= 0 ? params->dropout : own;
}
