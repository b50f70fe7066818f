/* nn/transformer_layer.c - torch.nn.TransformerEncoderLayer and TransformerDecoderLayer: self-attention, in a decoder
 * attention to the encoder's result, and a network of two linear layers, each added to its input. */
#include <koine/activation.h>
#include <koine/pointwise.h>
#include <stdio.h>

#include "base/error.h"
#include "nn/transformer.h"

enum { MOST_PARTS = 3 }; /* of a decoder: attention, attention to the memory, network */

typedef struct layer {
    kn_module *self_attn, *multihead_attn; /* the second: in a decoder */
    kn_module *linear1, *dropout, *linear2;
    kn_module *norms[MOST_PARTS], *dropouts[MOST_PARTS];
    kn_nn_transformer_layer_params params;
    bool is_decoder;
} layer;

const kn_signature kn_transformer_encoder_signature = {.inputs = 3, .optional = 2, .outputs = 1},
                   kn_transformer_decoder_signature = {.inputs = 6, .optional = 4, .outputs = 1};

kn_transformer_call kn_transformer_encoder_call(kn_tensor *const *in)
{
    return (kn_transformer_call){.x = in[0], .mask = in[1], .padding = in[2]};
}

kn_transformer_call kn_transformer_decoder_call(kn_tensor *const *in)
{
    return (kn_transformer_call){
        .x = in[0], .memory = in[1], .mask = in[2], .memory_mask = in[3], .padding = in[4], .memory_padding = in[5]};
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

static kn_tensor *attend(kn_module *attention, kn_tensor *x, kn_tensor *memory, kn_tensor *padding, kn_tensor *mask,
                         bool is_causal)
{
    kn_tensor *y = NULL;
    if (!x)
        return NULL;
    if (is_causal)
        return kn_multihead_attention(attention, x, memory, memory, .key_padding_mask = padding, .is_causal = true);
    kn_tensor *const inputs[] = {x, memory, memory, padding, mask};
    return kn_forward_many(attention, inputs, 5, &y, 1) == KN_OK ? y : kn_error_make_sticky();
}

static kn_tensor *feed_forward(const layer *self, kn_tensor *x)
{
    kn_tensor *inside = self->params.activation == KN_TRANSFORMER_GELU
                            ? kn_gelu(kn_forward(self->linear1, x))
                            : kn_forward_activated(self->linear1, x, KN_ACTIVATION_RELU);
    return kn_forward(self->linear2, kn_forward(self->dropout, inside));
}

/* The part's result before dropout: self-attention, attention to the memory, the network. */
static kn_tensor *part(const layer *self, int index, const kn_transformer_call *call, kn_tensor *x)
{
    if (index == 0)
        return attend(self->self_attn, x, x, call->padding, call->mask, call->is_causal);
    return index == 1 && self->is_decoder
               ? attend(self->multihead_attn, x, call->memory, call->memory_padding, call->memory_mask, false)
               : feed_forward(self, x);
}

kn_tensor *kn_transformer_layer_apply(kn_module *module, const kn_transformer_call *call)
{
    const layer *self = module->self;
    const int parts = self->is_decoder ? 3 : 2;
    kn_tensor *x = call->x;
    for (int i = 0; i < parts; i++) {
        kn_tensor *y = part(self, i, call, self->params.norm_first ? kn_forward(self->norms[i], x) : x);
        x = kn_add(x, kn_forward(self->dropouts[i], y));
        if (!self->params.norm_first)
            x = kn_forward(self->norms[i], x);
    }
    return x;
}

static kn_status encoder_forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const kn_transformer_call call = kn_transformer_encoder_call(inputs);
    outputs[0] = kn_transformer_layer_apply(module, &call);
    return outputs[0] ? KN_OK : kn_error_status();
}

static kn_status decoder_forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const kn_transformer_call call = kn_transformer_decoder_call(inputs);
    outputs[0] = kn_transformer_layer_apply(module, &call);
    return outputs[0] ? KN_OK : kn_error_status();
}

bool kn_is_transformer_layer(const kn_module *module, bool decoder)
{
    return module->kind.forward_many == (decoder ? decoder_forward : encoder_forward);
}

/* --- making it ---------------------------------------------------------------------------------------------------- */

/* Registers a child; false if it could not be made. */
static bool add(kn_module *module, kn_module **slot, const char *name, kn_module *child)
{
    *slot = child ? kn_module_register_module(module, name, child) : NULL;
    return *slot != NULL;
}

static kn_module *new_attention(const kn_nn_transformer_layer_params *p)
{
    return kn_nn_multihead_attention(.embed_dim = p->d_model, .num_heads = p->nhead, .dropout = p->dropout,
                                     .bias = p->bias, .batch_first = p->batch_first);
}

static bool add_numbered(kn_module *module, layer *self, int parts, bool norms)
{
    const kn_nn_transformer_layer_params *p = &self->params;
    bool made = true;
    for (int i = 0; made && i < parts; i++) {
        char name[16];
        snprintf(name, sizeof name, norms ? "norm%d" : "dropout%d", i + 1);
        made = norms ? add(module, &self->norms[i], name,
                           kn_nn_layer_norm(KN_SHAPE(p->d_model), .eps = p->layer_norm_eps, .bias = p->bias))
                     : add(module, &self->dropouts[i], name, kn_nn_dropout(.p = p->dropout));
    }
    return made;
}

/* In PyTorch's order. */
static bool add_children(kn_module *module)
{
    layer *self = module->self;
    const kn_nn_transformer_layer_params *p = &self->params;
    const int parts = self->is_decoder ? 3 : 2;
    return add(module, &self->self_attn, "self_attn", new_attention(p)) &&
           (!self->is_decoder || add(module, &self->multihead_attn, "multihead_attn", new_attention(p))) &&
           add(module, &self->linear1, "linear1",
               kn_nn_linear(.in_features = p->d_model, .out_features = p->dim_feedforward, .bias = p->bias)) &&
           add(module, &self->dropout, "dropout", kn_nn_dropout(.p = p->dropout)) &&
           add(module, &self->linear2, "linear2",
               kn_nn_linear(.in_features = p->dim_feedforward, .out_features = p->d_model, .bias = p->bias)) &&
           add_numbered(module, self, parts, true) && add_numbered(module, self, parts, false);
}

static kn_module *make(const kn_nn_transformer_layer_params *params, bool is_decoder)
{
    static const kn_module_kind kinds[] = {
        {.forward_many = encoder_forward, .signature = {.inputs = 3, .optional = 2, .outputs = 1}, .is_layer = true},
        {.forward_many = decoder_forward, .signature = {.inputs = 6, .optional = 4, .outputs = 1}, .is_layer = true}};
    const char *name = is_decoder ? "TransformerDecoderLayer" : "TransformerEncoderLayer";
    const layer self = {.params = params ? *params : (kn_nn_transformer_layer_params){KN_NN_TRANSFORMER_LAYER_DEFAULTS},
                        .is_decoder = is_decoder};
    const int activation = (int)self.params.activation;
    if (self.params.d_model < 1 || self.params.nhead < 1 || self.params.dim_feedforward < 1)
        return kn_fail_null(
            KN_ERR_ARGUMENT, "%s: d_model (%lld), nhead (%lld) and dim_feedforward (%lld) must be at least 1", name,
            (long long)self.params.d_model, (long long)self.params.nhead, (long long)self.params.dim_feedforward);
    if (activation != KN_TRANSFORMER_RELU && activation != KN_TRANSFORMER_GELU)
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: activation must be relu (0) or gelu (1), not %d", name, activation);
    if (self.params.d_model % self.params.nhead != 0)
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: d_model (%lld) must be divisible by nhead (%lld)", name,
                            (long long)self.params.d_model, (long long)self.params.nhead);
    if (!(self.params.layer_norm_eps >= 0))
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: layer_norm_eps must not be negative: %g", name,
                            self.params.layer_norm_eps);
    kn_module *module = kn_layer_new_kind(name, &kinds[is_decoder], &self, sizeof self);
    if (!module)
        return NULL;
    return add_children(module) ? module : kn_layer_failed(module);
}

kn_nn_transformer_layer_params kn_nn_transformer_layer_params_init(void)
{
    return (kn_nn_transformer_layer_params){KN_NN_TRANSFORMER_LAYER_DEFAULTS};
}

kn_module *kn_nn_transformer_encoder_layer_with(const kn_nn_transformer_layer_params *params)
{
    return make(params, false);
}

kn_module *kn_nn_transformer_decoder_layer_with(const kn_nn_transformer_layer_params *params)
{
    return make(params, true);
}
