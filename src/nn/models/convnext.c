/* nn/models/convnext.c - ConvNeXt (Liu et al., "A ConvNet for the 2020s", 2022). Names as in torchvision. */
#include <koine/init.h>
#include <koine/norm.h>
#include <koine/pointwise.h>
#include <koine/shape.h>

#include "nn/models/build.h"

#define EPS 1e-6
#define SCALE 1e-6 /* of a block's branch, initially */
#define STD 0.02   /* of the initial weights, cut off at -2 and 2 */

/* --- layers ------------------------------------------------------------------------------------------------------- */

/* Gives a convolution or a linear layer its initial values. */
static kn_module *initialised(kn_module *layer)
{
    if (!layer)
        return NULL;
    const bool done = kn_init_trunc_normal_(kn_module_get(layer, "weight"), 0, STD, -2, 2) &&
                      kn_init_uniform_(kn_module_get(layer, "bias"), 0, 0);
    return done ? layer : kn_layer_failed(layer);
}

static kn_module *linear(int64_t in, int64_t out)
{
    return initialised(kn_nn_linear(.in_features = in, .out_features = out));
}

/* Patches of the image, next to each other, or with `padding` each pixel's neighbourhood. */
static kn_module *conv(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t groups)
{
    return initialised(kn_nn_conv2d(.in_channels = in, .out_channels = out, .kernel_size = kernel, .stride = stride,
                                    .padding = padding, .groups = groups));
}

/* LayerNorm2d: over the channels of each pixel. */
typedef struct norm2d {
    kn_tensor *weight, *bias;
} norm2d;

static kn_tensor *norm2d_forward(kn_module *m, kn_tensor *x)
{
    const norm2d *self = m->self;
    x = kn_layer_norm(kn_permute(x, (const int[]){0, 2, 3, 1}), KN_SHAPE(kn_size(self->weight, 0)),
                      .weight = self->weight, .bias = self->bias, .eps = EPS);
    return kn_permute(x, (const int[]){0, 3, 1, 2});
}

static kn_module *norm2d_new(int64_t channels)
{
    kn_module *made = kn_layer_new("LayerNorm2d", norm2d_forward, NULL, &(norm2d){NULL, NULL}, sizeof(norm2d));
    if (!made)
        return NULL;
    norm2d *self = made->self;
    self->weight = kn_model_parameter(made, "weight", KN_SHAPE(channels), 1, 0);
    self->bias = kn_model_parameter(made, "bias", KN_SHAPE(channels), 0, 0);
    return self->weight && self->bias ? made : kn_layer_failed(made);
}

/* --- a block: x + layer_scale * branch ---------------------------------------------------------------------------- */

typedef struct block {
    kn_tensor *layer_scale;
} block;

static kn_tensor *block_forward(kn_module *m, kn_tensor *x)
{
    return kn_addcmul(x, ((const block *)m->self)->layer_scale, kn_apply_child(m, 1, kn_apply_child(m, 0, x)));
}

/* p: the probability of leaving the branch out. */
static kn_module *block_new(int64_t channels, double p)
{
    const kn_module_kind kind = KN_ONE_TO_ONE(block_forward);
    kn_module *branch =
        kn_nn_sequential(conv(channels, channels, 7, 1, 3, channels), kn_model_permute(true),
                         kn_nn_layer_norm(KN_SHAPE(channels), .eps = EPS), linear(channels, 4 * channels), kn_nn_gelu(),
                         linear(4 * channels, channels), kn_model_permute(false));
    kn_module *made = kn_model_of_kind(
        "CNBlock", &kind, &(block){NULL}, sizeof(block),
        KN_PARTS({"block", branch}, {"stochastic_depth", kn_nn_stochastic_depth(p, KN_STOCHASTIC_DEPTH_ROW)}));
    if (!made)
        return NULL;
    block *self = made->self;
    self->layer_scale = kn_model_parameter(made, "layer_scale", KN_SHAPE(channels, 1, 1), SCALE, 0);
    return self->layer_scale ? made : kn_layer_failed(made);
}

/* --- the network: features, avgpool, classifier ------------------------------------------------------------------- */

static kn_tensor *forward(kn_module *m, kn_tensor *x)
{
    for (int i = 0; i < 3; i++)
        x = kn_apply_child(m, i, x);
    return x;
}

enum { STAGES = 4 };

static kn_module *convnext(const kn_models_params *params, int64_t channels, const int blocks[STAGES], double depth)
{
    const int64_t patch = params->small_images ? 2 : 4;
    kn_module *features =
        kn_model_append(kn_model_sequence(), kn_nn_sequential(conv(params->in_channels, channels, patch, patch, 0, 1),
                                                              norm2d_new(channels)));
    int number = 0, all = 0;
    depth = params->stochastic_depth >= 0 ? params->stochastic_depth : depth;
    for (int s = 0; s < STAGES; s++)
        all += blocks[s];
    for (int s = 0; s < STAGES; s++, channels *= 2) {
        kn_module *stage = kn_model_sequence();
        for (int i = 0; i < blocks[s]; i++, number++)
            stage = kn_model_append(stage, block_new(channels, depth * number / (all - 1)));
        features = kn_model_append(features, stage);
        if (s + 1 == STAGES)
            break;
        features =
            kn_model_append(features, kn_nn_sequential(norm2d_new(channels), conv(channels, 2 * channels, 2, 2, 0, 1)));
    }
    kn_module *classifier =
        kn_nn_sequential(norm2d_new(channels), kn_nn_flatten(), linear(channels, params->num_classes));
    return KN_MODEL_OF("ConvNeXt", forward, {"features", features}, {"avgpool", kn_nn_adaptive_avg_pool2d(1, 1)},
                       {"classifier", classifier});
}

#define CONVNEXT(name, channels, depth, ...)                                                                           \
    kn_module *kn_model_##name(const kn_models_params *params)                                                         \
    {                                                                                                                  \
        return convnext(params, channels, (const int[STAGES])__VA_ARGS__, depth);                                      \
    }
CONVNEXT(convnext_tiny, 96, 0.1, {3, 3, 9, 3})
CONVNEXT(convnext_small, 96, 0.4, {3, 3, 27, 3})
CONVNEXT(convnext_base, 128, 0.5, {3, 3, 27, 3})
CONVNEXT(convnext_large, 192, 0.5, {3, 3, 27, 3})
