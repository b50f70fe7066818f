/* nn/models/mobilenet.c - MobileNetV2 (Sandler et al. 2018) and MobileNetV3 (Howard et al. 2019). Names as in
 * torchvision. */
#include <koine/pointwise.h>
#include <koine/pool.h>
#include <koine/shape.h>

#include "nn/models/squeeze.h"

/* Child 0 is the sequence; its result is added to x if the shape is unchanged. */
static kn_tensor *residual_forward(kn_module *m, kn_tensor *x) { return kn_add(x, kn_apply_child(m, 0, x)); }
static kn_tensor *plain_forward(kn_module *m, kn_tensor *x) { return kn_apply_child(m, 0, x); }

/* features, the mean over each image, classifier */
static kn_tensor *forward(kn_module *m, kn_tensor *x)
{
    x = kn_adaptive_avg_pool2d(kn_apply_child(m, 0, x), 1, 1);
    return kn_apply_child(m, 1, kn_flatten(x, 1, -1));
}

/* --- version 2 ---------------------------------------------------------------------------------------------------- */

static kn_module *conv_relu6(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t groups)
{
    return kn_model_conv_norm(&(kn_conv_norm){in, out, kernel, stride, groups, .activation = kn_nn_relu6});
}

/* 1x1 to `expansion` times the channels, 3x3 of each channel, 1x1 back without activation. */
static kn_module *inverted_residual(int64_t in, int64_t out, int64_t stride, int64_t expansion)
{
    const int64_t hidden = in * expansion;
    kn_module *conv = kn_model_sequence();
    if (expansion != 1)
        conv = kn_model_append(conv, conv_relu6(in, hidden, 1, 1, 1));
    conv = kn_model_append(conv, conv_relu6(hidden, hidden, 3, stride, hidden));
    conv = kn_model_append(conv, kn_model_conv(hidden, out, 1, 1, 1));
    conv = kn_model_append(conv, kn_nn_batch_norm2d(.num_features = out));
    return KN_MODEL_OF("InvertedResidual", stride == 1 && in == out ? residual_forward : plain_forward, {"conv", conv});
}

kn_module *kn_model_mobilenet_v2(const kn_models_params *params)
{
    static const struct {
        int64_t expansion, channels, blocks, stride;
    } stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                  {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    const bool small = params->small_images;
    kn_module *features = kn_model_sequence();
    features = kn_model_append(features, conv_relu6(params->in_channels, 32, 3, small ? 1 : 2, 1));
    int64_t channels = 32;
    for (int s = 0; s < KN_COUNT(stages); s++)
        for (int64_t i = 0; i < stages[s].blocks; i++) {
            const int64_t stride = i > 0 || (small && s == 1) ? 1 : stages[s].stride;
            features =
                kn_model_append(features, inverted_residual(channels, stages[s].channels, stride, stages[s].expansion));
            channels = stages[s].channels;
        }
    features = kn_model_append(features, conv_relu6(channels, 1280, 1, 1, 1));
    return KN_MODEL_OF("MobileNetV2", forward, {"features", features},
                       {"classifier", kn_nn_sequential(kn_nn_dropout(.p = kn_model_dropout(params, 0.2)),
                                                       kn_model_linear(1280, params->num_classes, 0.01))});
}

/* --- version 3 ---------------------------------------------------------------------------------------------------- */

typedef struct bottleneck {
    short in, kernel, hidden, out;
    bool squeezes, hardswish;
    short stride;
} bottleneck;

static const bottleneck large[] = {
    {16, 3, 16, 16, false, false, 1},  {16, 3, 64, 24, false, false, 2},  {24, 3, 72, 24, false, false, 1},
    {24, 5, 72, 40, true, false, 2},   {40, 5, 120, 40, true, false, 1},  {40, 5, 120, 40, true, false, 1},
    {40, 3, 240, 80, false, true, 2},  {80, 3, 200, 80, false, true, 1},  {80, 3, 184, 80, false, true, 1},
    {80, 3, 184, 80, false, true, 1},  {80, 3, 480, 112, true, true, 1},  {112, 3, 672, 112, true, true, 1},
    {112, 5, 672, 160, true, true, 2}, {160, 5, 960, 160, true, true, 1}, {160, 5, 960, 160, true, true, 1}};
static const bottleneck small[] = {
    {16, 3, 16, 16, true, false, 2}, {16, 3, 72, 24, false, false, 2}, {24, 3, 88, 24, false, false, 1},
    {24, 5, 96, 40, true, true, 2},  {40, 5, 240, 40, true, true, 1},  {40, 5, 240, 40, true, true, 1},
    {40, 5, 120, 48, true, true, 1}, {48, 5, 144, 48, true, true, 1},  {48, 5, 288, 96, true, true, 2},
    {96, 5, 576, 96, true, true, 1}, {96, 5, 576, 96, true, true, 1}};

static kn_module *conv_norm(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t groups,
                            kn_module *(*activation)(void))
{
    return kn_model_conv_norm(&(kn_conv_norm){in, out, kernel, stride, groups, 1e-3, 0.01, activation});
}

static kn_module *block_of(const bottleneck *b)
{
    kn_module *(*const activation)(void) = b->hardswish ? kn_nn_hardswish : kn_nn_relu;
    kn_module *block = kn_model_sequence();
    if (b->hidden != b->in)
        block = kn_model_append(block, conv_norm(b->in, b->hidden, 1, 1, 1, activation));
    block = kn_model_append(block, conv_norm(b->hidden, b->hidden, b->kernel, b->stride, b->hidden, activation));
    if (b->squeezes)
        block = kn_model_append(
            block, kn_model_squeeze(b->hidden, kn_model_divisible(b->hidden / 4, 8), kn_nn_relu, kn_nn_hardsigmoid));
    block = kn_model_append(block, conv_norm(b->hidden, b->out, 1, 1, 1, NULL));
    return KN_MODEL_OF("InvertedResidual", b->stride == 1 && b->in == b->out ? residual_forward : plain_forward,
                       {"block", block});
}

static kn_module *version3(const kn_models_params *params, const bottleneck *blocks, int count, int64_t last)
{
    kn_module *features = kn_model_sequence();
    features = kn_model_append(
        features, conv_norm(params->in_channels, blocks[0].in, 3, params->small_images ? 1 : 2, 1, kn_nn_hardswish));
    for (int i = 0; i < count; i++)
        features = kn_model_append(features, block_of(&blocks[i]));
    const int64_t out = blocks[count - 1].out;
    features = kn_model_append(features, conv_norm(out, 6 * out, 1, 1, 1, kn_nn_hardswish));
    return KN_MODEL_OF("MobileNetV3", forward, {"features", features},
                       {"classifier", kn_nn_sequential(kn_model_linear(6 * out, last, 0.01), kn_nn_hardswish(),
                                                       kn_nn_dropout(.p = kn_model_dropout(params, 0.2)),
                                                       kn_model_linear(last, params->num_classes, 0.01))});
}

kn_module *kn_model_mobilenet_v3_large(const kn_models_params *params)
{
    return version3(params, large, KN_COUNT(large), 1280);
}

kn_module *kn_model_mobilenet_v3_small(const kn_models_params *params)
{
    return version3(params, small, KN_COUNT(small), 1024);
}
