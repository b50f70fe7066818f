/* nn/models/plain.c - networks without branches: multilayer perceptron, LeNet-5 (LeCun et al. 1998) with ReLU and max
 * pooling, AlexNet (Krizhevsky 2014) and VGG (Simonyan and Zisserman 2015). Names as in torchvision. */
#include <koine/shape.h>

#include "base/error.h"
#include "nn/models/build.h"

/* --- the perceptron ----------------------------------------------------------------------------------------------- */

kn_module *kn_models_mlp(const int64_t *sizes, int count)
{
    if (!sizes || count < 2)
        return kn_fail_null(KN_ERR_ARGUMENT,
                            "models_mlp: %d sizes: it takes at least those of the input and the output", count);
    kn_module *net = kn_model_append(kn_model_sequence(), kn_nn_flatten());
    for (int i = 1; i < count; i++) {
        net = kn_model_append(net, kn_nn_linear(.in_features = sizes[i - 1], .out_features = sizes[i]));
        if (i + 1 < count)
            net = kn_model_append(net, kn_nn_relu());
    }
    return net;
}

/* --- features, pooling to a fixed size, a classifier -------------------------------------------------------------- */

static kn_tensor *forward(kn_module *m, kn_tensor *x)
{
    x = kn_apply_child(m, 1, kn_apply_child(m, 0, x));
    return kn_apply_child(m, 2, kn_flatten(x, 1, -1));
}

static kn_module *classified(const char *type_name, kn_module *features, int64_t size, kn_module *classifier)
{
    return KN_MODEL_OF(type_name, forward, {"features", features}, {"avgpool", kn_nn_adaptive_avg_pool2d(size, size)},
                       {"classifier", classifier});
}

/* A convolution with its ReLU. */
static kn_module *add_conv(kn_module *sequence, int64_t in, int64_t out, int64_t kernel, int64_t stride,
                           int64_t padding)
{
    sequence = kn_model_append(sequence, kn_nn_conv2d(.in_channels = in, .out_channels = out, .kernel_size = kernel,
                                                      .stride = stride, .padding = padding));
    return kn_model_append(sequence, kn_nn_relu());
}

static kn_module *add_pool(kn_module *sequence, int64_t kernel)
{
    return kn_model_append(sequence, kn_nn_max_pool2d(.kernel_size = kernel, .stride = 2));
}

/* --- LeNet-5 ------------------------------------------------------------------------------------------------------ */

kn_module *kn_model_lenet5(const kn_models_params *params)
{
    kn_module *features = add_pool(add_conv(kn_model_sequence(), params->in_channels, 6, 5, 1, 2), 2);
    features = add_pool(add_conv(features, 6, 16, 5, 1, 0), 2);
    return classified("LeNet5", features, 5,
                      kn_nn_sequential(kn_nn_linear(.in_features = 400, .out_features = 120), kn_nn_relu(),
                                       kn_nn_linear(.in_features = 120, .out_features = 84), kn_nn_relu(),
                                       kn_nn_linear(.in_features = 84, .out_features = params->num_classes)));
}

/* --- AlexNet ------------------------------------------------------------------------------------------------------ */

kn_module *kn_model_alexnet(const kn_models_params *params)
{
    const double p = kn_model_dropout(params, 0.5);
    kn_module *features = add_pool(add_conv(kn_model_sequence(), params->in_channels, 64, 11, 4, 2), 3);
    features = add_pool(add_conv(features, 64, 192, 5, 1, 2), 3);
    features = add_conv(features, 192, 384, 3, 1, 1);
    features = add_conv(features, 384, 256, 3, 1, 1);
    features = add_pool(add_conv(features, 256, 256, 3, 1, 1), 3);
    return classified("AlexNet", features, 6,
                      kn_nn_sequential(kn_nn_dropout(.p = p), kn_nn_linear(.in_features = 9216, .out_features = 4096),
                                       kn_nn_relu(), kn_nn_dropout(.p = p),
                                       kn_nn_linear(.in_features = 4096, .out_features = 4096), kn_nn_relu(),
                                       kn_nn_linear(.in_features = 4096, .out_features = params->num_classes)));
}

/* --- VGG ---------------------------------------------------------------------------------------------------------- */

/* Channels of the convolutions, 0 for pooling. */
static const short vgg11[] = {64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0};
static const short vgg13[] = {64, 64, 0, 128, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0};
static const short vgg16[] = {64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0};
static const short vgg19[] = {64,  64,  0,   128, 128, 0,   256, 256, 256, 256, 0,
                              512, 512, 512, 512, 0,   512, 512, 512, 512, 0};

static kn_module *vgg_conv(int64_t in, int64_t out)
{
    kn_nn_conv_params params = {KN_NN_CONV_DEFAULTS};
    params.in_channels = in;
    params.out_channels = out;
    params.kernel_size = 3;
    params.padding = 1;
    return kn_model_conv_with(&params);
}

static kn_module *vgg(const kn_models_params *params, const short *layers, int count, bool norms)
{
    const double p = kn_model_dropout(params, 0.5);
    int64_t channels = params->in_channels;
    kn_module *features = kn_model_sequence();
    for (int i = 0; i < count; i++) {
        if (layers[i] == 0) {
            features = add_pool(features, 2);
            continue;
        }
        features = kn_model_append(features, vgg_conv(channels, layers[i]));
        channels = layers[i];
        if (norms)
            features = kn_model_append(features, kn_nn_batch_norm2d(.num_features = channels));
        features = kn_model_append(features, kn_nn_relu());
    }
    return classified("VGG", features, 7,
                      kn_nn_sequential(kn_model_linear(channels * 49, 4096, 0.01), kn_nn_relu(), kn_nn_dropout(.p = p),
                                       kn_model_linear(4096, 4096, 0.01), kn_nn_relu(), kn_nn_dropout(.p = p),
                                       kn_model_linear(4096, params->num_classes, 0.01)));
}

#define VGG(name)                                                                                                      \
    kn_module *kn_model_##name(const kn_models_params *params) { return vgg(params, name, KN_COUNT(name), false); }    \
    kn_module *kn_model_##name##_bn(const kn_models_params *params) { return vgg(params, name, KN_COUNT(name), true); }
VGG(vgg11)
VGG(vgg13)
VGG(vgg16)
VGG(vgg19)
