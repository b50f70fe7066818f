/* koine/nn/transformer.h - Transformer layers. Constructors as in koine/module.h; parameters have PyTorch's names.
 *
 * Masks as in kn_nn_multihead_attention: true hides. Masks of source and target [L, L], of the memory [L, S], or one
 * for each head, [N * nhead, L, S]; key_padding_mask [N, S]. */
#ifndef KOINE_NN_TRANSFORMER_H
#define KOINE_NN_TRANSFORMER_H

#include <koine/common.h>
#include <koine/module.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

typedef enum kn_transformer_activation {
    KN_TRANSFORMER_RELU,
    KN_TRANSFORMER_GELU /* x (1 + erf(x / sqrt(2))) / 2 */
} kn_transformer_activation;

typedef struct kn_nn_transformer_layer_params {
    int64_t d_model, nhead;               /* size of a token, and number of heads, of which it is a multiple */
    int64_t dim_feedforward;              /* default 2048 */
    double dropout;                       /* default 0.1 */
    kn_transformer_activation activation; /* default ReLU */
    double layer_norm_eps;                /* default 1e-5 */
    bool batch_first;                     /* [N, L, d_model] instead of [L, N, d_model]; default false */
    bool norm_first;                      /* normalisation before attention and feed-forward; default false: after */
    bool bias;                            /* default true */
} kn_nn_transformer_layer_params;
#define KN_NN_TRANSFORMER_LAYER_DEFAULTS .dim_feedforward = 2048, .dropout = 0.1, .layer_norm_eps = 1e-5, .bias = true
KN_API kn_nn_transformer_layer_params kn_nn_transformer_layer_params_init(void);

/* Inputs: src, src_mask, src_key_padding_mask; the masks may be omitted. */
KN_API kn_module *kn_nn_transformer_encoder_layer_with(const kn_nn_transformer_layer_params *params);
#define kn_nn_transformer_encoder_layer(...)                                                                           \
    KN_CALL(kn_nn_transformer_encoder_layer_with(                                                                      \
        &(kn_nn_transformer_layer_params){KN_NN_TRANSFORMER_LAYER_DEFAULTS, __VA_ARGS__}))

/* Inputs: tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask; the masks may be
 * omitted. */
KN_API kn_module *kn_nn_transformer_decoder_layer_with(const kn_nn_transformer_layer_params *params);
#define kn_nn_transformer_decoder_layer(...)                                                                           \
    KN_CALL(kn_nn_transformer_decoder_layer_with(                                                                      \
        &(kn_nn_transformer_layer_params){KN_NN_TRANSFORMER_LAYER_DEFAULTS, __VA_ARGS__}))

/* Layers applied one after the other, "layers.0", "layers.1", ..., and then `norm`, if it is not NULL. They take
 * ownership of all, also on failure. Inputs as those of a layer, whose masks all layers get. Unlike PyTorch's, layers
 * made one by one have different initial values. */
KN_API kn_module *kn_nn_transformer_encoder_of(kn_module *const *layers, int count, kn_module *norm);
KN_API kn_module *kn_nn_transformer_decoder_of(kn_module *const *layers, int count, kn_module *norm);

/* The same with num_layers layers of the same parameters: kn_nn_transformer_encoder(6, NULL, .d_model = 512, .nhead =
 * 8). */
KN_API kn_module *kn_nn_transformer_encoder_with(int num_layers, kn_module *norm,
                                                 const kn_nn_transformer_layer_params *params);
KN_API kn_module *kn_nn_transformer_decoder_with(int num_layers, kn_module *norm,
                                                 const kn_nn_transformer_layer_params *params);
#define kn_nn_transformer_encoder(num_layers, norm, ...)                                                               \
    KN_CALL(kn_nn_transformer_encoder_with(                                                                            \
        num_layers, norm, &(kn_nn_transformer_layer_params){KN_NN_TRANSFORMER_LAYER_DEFAULTS, __VA_ARGS__}))
#define kn_nn_transformer_decoder(num_layers, norm, ...)                                                               \
    KN_CALL(kn_nn_transformer_decoder_with(                                                                            \
        num_layers, norm, &(kn_nn_transformer_layer_params){KN_NN_TRANSFORMER_LAYER_DEFAULTS, __VA_ARGS__}))

/* An encoder and a decoder, each with a final LayerNorm. Inputs: src, tgt, src_mask, tgt_mask, memory_mask,
 * src_key_padding_mask, tgt_key_padding_mask, memory_key_padding_mask; the masks may be omitted. */
typedef struct kn_nn_transformer_params {
    int64_t d_model, nhead;                     /* default 512, 8 */
    int num_encoder_layers, num_decoder_layers; /* default 6 */
    int64_t dim_feedforward;                    /* default 2048 */
    double dropout;                             /* default 0.1 */
    kn_transformer_activation activation;       /* default ReLU */
    double layer_norm_eps;                      /* default 1e-5 */
    bool batch_first, norm_first;               /* default false */
    bool bias;                                  /* default true */
} kn_nn_transformer_params;
#define KN_NN_TRANSFORMER_DEFAULTS                                                                                     \
    .d_model = 512, .nhead = 8, .num_encoder_layers = 6, .num_decoder_layers = 6, .dim_feedforward = 2048,             \
    .dropout = 0.1, .layer_norm_eps = 1e-5, .bias = true
KN_API kn_nn_transformer_params kn_nn_transformer_params_init(void);
KN_API kn_module *kn_nn_transformer_with(const kn_nn_transformer_params *params);
#define kn_nn_transformer(...)                                                                                         \
    KN_CALL(kn_nn_transformer_with(&(kn_nn_transformer_params){KN_NN_TRANSFORMER_DEFAULTS, __VA_ARGS__}))

/* Transformer.generate_square_subsequent_mask: [size, size], -infinity above the diagonal, else 0, so that position i
 * sees those up to i. */
KN_API kn_tensor *kn_nn_square_subsequent_mask_with(int64_t size, const kn_tensor_options *options);
#define kn_nn_square_subsequent_mask(size, ...)                                                                        \
    KN_CALL(kn_nn_square_subsequent_mask_with(size, &(kn_tensor_options){KN_TENSOR_DEFAULTS, __VA_ARGS__}))

/* An encoder, a decoder or a layer of them with a causal mask that is not stored: src or tgt see no later positions.
 * Further masks: the padding of the keys. */
KN_API kn_tensor *kn_transformer_encode_causal(kn_module *encoder, kn_tensor *src, kn_tensor *src_key_padding_mask);
KN_API kn_tensor *kn_transformer_decode_causal(kn_module *decoder, kn_tensor *tgt, kn_tensor *memory,
                                               kn_tensor *tgt_key_padding_mask, kn_tensor *memory_key_padding_mask);

KN_END_DECLS

#endif
