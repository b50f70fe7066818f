/* nn/models/efficientnet.c - EfficientNet-B0 (Tan and Le 2019). Names as in torchvision. */
#include <koine/shape.h>

#include "nn/models/squeeze.h"

enum { BLOCKS = 16 };

/* --- a block ------------------------------------------------------------------------------------------------------ */

static kn_tensor *plain_forward(kn_module *m, kn_tensor *x) { return kn_apply_child(m, 0, x); }

/* With a shortcut; p is the probability of leaving the branch out. */
static kn_tensor *residual_forward(kn_module *m, kn_tensor *x)
{
    return kn_add(kn_apply_child(m, 1, kn_apply_child(m, 0, x)), x);
}

static kn_module *conv_silu(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t groups)
{
    return kn_model_conv_norm(&(kn_conv_norm){in, out, kernel, stride, groups, .activation = kn_nn_silu});
}

static kn_module *mb_conv(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t expansion, double p)
{
    const int64_t hidden = in * expansion;
    const bool joins = stride == 1 && in == out;
    kn_module *block = kn_model_sequence();
    if (expansion != 1)
        block = kn_model_append(block, conv_silu(in, hidden, 1, 1, 1));
    block = kn_model_append(block, conv_silu(hidden, hidden, kernel, stride, hidden));
    block = kn_model_append(block, kn_model_squeeze(hidden, in / 4 > 1 ? in / 4 : 1, kn_nn_silu, kn_nn_sigmoid));
    block = kn_model_append(block, kn_model_conv_norm(&(kn_conv_norm){hidden, out, 1, 1, 1, .activation = NULL}));
    return KN_MODEL_OF("MBConv", joins ? residual_forward : plain_forward, {"block", block},
                       {"stochastic_depth", kn_nn_stochastic_depth(p, KN_STOCHASTIC_DEPTH_ROW)});
}

/* --- the network -------------------------------------------------------------------------------------------------- */

static kn_tensor *forward(kn_module *m, kn_tensor *x)
{
    x = kn_apply_child(m, 1, kn_apply_child(m, 0, x));
    return kn_apply_child(m, 2, kn_flatten(x, 1, -1));
}

kn_module *kn_model_efficientnet_b0(const kn_models_params *params)
{
    static const struct {
        int64_t expansion, kernel, stride, channels, blocks;
    } stages[] = {{1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2}, {6, 3, 2, 80, 3},
                  {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1}};
    const double depth = params->stochastic_depth >= 0 ? params->stochastic_depth : 0.2;
    kn_module *features = kn_model_sequence();
    features = kn_model_append(features, conv_silu(params->in_channels, 32, 3, params->small_images ? 1 : 2, 1));
    int64_t channels = 32;
    for (int s = 0, number = 0; s < KN_COUNT(stages); s++) {
        kn_module *stage = kn_model_sequence();
        for (int64_t i = 0; i < stages[s].blocks; i++, number++) {
            stage = kn_model_append(stage, mb_conv(channels, stages[s].channels, stages[s].kernel,
                                                   i > 0 ? 1 : stages[s].stride, stages[s].expansion,
                                                   depth * number / BLOCKS));
            channels = stages[s].channels;
        }
        features = kn_model_append(features, stage);
    }
    features = kn_model_append(features, conv_silu(channels, 1280, 1, 1, 1));
    kn_module *last = kn_nn_linear(.in_features = 1280, .out_features = params->num_classes);
    return KN_MODEL_OF("EfficientNet", forward, {"features", features}, {"avgpool", kn_nn_adaptive_avg_pool2d(1, 1)},
                       {"classifier", kn_nn_sequential(kn_nn_dropout(.p = kn_model_dropout(params, 0.2)), last)});
}
