/* nn/embedding.c - Embedding and EmbeddingBag. */
#include <koine/autograd.h>
#include <koine/init.h>
#include <koine/pointwise.h>
#include <koine/shape.h>
#include <math.h>

#include "base/error.h"
#include "nn/module.h"

/* Both have a table; an Embedding has only the first fields of the parameters. */
typedef struct embedding {
    kn_tensor *weight;
    kn_nn_embedding_bag_params params;
} embedding;

/* --- applying ----------------------------------------------------------------------------------------------------- */

static kn_tensor *embedding_forward(kn_module *module, kn_tensor *x)
{
    const embedding *self = module->self;
    const kn_nn_embedding_bag_params *p = &self->params;
    return kn_embedding(x, self->weight, .padding_idx = p->padding_idx, .max_norm = p->max_norm,
                        .norm_type = p->norm_type, .scale_grad_by_freq = p->scale_grad_by_freq);
}

static kn_status bag_forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const embedding *self = module->self;
    const kn_nn_embedding_bag_params *p = &self->params;
    outputs[0] = kn_embedding_bag(inputs[0], self->weight, .offsets = inputs[1], .per_sample_weights = inputs[2],
                                  .mode = p->mode, .padding_idx = p->padding_idx, .max_norm = p->max_norm,
                                  .norm_type = p->norm_type, .scale_grad_by_freq = p->scale_grad_by_freq,
                                  .include_last_offset = p->include_last_offset);
    return outputs[0] ? KN_OK : kn_error_status();
}

/* --- printing ----------------------------------------------------------------------------------------------------- */

/* As Python prints a float. */
static void append_real(kn_text *text, const char *name, double value)
{
    kn_text_format(text, ", %s=%g%s", name, value, value == nearbyint(value) && fabs(value) < 1e6 ? ".0" : "");
}

static void append_common(kn_text *text, const kn_nn_embedding_bag_params *p)
{
    if (p->max_norm > 0)
        append_real(text, "max_norm", p->max_norm);
    if (p->norm_type != 2)
        append_real(text, "norm_type", p->norm_type);
    if (p->scale_grad_by_freq)
        kn_text_append(text, ", scale_grad_by_freq=True");
}

static void append_padding(kn_text *text, const kn_nn_embedding_bag_params *p)
{
    if (p->padding_idx != KN_NO_PADDING_IDX)
        kn_text_format(text, ", padding_idx=%lld", (long long)p->padding_idx);
}

static void describe(kn_module *module, kn_text *text)
{
    static const char *const modes[] = {"sum", "mean", "max"};
    const embedding *self = module->self;
    const kn_nn_embedding_bag_params *p = &self->params;

    kn_text_format(text, "%lld, %lld", (long long)p->num_embeddings, (long long)p->embedding_dim);
    if (!module->kind.forward_many)
        append_padding(text, p);
    append_common(text, p);
    if (!module->kind.forward_many)
        return;
    kn_text_format(text, ", mode='%s'", modes[p->mode]);
    append_padding(text, p);
}

/* --- making ------------------------------------------------------------------------------------------------------- */

static kn_status check(const char *name, kn_nn_embedding_bag_params *p)
{
    const int64_t n = p->num_embeddings;

    if (n < 1 || p->embedding_dim < 1)
        return kn_fail(KN_ERR_ARGUMENT, "%s: num_embeddings (%lld) and embedding_dim (%lld) must be at least 1", name,
                       (long long)n, (long long)p->embedding_dim);
    if (p->padding_idx != KN_NO_PADDING_IDX && (p->padding_idx < -n || p->padding_idx >= n))
        return kn_fail(KN_ERR_ARGUMENT, "%s: padding_idx must be from %lld to %lld, not %lld", name, (long long)-n,
                       (long long)n - 1, (long long)p->padding_idx);
    if (!(p->max_norm >= 0))
        return kn_fail(KN_ERR_ARGUMENT, "%s: max_norm must be positive, or 0 for none, not %g", name, p->max_norm);
    if ((int)p->mode < KN_BAG_SUM || (int)p->mode > KN_BAG_MAX)
        return kn_fail(KN_ERR_ARGUMENT, "%s: mode must be one of 0 to 2 (sum, mean, max), not %d", name, (int)p->mode);
    if (p->padding_idx != KN_NO_PADDING_IDX && p->padding_idx < 0)
        p->padding_idx += n;
    return KN_OK;
}

/* N(0, 1), and 0 for the row of the padding. */
static kn_tensor *make_weight(kn_module *module, const kn_nn_embedding_bag_params *p)
{
    const int64_t shape[] = {p->num_embeddings, p->embedding_dim};
    KN_NO_GRAD;
    kn_tensor *weight = kn_empty_with(2, shape, &(kn_tensor_options){.dtype = KN_F32});

    if (!weight || !kn_init_normal_(weight, 0, 1))
        return NULL;
    if (p->padding_idx != KN_NO_PADDING_IDX && !kn_zero_(kn_select(weight, 0, p->padding_idx)))
        return NULL;
    return kn_module_register_parameter(module, "weight", weight);
}

static kn_module *make(const char *name, const kn_module_kind *kind, const kn_nn_embedding_bag_params *params)
{
    embedding self = {.params = *params};

    if (check(name, &self.params) != KN_OK)
        return kn_error_make_sticky();
    kn_module *module = kn_layer_new_kind(name, kind, &self, sizeof self);
    const int depth = module ? kn_scope_begin() : 0;
    if (depth == 0)
        return module ? kn_layer_failed(module) : NULL;
    embedding *made = module->self;
    made->weight = make_weight(module, &self.params);
    kn_scope_end(depth);
    return made->weight ? module : kn_layer_failed(module);
}

kn_nn_embedding_params kn_nn_embedding_params_init(void) { return (kn_nn_embedding_params){KN_NN_EMBEDDING_DEFAULTS}; }

kn_nn_embedding_bag_params kn_nn_embedding_bag_params_init(void)
{
    return (kn_nn_embedding_bag_params){KN_NN_EMBEDDING_BAG_DEFAULTS};
}

kn_module *kn_nn_embedding_with(const kn_nn_embedding_params *params)
{
    const kn_module_kind kind = {
        .forward = embedding_forward, .signature = {1, 0, 1}, .describe = describe, .is_layer = true};
    const kn_nn_embedding_params p = params ? *params : kn_nn_embedding_params_init();
    return make("Embedding", &kind,
                &(kn_nn_embedding_bag_params){.num_embeddings = p.num_embeddings,
                                              .embedding_dim = p.embedding_dim,
                                              .padding_idx = p.padding_idx,
                                              .max_norm = p.max_norm,
                                              .norm_type = p.norm_type,
                                              .scale_grad_by_freq = p.scale_grad_by_freq});
}

kn_module *kn_nn_embedding_bag_with(const kn_nn_embedding_bag_params *params)
{
    const kn_module_kind kind = {
        .forward_many = bag_forward, .signature = {3, 2, 1}, .describe = describe, .is_layer = true};
    const kn_nn_embedding_bag_params defaults = {KN_NN_EMBEDDING_BAG_DEFAULTS};
    return make("EmbeddingBag", &kind, params ? params : &defaults);
}
