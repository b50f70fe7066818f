/* nn/transformer.h - between the Transformer's layers and the modules made of them. */
#pragma once

#include "nn/module.h"

/* What a layer applies to: `memory` and its masks are NULL in an encoder. */
typedef struct kn_transformer_call {
    kn_tensor *x, *memory;
    kn_tensor *mask, *memory_mask, *padding, *memory_padding;
    bool is_causal; /* instead of `mask` */
} kn_transformer_call;

/* The inputs of forward, in order: an encoder's or a decoder's. */
kn_transformer_call kn_transformer_encoder_call(kn_tensor *const *inputs);
kn_transformer_call kn_transformer_decoder_call(kn_tensor *const *inputs);

/* Applies a layer of either kind. */
kn_tensor *kn_transformer_layer_apply(kn_module *layer, const kn_transformer_call *call);
bool kn_is_transformer_layer(const kn_module *module, bool decoder);

/* Signatures of encoders, decoders and their layers. */
extern const kn_signature kn_transformer_encoder_signature, kn_transformer_decoder_signature;
