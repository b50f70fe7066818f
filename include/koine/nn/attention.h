/* koine/nn/attention.h - layers with attention. Constructors as in koine/module.h. */
#ifndef KOINE_NN_ATTENTION_H
#define KOINE_NN_ATTENTION_H

#include <koine/common.h>
#include <koine/module.h>

KN_BEGIN_DECLS

/* torch.nn.MultiheadAttention: queries, keys and values are projected, divided into heads, and the heads' results
 * (kn_scaled_dot_product_attention) projected again. The parameters have PyTorch's names: in_proj_weight, or
 * q_proj_weight, k_proj_weight and v_proj_weight with other sizes for key and value; in_proj_bias, bias_k, bias_v;
 * out_proj.weight, out_proj.bias. */
typedef struct kn_nn_multihead_attention_params {
    int64_t embed_dim, num_heads; /* embed_dim is a multiple of num_heads */
    double dropout;               /* of the attention weights, in training; default 0 */
    bool bias;                    /* default true */
    bool add_bias_kv;             /* a further key and value that are learned; default false */
    bool add_zero_attn;           /* a further key and value of zeros; default false */
    int64_t kdim, vdim;           /* sizes of keys and values; default 0: embed_dim */
    bool batch_first;             /* [N, L, E] instead of [L, N, E]; default false */
} kn_nn_multihead_attention_params;
#define KN_NN_MULTIHEAD_ATTENTION_DEFAULTS .bias = true
KN_API kn_nn_multihead_attention_params kn_nn_multihead_attention_params_init(void);
KN_API kn_module *kn_nn_multihead_attention_with(const kn_nn_multihead_attention_params *params);
#define kn_nn_multihead_attention(...)                                                                                 \
    KN_CALL(kn_nn_multihead_attention_with(                                                                            \
        &(kn_nn_multihead_attention_params){KN_NN_MULTIHEAD_ATTENTION_DEFAULTS, __VA_ARGS__}))

/* kn_forward_many(attention, KN_TENSORS(query, key, value, key_padding_mask, attn_mask), &result, 1): query [L, N, E],
 * key [S, N, kdim], value [S, N, vdim], or without N; the masks may be omitted. In masks true hides a key, unlike in
 * kn_scaled_dot_product_attention; numbers are added to the scores. key_padding_mask: [N, S]; attn_mask: [L, S] or
 * [N * num_heads, L, S].
 *
 * kn_multihead_attention is the same with more choices. */
typedef struct kn_multihead_attention_params {
    kn_tensor *key_padding_mask, *attn_mask; /* default NULL */
    bool is_causal;                          /* query i sees keys 0 to i; attn_mask may be NULL then; default false */
    /* default NULL; else receives the attention weights [N, L, S], their mean over the heads, owned as results are: the
     * matrix of scores is then stored. PyTorch's need_weights */
    kn_tensor **weights;
    bool average_attn_weights; /* default true; false: the weights of each head, [N, num_heads, L, S] */
} kn_multihead_attention_params;
#define KN_MULTIHEAD_ATTENTION_DEFAULTS .average_attn_weights = true
KN_API kn_multihead_attention_params kn_multihead_attention_params_init(void);
KN_API kn_tensor *kn_multihead_attention_with(kn_module *attention, kn_tensor *query, kn_tensor *key, kn_tensor *value,
                                              const kn_multihead_attention_params *params);
#define kn_multihead_attention(attention, query, key, value, ...)                                                      \
    KN_CALL(kn_multihead_attention_with(                                                                               \
        attention, query, key, value, &(kn_multihead_attention_params){KN_MULTIHEAD_ATTENTION_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
