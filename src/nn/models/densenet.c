/* nn/models/densenet.c - DenseNet (Huang et al., "Densely Connected Convolutional Networks", 2017). Names as in
 * torchvision. */
#include <koine/join.h>
#include <koine/pool.h>
#include <koine/shape.h>
#include <stdio.h>

#include "nn/models/build.h"

enum { EXPANSION = 4 }; /* of the growth rate, between a layer's two convolutions */

static kn_module *norm(int64_t channels) { return kn_nn_batch_norm2d(.num_features = channels); }

/* --- a layer: [x, conv2(relu(norm2(conv1(relu(norm1(x))))))] -------------------------------------------------- */

static kn_tensor *layer_forward(kn_module *m, kn_tensor *x)
{
    kn_tensor *y = x;
    for (int i = 0; i < 6; i += 3) /* norm, relu, conv */
        y = kn_apply_child(m, i + 2, kn_forward_activated(kn_module_child(m, i), y, KN_ACTIVATION_RELU));
    return kn_cat(KN_TENSORS(x, y), 1);
}

static kn_module *layer(int64_t in, int64_t growth)
{
    const int64_t hidden = EXPANSION * growth;
    return KN_MODEL_OF("DenseLayer", layer_forward, {"norm1", norm(in)}, {"relu1", kn_nn_relu()},
                       {"conv1", kn_model_conv(in, hidden, 1, 1, 1)}, {"norm2", norm(hidden)}, {"relu2", kn_nn_relu()},
                       {"conv2", kn_model_conv(hidden, growth, 3, 1, 1)});
}

/* --- the network -------------------------------------------------------------------------------------------------- */

static kn_module *dense_block(int64_t in, int64_t growth, int count)
{
    kn_module *block = kn_model_sequence();
    for (int i = 0; i < count; i++) {
        char name[24];
        snprintf(name, sizeof name, "denselayer%d", i + 1);
        block = kn_model_add(block, name, layer(in + i * growth, growth));
    }
    return block;
}

static kn_module *transition(int64_t in)
{
    kn_module *t = kn_model_add(kn_model_sequence(), "norm", norm(in));
    t = kn_model_add(t, "relu", kn_nn_relu());
    t = kn_model_add(t, "conv", kn_model_conv(in, in / 2, 1, 1, 1));
    return kn_model_add(t, "pool", kn_nn_avg_pool2d(.kernel_size = 2, .stride = 2));
}

static kn_tensor *forward(kn_module *m, kn_tensor *x)
{
    x = kn_adaptive_avg_pool2d(kn_relu(kn_apply_child(m, 0, x)), 1, 1);
    return kn_apply_child(m, 1, kn_flatten(x, 1, -1));
}

static kn_module *densenet(const kn_models_params *params, int64_t growth, int64_t channels, const int blocks[4])
{
    const bool small = params->small_images;
    kn_module *features = kn_model_add(kn_model_sequence(), "conv0",
                                       kn_model_conv(params->in_channels, channels, small ? 3 : 7, small ? 1 : 2, 1));
    features = kn_model_add(features, "norm0", norm(channels));
    features = kn_model_add(features, "relu0", kn_nn_relu());
    if (!small)
        features = kn_model_add(features, "pool0", kn_nn_max_pool2d(.kernel_size = 3, .stride = 2, .padding = 1));
    for (int i = 0; i < 4; i++) {
        char name[24];
        snprintf(name, sizeof name, "denseblock%d", i + 1);
        features = kn_model_add(features, name, dense_block(channels, growth, blocks[i]));
        channels += blocks[i] * growth;
        if (i == 3)
            break;
        snprintf(name, sizeof name, "transition%d", i + 1);
        features = kn_model_add(features, name, transition(channels));
        channels /= 2;
    }
    features = kn_model_add(features, "norm5", norm(channels));
    return KN_MODEL_OF("DenseNet", forward, {"features", features},
                       {"classifier", kn_nn_linear(.in_features = channels, .out_features = params->num_classes)});
}

#define DENSENET(name, growth, channels, ...)                                                                          \
    kn_module *kn_model_##name(const kn_models_params *params)                                                         \
    {                                                                                                                  \
        return densenet(params, growth, channels, (const int[])__VA_ARGS__);                                           \
    }
DENSENET(densenet121, 32, 64, {6, 12, 24, 16})
DENSENET(densenet161, 48, 96, {6, 12, 36, 24})
DENSENET(densenet169, 32, 64, {6, 12, 32, 32})
DENSENET(densenet201, 32, 64, {6, 12, 48, 32})
