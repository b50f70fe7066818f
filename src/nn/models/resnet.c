/* nn/models/resnet.c - ResNet (He et al., "Deep Residual Learning for Image Recognition", 2016), with a block's stride
 * in its 3x3 convolution; ResNeXt (Xie et al. 2017) and Wide ResNet (Zagoruyko and Komodakis 2016). Names as in
 * torchvision. */
#include <koine/shape.h>

#include "nn/models/build.h"

/* What distinguishes the networks of the family. */
typedef struct kind {
    bool bottleneck;
    int blocks[4];
    int64_t groups, width; /* of a bottleneck's 3x3 convolution; channels per group at 64 planes */
} kind;

/* The index of `downsample` among a block's children: after the convolutions and their norms. */
enum { AFTER_TWO = 4, AFTER_THREE = 6 };

/* --- blocks ------------------------------------------------------------------------------------------------------- */

/* relu(bn(conv(x))) for convolution `i` and the norm after it. */
static kn_tensor *activated(kn_module *m, int i, kn_tensor *x)
{
    return kn_forward_activated(kn_module_child(m, i + 1), kn_apply_child(m, i, x), KN_ACTIVATION_RELU);
}

/* relu(bn(conv(y)) + x) for the last convolution, `i`, with x projected if its shape changes. */
static kn_tensor *joined(kn_module *m, int i, kn_tensor *y, kn_tensor *x)
{
    kn_module *downsample = kn_module_child(m, i + 2);
    y = kn_apply_child(m, i + 1, kn_apply_child(m, i, y));
    return kn_add_activated(y, downsample ? kn_forward(downsample, x) : x, KN_ACTIVATION_RELU);
}

static kn_tensor *basic_forward(kn_module *m, kn_tensor *x) { return joined(m, AFTER_TWO - 2, activated(m, 0, x), x); }

static kn_tensor *bottleneck_forward(kn_module *m, kn_tensor *x)
{
    return joined(m, AFTER_THREE - 2, activated(m, 2, activated(m, 0, x)), x);
}

static kn_module *norm(int64_t channels) { return kn_nn_batch_norm2d(.num_features = channels); }

static kn_part downsample(int64_t in, int64_t out, int64_t stride)
{
    if (stride == 1 && in == out)
        return (kn_part){NULL, NULL};
    return (kn_part){"downsample", kn_nn_sequential(kn_model_conv(in, out, 1, stride, 1), norm(out))};
}

static kn_module *basic_block(int64_t in, int64_t planes, int64_t stride)
{
    return KN_MODEL_OF("BasicBlock", basic_forward, {"conv1", kn_model_conv(in, planes, 3, stride, 1)},
                       {"bn1", norm(planes)}, {"conv2", kn_model_conv(planes, planes, 3, 1, 1)}, {"bn2", norm(planes)},
                       downsample(in, planes, stride));
}

static kn_module *bottleneck(const kind *k, int64_t in, int64_t planes, int64_t stride)
{
    const int64_t width = planes * k->width / 64 * k->groups, out = 4 * planes;
    return KN_MODEL_OF("Bottleneck", bottleneck_forward, {"conv1", kn_model_conv(in, width, 1, 1, 1)},
                       {"bn1", norm(width)}, {"conv2", kn_model_conv(width, width, 3, stride, k->groups)},
                       {"bn2", norm(width)}, {"conv3", kn_model_conv(width, out, 1, 1, 1)}, {"bn3", norm(out)},
                       downsample(in, out, stride));
}

/* --- the network -------------------------------------------------------------------------------------------------- */

/* Its children in order: the stem, with pooling unless it is left out, four stages, the mean over each image, and the
 * last layer. */
static kn_tensor *forward(kn_module *m, kn_tensor *x)
{
    const int last = kn_module_child_count(m) - 1;
    return kn_apply_child(m, last, kn_flatten(kn_forward_children(m, 0, last, x), 1, -1));
}

/* Stage `number`; *channels are those of its input and are set to those of its output. */
static kn_module *stage(const kind *k, int number, int64_t *channels)
{
    const int64_t planes = (int64_t)64 << number;
    kn_module *blocks = kn_model_sequence();
    for (int i = 0; i < k->blocks[number]; i++) {
        const int64_t stride = number > 0 && i == 0 ? 2 : 1;
        blocks = kn_model_append(blocks, k->bottleneck ? bottleneck(k, *channels, planes, stride)
                                                       : basic_block(*channels, planes, stride));
        *channels = k->bottleneck ? 4 * planes : planes;
    }
    return blocks;
}

static kn_module *resnet(const kn_models_params *params, const kind *k)
{
    int64_t channels = 64;
    kn_module *stages[4];
    for (int i = 0; i < 4; i++)
        stages[i] = stage(k, i, &channels);
    const bool small = params->small_images;
    return KN_MODEL_OF(
        "ResNet", forward, {"conv1", kn_model_conv(params->in_channels, 64, small ? 3 : 7, small ? 1 : 2, 1)},
        {"bn1", norm(64)}, {"relu", kn_nn_relu()},
        {small ? NULL : "maxpool", small ? NULL : kn_nn_max_pool2d(.kernel_size = 3, .stride = 2, .padding = 1)},
        {"layer1", stages[0]}, {"layer2", stages[1]}, {"layer3", stages[2]}, {"layer4", stages[3]},
        {"avgpool", kn_nn_adaptive_avg_pool2d(1, 1)},
        {"fc", kn_nn_linear(.in_features = channels, .out_features = params->num_classes)});
}

#define RESNET(name, ...)                                                                                              \
    kn_module *kn_model_##name(const kn_models_params *params) { return resnet(params, &(const kind){__VA_ARGS__}); }
RESNET(resnet18, false, {2, 2, 2, 2}, 1, 64)
RESNET(resnet34, false, {3, 4, 6, 3}, 1, 64)
RESNET(resnet50, true, {3, 4, 6, 3}, 1, 64)
RESNET(resnet101, true, {3, 4, 23, 3}, 1, 64)
RESNET(resnet152, true, {3, 8, 36, 3}, 1, 64)
RESNET(resnext50_32x4d, true, {3, 4, 6, 3}, 32, 4)
RESNET(resnext101_32x8d, true, {3, 4, 23, 3}, 32, 8)
RESNET(wide_resnet50_2, true, {3, 4, 6, 3}, 1, 128)
RESNET(wide_resnet101_2, true, {3, 4, 23, 3}, 1, 128)
