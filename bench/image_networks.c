/* image_networks.c - ResNet-18 (He et al. 2015) and MobileNetV2 (Sandler et al. 2018) in their CIFAR variants, and the
 * standard ResNet-50, with a block's stride in its 3x3 convolution, as is usual today. */
#include <stdio.h>

#include "networks.h"

#define COUNT(array) (int)(sizeof array / sizeof array[0])

static kn_module *batch_norm(const bench_flow *flow) { return kn_nn_batch_norm2d(.num_features = flow->channels); }

/* Appends `child` to a sequence, named by its index. */
static void append(kn_module *sequence, kn_module *child)
{
    char name[16];
    snprintf(name, sizeof name, "%d", kn_module_child_count(sequence));
    kn_nn_add_module(sequence, name, child);
}

/* --- ResNet ----------------------------------------------------------------------------------- */

/* The index of `downsample` among the children: after the convolutions and their norms. */
enum { AFTER_TWO = 4, AFTER_THREE = 6 };

/* Convolution `i`, its norm and a ReLU. */
static kn_tensor *activated(kn_module *m, int i, kn_tensor *x)
{
    return kn_forward_activated(kn_module_child(m, i + 1), kn_forward(kn_module_child(m, i), x), KN_ACTIVATION_RELU);
}

/* relu(bn(conv(y)) + x) for the last convolution, `i`, with x projected if its shape changes. */
static kn_tensor *joined(kn_module *m, int i, kn_tensor *y, kn_tensor *x)
{
    kn_module *downsample = kn_module_child(m, i + 2);
    y = kn_forward(kn_module_child(m, i + 1), kn_forward(kn_module_child(m, i), y));
    return kn_add_activated(y, downsample ? kn_forward(downsample, x) : x, KN_ACTIVATION_RELU);
}

/* relu(bn2(conv2(relu(bn1(conv1(x))))) + x) */
static kn_tensor *basic_block_forward(kn_module *m, kn_tensor *x) { return joined(m, 2, activated(m, 0, x), x); }

/* 1x1 to a quarter of the channels, 3x3, 1x1 back. */
static kn_tensor *bottleneck_forward(kn_module *m, kn_tensor *x)
{
    return joined(m, 4, activated(m, 2, activated(m, 0, x)), x);
}

/* A 1x1 convolution from `before` to `channels`, and a norm. NULL if x keeps its shape. */
static kn_module *downsample(bench_flow *flow, const bench_flow *before, int64_t channels, int64_t stride)
{
    bench_flow shortcut = *before;
    if (stride == 1 && channels == before->channels)
        return NULL;
    kn_module *projection = bench_conv2d(&shortcut, channels, 1, stride, 1);
    flow->flops += shortcut.flops - before->flops;
    return kn_nn_sequential(projection, batch_norm(&shortcut));
}

static kn_module *basic_block(bench_flow *flow, int64_t channels, int64_t stride)
{
    static const char *const names[] = {"conv1", "bn1", "conv2", "bn2", "downsample"};
    const bench_flow before = *flow;
    kn_module *layers[COUNT(names)];
    for (int i = 0; i < AFTER_TWO; i += 2) {
        layers[i] = bench_conv2d(flow, channels, 3, i == 0 ? stride : 1, 1);
        layers[i + 1] = batch_norm(flow);
    }
    layers[AFTER_TWO] = downsample(flow, &before, channels, stride);
    return bench_children(kn_module_new("BasicBlock", basic_block_forward, 0, NULL), names, layers, COUNT(names));
}

static kn_module *bottleneck(bench_flow *flow, int64_t channels, int64_t stride)
{
    static const char *const names[] = {"conv1", "bn1", "conv2", "bn2", "conv3", "bn3", "downsample"};
    const bench_flow before = *flow;
    kn_module *layers[COUNT(names)];
    for (int i = 0; i < AFTER_THREE; i += 2) {
        layers[i] = bench_conv2d(flow, i == 4 ? 4 * channels : channels, i == 2 ? 3 : 1, i == 2 ? stride : 1, 1);
        layers[i + 1] = batch_norm(flow);
    }
    layers[AFTER_THREE] = downsample(flow, &before, 4 * channels, stride);
    return bench_children(kn_module_new("Bottleneck", bottleneck_forward, 0, NULL), names, layers, COUNT(names));
}

/* Named like torchvision's class, which is not a Sequential: the stem, then in order a max pooling, four stages, the
 * mean over each image, and the last layer. */
static kn_tensor *resnet_forward(kn_module *m, kn_tensor *x)
{
    const int last = kn_module_child_count(m) - 1;
    x = activated(m, 0, x);
    for (int i = 2; i < last; i++)
        x = kn_forward(kn_module_child(m, i), x);
    return kn_forward(kn_module_child(m, last), kn_flatten(x, 1, -1));
}

/* The stages after a stem; stage i has blocks[i] blocks. */
static kn_module *resnet(bench_flow *flow, kn_module *const stem[3], const int blocks[4],
                         kn_module *(*block)(bench_flow *, int64_t, int64_t), int64_t classes)
{
    static const char *const names[] = {"conv1",  "bn1",    "maxpool", "layer1", "layer2",
                                        "layer3", "layer4", "avgpool", "fc"};
    kn_module *layers[COUNT(names)] = {stem[0], stem[1], stem[2]};
    for (int stage = 0; stage < 4; stage++) {
        layers[3 + stage] = kn_nn_sequential_of(NULL, 0);
        for (int i = 0; i < blocks[stage]; i++)
            append(layers[3 + stage], block(flow, 64 << stage, stage && i == 0 ? 2 : 1));
    }
    layers[7] = kn_nn_adaptive_avg_pool2d(1, 1);
    flow->height = flow->width = 1;
    layers[8] = bench_linear(flow, classes);
    return bench_children(kn_module_new("ResNet", resnet_forward, 0, NULL), names, layers, COUNT(names));
}

kn_module *bench_resnet18(bench_flow *flow)
{
    kn_module *conv = bench_conv2d(flow, 64, 3, 1, 1), *stem[] = {conv, batch_norm(flow), NULL};
    return resnet(flow, stem, (const int[]){2, 2, 2, 2}, basic_block, 10);
}

kn_module *bench_resnet50(bench_flow *flow)
{
    kn_module *conv = bench_conv2d(flow, 64, 7, 2, 1), *stem[] = {conv, batch_norm(flow), NULL};
    stem[2] = kn_nn_max_pool2d(.kernel_size = 3, .stride = 2, .padding = 1);
    flow->height = (flow->height - 1) / 2 + 1;
    flow->width = (flow->width - 1) / 2 + 1;
    return resnet(flow, stem, (const int[]){3, 4, 6, 3}, bottleneck, BENCH_IMAGENET_CLASSES);
}

/* --- MobileNetV2 ------------------------------------------------------------------------------- */

/* conv, batch norm, ReLU6: "0", "1", "2". */
static kn_module *conv_bn_relu6(bench_flow *flow, int64_t channels, int64_t kernel, int64_t stride, int64_t groups)
{
    kn_module *conv = bench_conv2d(flow, channels, kernel, stride, groups);
    return kn_nn_sequential(conv, batch_norm(flow), kn_nn_relu6());
}

static kn_tensor *inverted_residual_forward(kn_module *m, kn_tensor *x)
{
    return kn_add(x, kn_forward(kn_module_child(m, 0), x));
}

static kn_tensor *plain_forward(kn_module *m, kn_tensor *x) { return kn_forward(kn_module_child(m, 0), x); }

/* 1x1 to `expansion` times the channels, 3x3 of each channel, 1x1 back without activation; plus x if the shape is
 * unchanged. */
static kn_module *inverted_residual(bench_flow *flow, int64_t channels, int64_t stride, int64_t expansion)
{
    const int64_t hidden = flow->channels * expansion;
    const bool residual = stride == 1 && channels == flow->channels;
    kn_module *conv = kn_nn_sequential_of(NULL, 0);
    if (expansion != 1)
        append(conv, conv_bn_relu6(flow, hidden, 1, 1, 1));
    append(conv, conv_bn_relu6(flow, hidden, 3, stride, hidden));
    append(conv, bench_conv2d(flow, channels, 1, 1, 1));
    append(conv, batch_norm(flow));
    kn_module *block = kn_module_new("InvertedResidual", residual ? inverted_residual_forward : plain_forward, 0, NULL);
    return bench_children(block, (const char *const[]){"conv"}, &conv, 1);
}

static kn_tensor *mobilenet_forward(kn_module *m, kn_tensor *x)
{
    x = kn_adaptive_avg_pool2d(kn_forward(kn_module_child(m, 0), x), 1, 1);
    return kn_forward(kn_module_child(m, 1), kn_flatten(x, 1, -1));
}

kn_module *bench_mobilenetv2(bench_flow *flow)
{
    static const struct {
        int64_t expansion, channels, blocks, stride;
    } stages[] = {{1, 16, 1, 1}, {6, 24, 2, 1},  {6, 32, 3, 2}, {6, 64, 4, 2},
                  {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    kn_module *features = kn_nn_sequential_of(NULL, 0);
    append(features, conv_bn_relu6(flow, 32, 3, 1, 1));
    for (int s = 0; s < COUNT(stages); s++)
        for (int64_t block = 0; block < stages[s].blocks; block++)
            append(features,
                   inverted_residual(flow, stages[s].channels, block ? 1 : stages[s].stride, stages[s].expansion));
    append(features, conv_bn_relu6(flow, 1280, 1, 1, 1));
    flow->height = flow->width = 1;
    kn_module *layers[] = {features, bench_linear(flow, 10)};
    return bench_children(kn_module_new("MobileNetV2", mobilenet_forward, 0, NULL),
                          (const char *const[]){"features", "classifier"}, layers, 2);
}
