/* nn/models/gpt2.c - GPT-2 (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019). Names as in
 * its published files: wte.weight, h.0.attn.c_attn.weight, ln_f.weight. The weights of its linear layers are [in,
 * out]. */
#include <koine/activation.h>
#include <koine/attention.h>
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/shape.h>
#include <math.h>

#include "base/error.h"
#include "nn/models/build.h"

#define STD 0.02 /* of the initial weights */

static kn_module *norm(int64_t size) { return kn_nn_layer_norm(KN_SHAPE(size)); }

/* --- x weight + bias ---------------------------------------------------------------------------------------------- */

typedef struct projection {
    kn_tensor *weight, *bias;
} projection;

static kn_tensor *project(kn_module *m, kn_tensor *x)
{
    const projection *self = m->self;
    return kn_linear(x, kn_t(self->weight), self->bias);
}

static kn_module *projection_new(int64_t in, int64_t out, double std)
{
    kn_module *made = kn_layer_new("Conv1D", project, NULL, &(projection){NULL, NULL}, sizeof(projection));
    if (!made)
        return NULL;
    projection *self = made->self;
    self->weight = kn_model_parameter(made, "weight", KN_SHAPE(in, out), 0, std);
    self->bias = kn_model_parameter(made, "bias", KN_SHAPE(out), 0, 0);
    return self->weight && self->bias ? made : kn_layer_failed(made);
}

/* --- attention: c_attn, c_proj, resid_dropout --------------------------------------------------------------------- */

typedef struct attention {
    int64_t heads;
    double dropout;
} attention;

static kn_tensor *attend(kn_module *m, kn_tensor *x)
{
    const attention *self = m->self;
    kn_tensor *all = kn_apply_child(m, 0, x), *part[3]; /* query, key, value: [N, heads, T, size / heads] */
    if (!all)
        return NULL;
    const int64_t heads = self->heads, size = kn_size(x, 2);
    all = kn_reshape(all, KN_SHAPE(kn_size(x, 0), kn_size(x, 1), 3, heads, size / heads));
    for (int i = 0; i < 3; i++)
        part[i] = kn_transpose(kn_select(all, 2, i), 1, 2);
    kn_tensor *y = kn_scaled_dot_product_attention(part[0], part[1], part[2], .is_causal = true,
                                                   .dropout_p = m->training ? self->dropout : 0);
    y = kn_reshape(kn_transpose(y, 1, 2), kn_ndim(x), kn_shape(x));
    return kn_apply_child(m, 2, kn_apply_child(m, 1, y));
}

static kn_module *attention_new(const kn_models_gpt2_params *p, double residual_std)
{
    const attention self = {p->n_head, p->dropout};
    const kn_module_kind kind = KN_ONE_TO_ONE(attend);
    return kn_model_of_kind("GPT2Attention", &kind, &self, sizeof self,
                            KN_PARTS({"c_attn", projection_new(p->n_embd, 3 * p->n_embd, STD)},
                                     {"c_proj", projection_new(p->n_embd, p->n_embd, residual_std)},
                                     {"resid_dropout", kn_nn_dropout(.p = p->dropout)}));
}

/* --- a block ------------------------------------------------------------------------------------------------------ */

static kn_tensor *mlp_forward(kn_module *m, kn_tensor *x)
{
    x = kn_gelu(kn_apply_child(m, 0, x), .approximate = KN_GELU_TANH);
    return kn_apply_child(m, 2, kn_apply_child(m, 1, x));
}

/* ln_1, attn, ln_2, mlp */
static kn_tensor *block_forward(kn_module *m, kn_tensor *x)
{
    x = kn_add(x, kn_apply_child(m, 1, kn_apply_child(m, 0, x)));
    return kn_add(x, kn_apply_child(m, 3, kn_apply_child(m, 2, x)));
}

static kn_module *block(const kn_models_gpt2_params *p)
{
    const double residual_std = STD / sqrt(2.0 * (double)p->n_layer);
    kn_module *mlp = KN_MODEL_OF("GPT2MLP", mlp_forward, {"c_fc", projection_new(p->n_embd, 4 * p->n_embd, STD)},
                                 {"c_proj", projection_new(4 * p->n_embd, p->n_embd, residual_std)},
                                 {"dropout", kn_nn_dropout(.p = p->dropout)});
    return KN_MODEL_OF("GPT2Block", block_forward, {"ln_1", norm(p->n_embd)}, {"attn", attention_new(p, residual_std)},
                       {"ln_2", norm(p->n_embd)}, {"mlp", mlp});
}

/* --- the network: wte, wpe, drop, h, ln_f ------------------------------------------------------------------------- */

static kn_tensor *forward(kn_module *m, kn_tensor *tokens)
{
    kn_tensor *table = kn_module_get(kn_module_child(m, 0), "weight");
    kn_tensor *places = kn_module_get(kn_module_child(m, 1), "weight");
    if (kn_ndim(tokens) != 2)
        return kn_fail_null(KN_ERR_SHAPE, "GPT2: tokens must be [N, T], not of %d dimensions", kn_ndim(tokens));
    if (kn_size(tokens, 1) > kn_size(places, 0))
        return kn_fail_null(KN_ERR_SHAPE, "GPT2: %lld tokens, but it has %lld positions", (long long)kn_size(tokens, 1),
                            (long long)kn_size(places, 0));
    kn_tensor *x = kn_add(kn_apply_child(m, 0, tokens), kn_narrow(places, 0, 0, kn_size(tokens, 1)));
    for (int i = 2; i < kn_module_child_count(m); i++)
        x = kn_apply_child(m, i, x);
    return kn_linear(x, table, NULL); /* the head shares the embedding's weight */
}

static kn_status check(const kn_models_gpt2_params *p)
{
    if (p->vocab_size < 1 || p->n_positions < 1 || p->n_layer < 1 || p->n_head < 1 || p->n_embd < 1)
        return kn_fail(KN_ERR_ARGUMENT, "models_gpt2: all sizes must be at least 1");
    if (p->n_embd % p->n_head != 0)
        return kn_fail(KN_ERR_ARGUMENT, "models_gpt2: n_embd (%lld) must be a multiple of n_head (%lld)",
                       (long long)p->n_embd, (long long)p->n_head);
    return KN_OK;
}

kn_models_gpt2_params kn_models_gpt2_params_init(void) { return (kn_models_gpt2_params){KN_MODELS_GPT2_DEFAULTS}; }

kn_module *kn_models_gpt2_with(const kn_models_gpt2_params *params)
{
    const kn_models_gpt2_params *p = params ? params : &(kn_models_gpt2_params){KN_MODELS_GPT2_DEFAULTS};
    if (check(p) != KN_OK)
        return kn_error_make_sticky();
    kn_module *blocks = kn_model_sequence();
    for (int64_t i = 0; i < p->n_layer; i++)
        blocks = kn_model_append(blocks, block(p));
    return KN_MODEL_OF("GPT2", forward, {"wte", kn_model_embedding(p->vocab_size, p->n_embd, STD)},
                       {"wpe", kn_model_embedding(p->n_positions, p->n_embd, STD)},
                       {"drop", kn_nn_dropout(.p = p->dropout)}, {"h", blocks}, {"ln_f", norm(p->n_embd)});
}
