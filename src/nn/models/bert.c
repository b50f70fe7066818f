/* nn/models/bert.c - the BERT encoder (Devlin et al. 2019). Names as in Hugging Face's BertModel:
 * embeddings.word_embeddings.weight, encoder.layer.0.attention.self.query.weight, pooler.dense.weight. */
#include <koine/activation.h>
#include <koine/attention.h>
#include <koine/pointwise.h>
#include <koine/shape.h>

#include "base/error.h"
#include "nn/models/build.h"

#define STD 0.02 /* of the initial weights */
#define EPS 1e-12
enum { PADDING = 0 }; /* the token that fills up short sequences, whose embedding is 0 and does not learn */

static kn_module *norm(int64_t size) { return kn_nn_layer_norm(KN_SHAPE(size), .eps = EPS); }
static kn_module *linear(int64_t in, int64_t out) { return kn_model_linear(in, out, STD); }

/* Child `child` applied to x and the mask of attention, or the residual. */
static kn_tensor *apply_pair(kn_module *m, int child, kn_tensor *x, kn_tensor *second)
{
    kn_tensor *y = NULL;
    kn_forward_many(kn_module_child(m, child), KN_TENSORS(x, second), &y, 1);
    return y;
}

/* --- embeddings: words, positions, types, norm -------------------------------------------------------------------- */

static kn_status embed(kn_module *m, kn_tensor *const *inputs, kn_tensor **outputs)
{
    kn_tensor *places = kn_module_get(kn_module_child(m, 1), "weight"), *tokens = inputs[0];
    kn_tensor *types = kn_module_get(kn_module_child(m, 2), "weight");
    if (kn_ndim(tokens) != 2 || kn_size(tokens, 1) > kn_size(places, 0))
        return kn_fail(KN_ERR_SHAPE, "tokens must be [N, T] with T up to %lld", (long long)kn_size(places, 0));
    kn_tensor *x = kn_add(kn_apply_child(m, 0, tokens), kn_narrow(places, 0, 0, kn_size(tokens, 1)));
    x = kn_add(x, inputs[1] ? kn_apply_child(m, 2, inputs[1]) : kn_narrow(types, 0, 0, 1));
    outputs[0] = kn_apply_child(m, 4, kn_apply_child(m, 3, x));
    return KN_OK;
}

/* --- a layer ------------------------------------------------------------------------------------------------------ */

typedef struct attention {
    int64_t heads;
    double dropout;
} attention;

static kn_tensor *heads_of(kn_tensor *x, int64_t heads)
{
    const int64_t size = x ? kn_size(x, 2) : heads;
    return x ? kn_transpose(kn_reshape(x, KN_SHAPE(kn_size(x, 0), kn_size(x, 1), heads, size / heads)), 1, 2) : NULL;
}

static kn_status attend(kn_module *m, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const attention *self = m->self;
    kn_tensor *part[3];
    for (int i = 0; i < 3; i++)
        part[i] = heads_of(kn_apply_child(m, i, inputs[0]), self->heads);
    kn_tensor *y = kn_scaled_dot_product_attention(part[0], part[1], part[2], .attn_mask = inputs[1],
                                                   .dropout_p = m->training ? self->dropout : 0);
    outputs[0] = kn_reshape(kn_transpose(y, 1, 2), kn_ndim(inputs[0]), kn_shape(inputs[0]));
    return KN_OK;
}

/* LayerNorm(dropout(dense(x)) + residual) */
static kn_status output_forward(kn_module *m, kn_tensor *const *inputs, kn_tensor **outputs)
{
    kn_tensor *y = kn_apply_child(m, 2, kn_apply_child(m, 0, inputs[0]));
    outputs[0] = kn_apply_child(m, 1, kn_add(y, inputs[1]));
    return KN_OK;
}

static kn_module *output(int64_t in, int64_t out, double dropout)
{
    const kn_module_kind kind = KN_TWO_TO_ONE(output_forward, 0);
    return kn_model_of_kind(
        "BertOutput", &kind, NULL, 0,
        KN_PARTS({"dense", linear(in, out)}, {"LayerNorm", norm(out)}, {"dropout", kn_nn_dropout(.p = dropout)}));
}

static kn_status attention_forward(kn_module *m, kn_tensor *const *inputs, kn_tensor **outputs)
{
    outputs[0] = apply_pair(m, 1, apply_pair(m, 0, inputs[0], inputs[1]), inputs[0]);
    return KN_OK;
}

static kn_tensor *intermediate_forward(kn_module *m, kn_tensor *x) { return kn_gelu(kn_apply_child(m, 0, x)); }

/* attention, intermediate, output */
static kn_status layer_forward(kn_module *m, kn_tensor *const *inputs, kn_tensor **outputs)
{
    kn_tensor *x = apply_pair(m, 0, inputs[0], inputs[1]);
    outputs[0] = apply_pair(m, 2, kn_apply_child(m, 1, x), x);
    return KN_OK;
}

static kn_module *attention_new(const kn_models_bert_params *p)
{
    const int64_t n = p->hidden_size;
    const attention self = {p->num_attention_heads, p->dropout};
    const kn_module_kind inner = KN_TWO_TO_ONE(attend, 1), outer = KN_TWO_TO_ONE(attention_forward, 1);
    kn_module *made =
        kn_model_of_kind("BertSelfAttention", &inner, &self, sizeof self,
                         KN_PARTS({"query", linear(n, n)}, {"key", linear(n, n)}, {"value", linear(n, n)}));
    return kn_model_of_kind("BertAttention", &outer, NULL, 0,
                            KN_PARTS({"self", made}, {"output", output(n, n, p->dropout)}));
}

static kn_module *layer(const kn_models_bert_params *p)
{
    const int64_t n = p->hidden_size, wide = p->intermediate_size;
    const kn_module_kind kind = KN_TWO_TO_ONE(layer_forward, 1);
    kn_module *intermediate = KN_MODEL_OF("BertIntermediate", intermediate_forward, {"dense", linear(n, wide)});
    return kn_model_of_kind("BertLayer", &kind, NULL, 0,
                            KN_PARTS({"attention", attention_new(p)}, {"intermediate", intermediate},
                                     {"output", output(wide, n, p->dropout)}));
}

/* --- the network -------------------------------------------------------------------------------------------------- */

static kn_status encode(kn_module *m, kn_tensor *const *inputs, kn_tensor **outputs)
{
    kn_module *layers = kn_module_child(m, 0);
    kn_tensor *x = inputs[0];
    for (int i = 0; i < kn_module_child_count(layers); i++)
        x = apply_pair(layers, i, x, inputs[1]);
    outputs[0] = x;
    return KN_OK;
}

/* The first token's result, for tasks on whole sequences. */
static kn_tensor *pool(kn_module *m, kn_tensor *x) { return kn_tanh(kn_apply_child(m, 0, kn_select(x, 1, 0))); }

/* tokens, attention mask (1: a token, 0: padding), token types */
static kn_status forward(kn_module *m, kn_tensor *const *inputs, kn_tensor **outputs)
{
    kn_tensor *mask = inputs[1];
    if (mask && kn_ndim(mask) != 2)
        return kn_fail(KN_ERR_SHAPE, "the attention mask must be [N, T], not of %d dimensions", kn_ndim(mask));
    if (mask) /* [N, 1, 1, T]: the same for all heads and queries */
        mask = kn_reshape(kn_to_dtype(mask, KN_BOOL), KN_SHAPE(kn_size(mask, 0), 1, 1, kn_size(mask, 1)));
    outputs[0] = apply_pair(m, 1, apply_pair(m, 0, inputs[0], inputs[2]), mask);
    outputs[1] = kn_apply_child(m, 2, outputs[0]);
    return KN_OK;
}

kn_models_bert_params kn_models_bert_params_init(void) { return (kn_models_bert_params){KN_MODELS_BERT_DEFAULTS}; }

static kn_status check(const kn_models_bert_params *p)
{
    if (p->vocab_size < 1 || p->hidden_size < 1 || p->num_hidden_layers < 1 || p->num_attention_heads < 1 ||
        p->intermediate_size < 1 || p->max_position_embeddings < 1 || p->type_vocab_size < 1)
        return kn_fail(KN_ERR_ARGUMENT, "models_bert: all sizes must be at least 1");
    if (p->hidden_size % p->num_attention_heads != 0)
        return kn_fail(KN_ERR_ARGUMENT,
                       "models_bert: hidden_size (%lld) must be a multiple of num_attention_heads (%lld)",
                       (long long)p->hidden_size, (long long)p->num_attention_heads);
    return KN_OK;
}

kn_module *kn_models_bert_with(const kn_models_bert_params *params)
{
    const kn_models_bert_params *p = params ? params : &(kn_models_bert_params){KN_MODELS_BERT_DEFAULTS};
    if (check(p) != KN_OK)
        return kn_error_make_sticky();
    const int64_t n = p->hidden_size;
    const kn_module_kind embeds = KN_TWO_TO_ONE(embed, 1), encodes = KN_TWO_TO_ONE(encode, 1);
    const kn_module_kind whole = {
        .forward_many = forward, .signature = {.inputs = 3, .optional = 2, .outputs = 2}, .is_layer = true};
    kn_module *layers = kn_model_sequence();
    for (int64_t i = 0; i < p->num_hidden_layers; i++)
        layers = kn_model_append(layers, layer(p));
    kn_module *tables =
        kn_model_of_kind("BertEmbeddings", &embeds, NULL, 0,
                         KN_PARTS({"word_embeddings", kn_model_embedding_padded(p->vocab_size, n, STD, PADDING)},
                                  {"position_embeddings", kn_model_embedding(p->max_position_embeddings, n, STD)},
                                  {"token_type_embeddings", kn_model_embedding(p->type_vocab_size, n, STD)},
                                  {"LayerNorm", norm(n)}, {"dropout", kn_nn_dropout(.p = p->dropout)}));
    return kn_model_of_kind(
        "BertModel", &whole, NULL, 0,
        KN_PARTS({"embeddings", tables},
                 {"encoder", kn_model_of_kind("BertEncoder", &encodes, NULL, 0, KN_PARTS({"layer", layers}))},
                 {"pooler", KN_MODEL_OF("BertPooler", pool, {"dense", linear(n, n)})}));
}
