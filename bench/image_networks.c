/* image_networks.c - ResNet-18 (He et al. 2015) and MobileNetV2 (Sandler et al. 2018) in their forms for CIFAR. */
#include <stdio.h>

#include "networks.h"

#define COUNT(array) (int)(sizeof array / sizeof array[0])

static kn_module *batch_norm(const bench_flow *flow) { return kn_nn_batch_norm2d(.num_features = flow->channels); }

/* `child`, under the next number of a sequence. */
static void append(kn_module *sequence, kn_module *child)
{
    char name[16];
    snprintf(name, sizeof name, "%d", kn_module_child_count(sequence));
    kn_nn_add_module(sequence, name, child);
}

/* --- ResNet ----------------------------------------------------------------------------------- */

enum { CONV1, BN1, CONV2, BN2, DOWNSAMPLE };

/* relu(bn2(conv2(relu(bn1(conv1(x))))) + x), with x projected where its shape changes. */
static kn_tensor *basic_block_forward(kn_module *m, kn_tensor *x)
{
    kn_tensor *y =
        kn_forward_activated(kn_module_child(m, BN1), kn_forward(kn_module_child(m, CONV1), x), KN_ACTIVATION_RELU);
    y = kn_forward(kn_module_child(m, BN2), kn_forward(kn_module_child(m, CONV2), y));
    kn_module *downsample = kn_module_child(m, DOWNSAMPLE);
    return kn_add_activated(y, downsample ? kn_forward(downsample, x) : x, KN_ACTIVATION_RELU);
}

static kn_module *basic_block(bench_flow *flow, int64_t channels, int64_t stride)
{
    static const char *const names[] = {"conv1", "bn1", "conv2", "bn2", "downsample"};
    bench_flow shortcut = *flow;
    const bool projected = stride != 1 || channels != flow->channels;
    kn_module *layers[5] = {NULL};
    layers[CONV1] = bench_conv2d(flow, channels, 3, stride, 1);
    layers[BN1] = batch_norm(flow);
    layers[CONV2] = bench_conv2d(flow, channels, 3, 1, 1);
    layers[BN2] = batch_norm(flow);
    if (projected) {
        const double before = shortcut.flops;
        kn_module *projection = bench_conv2d(&shortcut, channels, 1, stride, 1);
        layers[DOWNSAMPLE] = kn_nn_sequential(projection, batch_norm(&shortcut));
        flow->flops += shortcut.flops - before;
    }
    return bench_children(kn_module_new("BasicBlock", basic_block_forward, 0, NULL), names, layers, projected ? 5 : 4);
}

/* A tensor through all children: named as torchvision's class, which is no Sequential. */
static kn_tensor *resnet_forward(kn_module *m, kn_tensor *x)
{
    x = kn_forward_activated(kn_module_child(m, 1), kn_forward(kn_module_child(m, 0), x), KN_ACTIVATION_RELU);
    for (int i = 2; i < 7; i++) /* four stages, the mean over each image */
        x = kn_forward(kn_module_child(m, i), x);
    return kn_forward(kn_module_child(m, 7), kn_flatten(x, 1, -1));
}

kn_module *bench_resnet18(bench_flow *flow)
{
    static const char *const names[] = {"conv1", "bn1", "layer1", "layer2", "layer3", "layer4", "avgpool", "fc"};
    kn_module *layers[8];
    layers[0] = bench_conv2d(flow, 64, 3, 1, 1);
    layers[1] = batch_norm(flow);
    for (int stage = 0; stage < 4; stage++) {
        kn_module *first = basic_block(flow, 64 << stage, stage ? 2 : 1);
        layers[2 + stage] = kn_nn_sequential(first, basic_block(flow, 64 << stage, 1));
    }
    layers[6] = kn_nn_adaptive_avg_pool2d(1, 1);
    flow->height = flow->width = 1;
    layers[7] = bench_linear(flow, 10);
    return bench_children(kn_module_new("ResNet", resnet_forward, 0, NULL), names, layers, COUNT(names));
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

/* 1x1 to `expansion` times the channels, 3x3 of each channel, 1x1 back without activation; plus x where the shape
 * stays. */
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
