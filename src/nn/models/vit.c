/* nn/models/vit.c - vision transformers (Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021). Names as in
 * torchvision. */
#include <koine/init.h>
#include <koine/join.h>
#include <koine/pointwise.h>
#include <koine/shape.h>
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "nn/models/build.h"

#define EPS 1e-6
#define STD 0.02      /* of the places' initial values */
#define BIAS_STD 1e-6 /* of the biases of the feed-forward layers */

static kn_module *norm(int64_t size) { return kn_nn_layer_norm(KN_SHAPE(size), .eps = EPS); }

/* --- a block: ln_1, self_attention, dropout, ln_2, mlp ------------------------------------------------------------ */

static kn_tensor *block_forward(kn_module *m, kn_tensor *x)
{
    kn_tensor *y = kn_apply_child(m, 0, x), *found = NULL;
    kn_forward_many(kn_module_child(m, 1), KN_TENSORS(y, y, y), &found, 1);
    x = kn_add(kn_apply_child(m, 2, found), x);
    return kn_add(x, kn_apply_child(m, 4, kn_apply_child(m, 3, x)));
}

static kn_module *feed_forward(int64_t in, int64_t out)
{
    kn_module *linear = kn_nn_linear(.in_features = in, .out_features = out);
    if (!linear)
        return NULL;
    const bool done = kn_init_xavier_uniform_(kn_module_get(linear, "weight"), 1) &&
                      kn_init_normal_(kn_module_get(linear, "bias"), 0, BIAS_STD);
    return done ? linear : kn_layer_failed(linear);
}

static kn_module *block(const kn_models_vit_params *p)
{
    kn_module *attention = kn_nn_multihead_attention(.embed_dim = p->hidden_dim, .num_heads = p->num_heads,
                                                     .dropout = p->attention_dropout, .batch_first = true);
    kn_module *mlp =
        kn_nn_sequential(feed_forward(p->hidden_dim, p->mlp_dim), kn_nn_gelu(), kn_nn_dropout(.p = p->dropout),
                         feed_forward(p->mlp_dim, p->hidden_dim), kn_nn_dropout(.p = p->dropout));
    return KN_MODEL_OF("EncoderBlock", block_forward, {"ln_1", norm(p->hidden_dim)}, {"self_attention", attention},
                       {"dropout", kn_nn_dropout(.p = p->dropout)}, {"ln_2", norm(p->hidden_dim)}, {"mlp", mlp});
}

/* --- the encoder: dropout, layers, ln ----------------------------------------------------------------------------- */

typedef struct encoder {
    kn_tensor *pos_embedding;
} encoder;

static kn_tensor *encoder_forward(kn_module *m, kn_tensor *x)
{
    x = kn_add(x, ((const encoder *)m->self)->pos_embedding);
    for (int i = 0; i < 3; i++)
        x = kn_apply_child(m, i, x);
    return x;
}

static kn_module *encoder_new(const kn_models_vit_params *p, int64_t tokens)
{
    const kn_module_kind kind = KN_ONE_TO_ONE(encoder_forward);
    kn_module *layers = kn_model_sequence();
    for (int64_t i = 0; i < p->num_layers; i++) {
        char name[40];
        snprintf(name, sizeof name, "encoder_layer_%lld", (long long)i);
        layers = kn_model_add(layers, name, block(p));
    }
    kn_module *made = kn_model_of_kind(
        "Encoder", &kind, &(encoder){NULL}, sizeof(encoder),
        KN_PARTS({"dropout", kn_nn_dropout(.p = p->dropout)}, {"layers", layers}, {"ln", norm(p->hidden_dim)}));
    if (!made)
        return NULL;
    encoder *self = made->self;
    self->pos_embedding = kn_model_parameter(made, "pos_embedding", KN_SHAPE(1, tokens, p->hidden_dim), 0, STD);
    return self->pos_embedding ? made : kn_layer_failed(made);
}

/* --- the network: conv_proj, encoder, heads ----------------------------------------------------------------------- */

typedef struct vit {
    int64_t image_size;
    kn_tensor *class_token;
} vit;

/* The patches as tokens [N, T, hidden_dim], after the token of the class. */
static kn_tensor *tokens_of(const vit *self, kn_tensor *patches)
{
    if (!patches)
        return NULL;
    const int64_t n = kn_size(patches, 0), hidden = kn_size(patches, 1);
    kn_tensor *tokens = kn_transpose(kn_reshape(patches, KN_SHAPE(n, hidden, -1)), 1, 2);
    return kn_cat(KN_TENSORS(kn_expand(self->class_token, KN_SHAPE(n, 1, hidden)), tokens), 1);
}

static kn_tensor *forward(kn_module *m, kn_tensor *x)
{
    const vit *self = m->self;
    const bool is_image = kn_ndim(x) == 4;
    if (!is_image || kn_size(x, 2) != self->image_size || kn_size(x, 3) != self->image_size)
        return kn_fail_null(KN_ERR_SHAPE, "VisionTransformer: images must be [N, C, %lld, %lld], not of height %lld",
                            (long long)self->image_size, (long long)self->image_size,
                            (long long)(is_image ? kn_size(x, 2) : 0));
    x = kn_apply_child(m, 1, tokens_of(self, kn_apply_child(m, 0, x)));
    return kn_apply_child(m, 2, kn_select(x, 1, 0));
}

static kn_module *patches_new(const kn_models_vit_params *p)
{
    kn_module *conv = kn_nn_conv2d(.in_channels = p->in_channels, .out_channels = p->hidden_dim,
                                   .kernel_size = p->patch_size, .stride = p->patch_size);
    if (!conv)
        return NULL;
    const double fan_in = (double)(p->in_channels * p->patch_size * p->patch_size);
    const bool done = kn_init_trunc_normal_(kn_module_get(conv, "weight"), 0, sqrt(1 / fan_in), -2, 2) &&
                      kn_init_uniform_(kn_module_get(conv, "bias"), 0, 0);
    return done ? conv : kn_layer_failed(conv);
}

kn_models_vit_params kn_models_vit_params_init(void) { return (kn_models_vit_params){KN_MODELS_VIT_DEFAULTS}; }

static kn_status check(const kn_models_vit_params *p)
{
    if (p->image_size < 1 || p->patch_size < 1 || p->num_layers < 1 || p->num_heads < 1 || p->hidden_dim < 1 ||
        p->mlp_dim < 1 || p->num_classes < 1 || p->in_channels < 1)
        return kn_fail(KN_ERR_ARGUMENT, "models_vit: all sizes must be at least 1");
    if (p->image_size % p->patch_size != 0)
        return kn_fail(KN_ERR_ARGUMENT, "models_vit: image_size (%lld) must be a multiple of patch_size (%lld)",
                       (long long)p->image_size, (long long)p->patch_size);
    if (p->hidden_dim % p->num_heads != 0)
        return kn_fail(KN_ERR_ARGUMENT, "models_vit: hidden_dim (%lld) must be a multiple of num_heads (%lld)",
                       (long long)p->hidden_dim, (long long)p->num_heads);
    return KN_OK;
}

kn_module *kn_models_vit_with(const kn_models_vit_params *params)
{
    const kn_models_vit_params *p = params ? params : &(kn_models_vit_params){KN_MODELS_VIT_DEFAULTS};
    const kn_module_kind kind = KN_ONE_TO_ONE(forward);
    if (check(p) != KN_OK)
        return kn_error_make_sticky();
    const int64_t patches = p->image_size / p->patch_size;
    kn_module *heads = kn_model_add(kn_model_sequence(), "head", kn_model_linear(p->hidden_dim, p->num_classes, 0));
    kn_module *made = kn_model_of_kind(
        "VisionTransformer", &kind, &(vit){p->image_size, NULL}, sizeof(vit),
        KN_PARTS({"conv_proj", patches_new(p)}, {"encoder", encoder_new(p, patches * patches + 1)}, {"heads", heads}));
    if (!made)
        return NULL;
    vit *self = made->self;
    self->class_token = kn_model_parameter(made, "class_token", KN_SHAPE(1, 1, p->hidden_dim), 0, 0);
    return self->class_token ? made : kn_layer_failed(made);
}

/* --- the published sizes ------------------------------------------------------------------------------------------ */

static kn_module *published(const kn_models_params *params, kn_models_vit_params size)
{
    const bool small = params->small_images;
    size.patch_size = small ? size.patch_size / 4 : size.patch_size;
    size.image_size = params->image_size > 0 ? params->image_size : small ? 32 : 224;
    size.dropout = kn_model_dropout(params, 0);
    size.num_classes = params->num_classes;
    size.in_channels = params->in_channels;
    return kn_models_vit_with(&size);
}

#define VIT(name, patch, layers, heads, hidden, mlp)                                                                   \
    kn_module *kn_model_##name(const kn_models_params *params)                                                         \
    {                                                                                                                  \
        return published(                                                                                              \
            params,                                                                                                    \
            (kn_models_vit_params){                                                                                    \
                .patch_size = patch, .num_layers = layers, .num_heads = heads, .hidden_dim = hidden, .mlp_dim = mlp}); \
    }
VIT(vit_b_16, 16, 12, 12, 768, 3072)
VIT(vit_b_32, 32, 12, 12, 768, 3072)
VIT(vit_l_16, 16, 24, 16, 1024, 4096)
VIT(vit_l_32, 32, 24, 16, 1024, 4096)
VIT(vit_h_14, 14, 32, 16, 1280, 5120)
