/* koine/attention.h - attention. Tensor expressions (koine/tensor.h). */
#ifndef KOINE_ATTENTION_H
#define KOINE_ATTENTION_H

#include <koine/common.h>
#include <koine/generator.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

typedef struct kn_scaled_dot_product_attention_params {
    /* bool, true where a query sees a key, or of the query's dtype, added to the scores; broadcasts to [..., H, L, S].
     * Default NULL: all. Not together with is_causal */
    kn_tensor *attn_mask;
    double
        dropout_p;   /* share of the probabilities that become 0; default 0. Not only in training: the caller decides */
    bool is_causal;  /* query i sees keys 0 to i; default false */
    double scale;    /* of the scores; default 0: 1 / sqrt(E) */
    bool enable_gqa; /* grouped queries: H may be a multiple of the keys' number of heads; default false */
    kn_generator *generator; /* of the dropout; default NULL: the device's */
} kn_scaled_dot_product_attention_params;
#define KN_SCALED_DOT_PRODUCT_ATTENTION_DEFAULTS .attn_mask = NULL
KN_API kn_scaled_dot_product_attention_params kn_scaled_dot_product_attention_params_init(void);

/* softmax(scale query key^T + mask) value, with query [..., H, L, E], key [..., H, S, E] and value [..., H, S, Ev], all
 * of one floating dtype; the result is [..., H, L, Ev]. Leading dimensions broadcast. The matrix of scores [L, S] is
 * never stored, neither forward nor backward; gradients of gradients, and that of an attn_mask, store it. A query that
 * sees no key has the result 0. */
KN_API kn_tensor *kn_scaled_dot_product_attention_with(kn_tensor *query, kn_tensor *key, kn_tensor *value,
                                                       const kn_scaled_dot_product_attention_params *params);
#define kn_scaled_dot_product_attention(query, key, value, ...)                                                        \
    KN_CALL(kn_scaled_dot_product_attention_with(                                                                      \
        query, key, value,                                                                                             \
        &(kn_scaled_dot_product_attention_params){KN_SCALED_DOT_PRODUCT_ATTENTION_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
