/* networks.h - whole networks, built layer by layer while counting their work. */
#pragma once

#include "bench.h"

/* The output so far of a network being built: images of this shape (features are 1 x 1), and the operations of a
 * training step up to here. Only products count, each three times (forward, gradient of the input, gradient of the
 * weight), in the first layer twice, since the gradient of the images is not needed. */
typedef struct bench_flow {
    int64_t batch, channels, height, width;
    double flops;
} bench_flow;

/* Layers without bias, padded by half the kernel; they advance the flow. */
kn_module *bench_conv2d(bench_flow *flow, int64_t out_channels, int64_t kernel, int64_t stride, int64_t groups);
kn_module *bench_linear(bench_flow *flow, int64_t out_features); /* with bias; images are flattened before it */

/* Adds `count` children under these names; takes ownership of all of them, also on failure. */
kn_module *bench_children(kn_module *parent, const char *const *names, kn_module *const *children, int count);

/* ResNet-18 for CIFAR (3x3 stem of stride 1, no max pooling), the standard ResNet-50 (BENCH_IMAGENET_CLASSES) and
 * MobileNetV2 for CIFAR (stride 1 in the stem and in the second stage); the CIFAR networks have 10 classes
 * (image_networks.c). Parameters have torchvision's names. */
#define BENCH_IMAGENET_CLASSES 1000
kn_module *bench_resnet18(bench_flow *flow);
kn_module *bench_resnet50(bench_flow *flow);
kn_module *bench_mobilenetv2(bench_flow *flow);
