/* nn/attention.c - torch.nn.MultiheadAttention. */
#include <koine/attention.h>
#include <koine/autograd.h>
#include <koine/init.h>
#include <koine/join.h>
#include <koine/matmul.h>
#include <koine/norm.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/computed.h"
#include "tensor/scope.h"
#include "tensor/tensor.h"

enum { QUERY, KEY, VALUE, PADDING, MASK, INPUTS };

typedef struct attention {
    kn_tensor *in_proj_weight, *proj_weights[3]; /* the first, or the three others */
    kn_tensor *in_proj_bias, *bias_k, *bias_v;   /* NULL: none */
    kn_module *out_proj;
    kn_nn_multihead_attention_params params;
} attention;

/* --- arguments ---------------------------------------------------------------------------------------------------- */

static kn_status check_inputs(const attention *self, kn_tensor *const *in)
{
    static const char *const names[] = {"query", "key", "value"};
    const int64_t sizes[] = {self->params.embed_dim, self->params.kdim, self->params.vdim};
    char text[KN_DESCRIBE], other[KN_DESCRIBE];
    for (int i = QUERY; i <= VALUE; i++) {
        const bool has_rank = in[i]->ndim == in[QUERY]->ndim && (in[i]->ndim == 2 || in[i]->ndim == 3);
        if (!has_rank || in[i]->shape[in[i]->ndim - 1] != sizes[i])
            return kn_fail(KN_ERR_SHAPE,
                           "MultiheadAttention: %s must be %s or [length, %lld], and the query alike, not %s", names[i],
                           self->params.batch_first ? "[batch, length, size]" : "[length, batch, size]",
                           (long long)sizes[i], kn_tensor_describe(text, sizeof text, in[i]));
    }
    const int batch = in[QUERY]->ndim == 2 ? -1 : self->params.batch_first ? 0 : 1;
    const int length = batch == 0 ? 1 : 0;
    if (in[KEY]->shape[length] != in[VALUE]->shape[length])
        return kn_fail(KN_ERR_SHAPE, "MultiheadAttention: key %s and value %s must have the same length",
                       kn_tensor_describe(text, sizeof text, in[KEY]),
                       kn_tensor_describe(other, sizeof other, in[VALUE]));
    for (int i = KEY; batch >= 0 && i <= VALUE; i++)
        if (in[i]->shape[batch] != in[QUERY]->shape[batch])
            return kn_fail(KN_ERR_SHAPE, "MultiheadAttention: %s %s must have the batch size of the query, %lld",
                           names[i], kn_tensor_describe(text, sizeof text, in[i]), (long long)in[QUERY]->shape[batch]);
    return KN_OK;
}

/* Sizes of a call. */
typedef struct sizes {
    int64_t batch, heads, queries, keys, width; /* width: of a head */
    int length;                                 /* the dimension that counts queries or keys; the other is the batch */
} sizes;

static kn_tensor *number(const kn_tensor *like, double value)
{
    return kn_full_with(0, NULL, kn_scalar_real(value),
                        &(kn_tensor_options){.dtype = like->dtype, .device = like->storage->device});
}

/* A mask as terms of the scores: -infinity where it is true. */
static kn_tensor *as_terms(kn_tensor *mask, const kn_tensor *like)
{
    return mask->dtype == KN_BOOL ? kn_where(mask, number(like, -(double)INFINITY), number(like, 0))
                                  : kn_to_dtype(mask, like->dtype);
}

static kn_status check_mask(const kn_tensor *mask, const char *name, int ndim, const int64_t *shape)
{
    char text[KN_DESCRIBE], wanted[KN_DESCRIBE];
    bool fits = mask->ndim == ndim;
    for (int d = 0; fits && d < ndim; d++)
        fits = mask->shape[d] == shape[d];
    if (!fits)
        return kn_fail(KN_ERR_SHAPE, "MultiheadAttention: %s must be %s, not %s", name,
                       kn_format_shape(wanted, sizeof wanted, ndim, shape),
                       kn_tensor_describe(text, sizeof text, mask));
    if (mask->dtype != KN_BOOL && !kn_dtype_is_floating(mask->dtype))
        return kn_fail(KN_ERR_DTYPE, "MultiheadAttention: %s must be bool or floating, not %s", name,
                       kn_dtype_name(mask->dtype));
    return KN_OK;
}

/* attn_mask as [L, S] or [N, heads, L, S]. */
static kn_status attention_terms(kn_tensor **terms, kn_tensor *mask, sizes s, const kn_tensor *like)
{
    const bool each = mask->ndim == 3;
    KN_TRY(check_mask(mask, "attn_mask", each ? 3 : 2,
                      each ? (const int64_t[]){s.batch * s.heads, s.queries, s.keys}
                           : (const int64_t[]){s.queries, s.keys}));
    *terms = as_terms(mask, like);
    if (each)
        *terms = kn_reshape(*terms, 4, (const int64_t[]){s.batch, s.heads, s.queries, s.keys});
    return *terms ? KN_OK : kn_error_status();
}

/* key_padding_mask as [N, 1, 1, S]. */
static kn_status padding_terms(kn_tensor **terms, kn_tensor *mask, sizes s, bool batched, const kn_tensor *like)
{
    KN_TRY(check_mask(mask, "key_padding_mask", batched ? 2 : 1,
                      batched ? (const int64_t[]){s.batch, s.keys} : (const int64_t[]){s.keys}));
    *terms = kn_reshape(as_terms(mask, like), 4, (const int64_t[]){s.batch, 1, 1, s.keys});
    return *terms ? KN_OK : kn_error_status();
}

/* --- projections -------------------------------------------------------------------------------------------------- */

static kn_tensor *part_of(kn_tensor *t, int i, int64_t size) { return t ? kn_narrow(t, 0, i * size, size) : NULL; }

static kn_tensor *with_batch(kn_tensor *x) { return x->ndim == 2 ? kn_unsqueeze(x, 0) : x; }

static kn_tensor *project(const attention *self, int i, kn_tensor *x)
{
    const int64_t size = self->params.embed_dim;
    kn_tensor *weight = self->in_proj_weight ? part_of(self->in_proj_weight, i, size) : self->proj_weights[i];
    return kn_linear(with_batch(x), weight, part_of(self->in_proj_bias, i, size));
}

/* [N, L, E] or [L, N, E] as [N, L, heads, width], or likewise: a view. */
static kn_tensor *divided(kn_tensor *x, sizes s)
{
    return x ? kn_reshape(x, 4, (const int64_t[]){x->shape[0], x->shape[1], s.heads, s.width}) : NULL;
}

/* Query, key and value, projected and divided into heads. If they are the same tensor, one product gives all three. */
static kn_status project_all(const attention *self, kn_tensor *const *in, sizes s, kn_tensor *x[3])
{
    const bool is_one = self->in_proj_weight && in[QUERY] == in[KEY] && in[KEY] == in[VALUE];
    kn_tensor *all = NULL;
    if (is_one) {
        all = kn_linear(with_batch(in[QUERY]), self->in_proj_weight, self->in_proj_bias);
        all = all ? kn_reshape(all, 5, (const int64_t[]){all->shape[0], all->shape[1], 3, s.heads, s.width}) : NULL;
    }
    for (int i = QUERY; i <= VALUE; i++)
        if (!(x[i] = is_one ? kn_select(all, 2, i) : divided(project(self, i, in[i]), s)))
            return kn_error_status();
    return KN_OK;
}

/* That as [N, heads, L, width]: a view. */
static kn_tensor *in_heads(kn_tensor *x, sizes s)
{
    return s.length == 1 ? kn_transpose(x, 1, 2) : kn_permute(x, (const int[]){1, 2, 0, 3});
}

/* The reverse. */
static kn_tensor *joined(kn_tensor *x, sizes s)
{
    const int64_t first = s.length == 1 ? s.batch : s.queries, second = s.length == 1 ? s.queries : s.batch;
    x = s.length == 1 ? kn_transpose(x, 1, 2) : kn_permute(x, (const int[]){2, 0, 1, 3});
    return kn_reshape(x, 3, (const int64_t[]){first, second, s.heads * s.width});
}

/* A row for each batch behind the others; `row` NULL: zeros. */
static kn_tensor *with_row(kn_tensor *x, kn_tensor *row, sizes s)
{
    if (!x)
        return NULL;
    const int64_t shape[] = {s.length == 1 ? s.batch : 1, s.length == 1 ? 1 : s.batch, s.heads, s.width};
    kn_tensor *last = kn_expand(row ? divided(row, s) : number(x, 0), 4, shape);
    return kn_cat((kn_tensor *const[]){x, last}, 2, s.length);
}

/* Terms of the scores of further keys: 0. */
static kn_tensor *with_columns(kn_tensor *terms, int64_t count)
{
    int64_t shape[KN_MAX_DIMS];
    if (!terms || count == 0)
        return terms;
    for (int d = 0; d < terms->ndim; d++)
        shape[d] = d < terms->ndim - 1 ? terms->shape[d] : count;
    return kn_cat((kn_tensor *const[]){terms, kn_expand(number(terms, 0), terms->ndim, shape)}, 2, -1);
}

/* --- attention ---------------------------------------------------------------------------------------------------- */

/* -infinity above the diagonal. */
static kn_tensor *causal_terms(sizes s, const kn_tensor *like)
{
    kn_tensor *ones = kn_full_with(2, (const int64_t[]){s.queries, s.keys}, kn_scalar_real(1),
                                   &(kn_tensor_options){.dtype = KN_F32, .device = like->storage->device});
    kn_tensor *rows = kn_cumsum(ones, 0), *columns = kn_cumsum(ones, 1);
    return kn_where(kn_gt(columns, rows), number(like, -(double)INFINITY), number(like, 0));
}

/* The weights of each head are stored. */
static kn_tensor *attend_with_weights(const attention *self, bool training, kn_tensor *const x[3], kn_tensor *terms,
                                      sizes s, const kn_multihead_attention_params *params, bool batched)
{
    kn_tensor *scores = kn_matmul(kn_mul_scalar(x[QUERY], 1 / sqrt((double)s.width)), kn_transpose(x[KEY], -2, -1));
    kn_tensor *weights = kn_softmax(terms ? kn_add(scores, terms) : scores, -1);
    if (training && self->params.dropout > 0)
        weights = kn_dropout(weights, .p = self->params.dropout);
    kn_tensor *shown = params->average_attn_weights ? kn_mean_dims(weights, (const int[]){1}, 1, false) : weights;
    *params->weights = batched ? shown : kn_squeeze(shown, 0);
    return *params->weights ? kn_matmul(weights, x[VALUE]) : NULL;
}

static kn_status all_terms(kn_tensor **terms, kn_tensor *const *in, sizes s, int64_t further,
                           const kn_multihead_attention_params *params, bool needs_matrix)
{
    kn_tensor *padding = NULL;
    *terms = NULL;
    if (params->attn_mask && (!params->is_causal || needs_matrix))
        KN_TRY(attention_terms(terms, params->attn_mask, s, in[QUERY]));
    else if (params->is_causal && needs_matrix)
        *terms = causal_terms(s, in[QUERY]);
    if (params->key_padding_mask) {
        KN_TRY(padding_terms(&padding, params->key_padding_mask, s, in[QUERY]->ndim == 3, in[QUERY]));
        *terms = *terms ? kn_add(*terms, padding) : padding;
    }
    *terms = with_columns(*terms, further);
    return KN_OK;
}

static kn_status attend(kn_tensor **result, kn_module *module, kn_tensor *const *in,
                        const kn_multihead_attention_params *params)
{
    attention *self = module->self;
    KN_TRY(check_inputs(self, in));
    const bool batched = in[QUERY]->ndim == 3;
    const int64_t further = self->params.add_bias_kv + self->params.add_zero_attn;
    kn_tensor *x[3], *terms;
    const int length = batched && !self->params.batch_first ? 0 : 1, at = batched ? length : 0;
    const sizes s = {.batch = batched ? in[QUERY]->shape[1 - length] : 1,
                     .heads = self->params.num_heads,
                     .queries = in[QUERY]->shape[at],
                     .keys = in[KEY]->shape[at],
                     .width = self->params.embed_dim / self->params.num_heads,
                     .length = length};
    KN_TRY(project_all(self, in, s, x));
    /* Causal attention needs no mask, unless further keys, a mask of keys or the weights need one anyway. */
    const bool needs_matrix = params->key_padding_mask || params->weights || further > 0;
    KN_TRY(all_terms(&terms, in, s, further, params, needs_matrix));
    for (int i = KEY; i <= VALUE; i++) {
        if (self->params.add_bias_kv)
            x[i] = with_row(x[i], i == KEY ? self->bias_k : self->bias_v, s);
        if (self->params.add_zero_attn)
            x[i] = with_row(x[i], NULL, s);
    }
    for (int i = QUERY; i <= VALUE; i++)
        if (!(x[i] = in_heads(x[i], s)))
            return kn_error_status();
    kn_tensor *y = params->weights
                       ? attend_with_weights(self, module->training, x, terms, s, params, batched)
                       : kn_scaled_dot_product_attention(x[QUERY], x[KEY], x[VALUE], .attn_mask = terms,
                                                         .dropout_p = module->training ? self->params.dropout : 0,
                                                         .is_causal = params->is_causal && !needs_matrix);
    y = kn_forward(self->out_proj, y ? joined(y, s) : NULL);
    *result = batched ? y : kn_squeeze(y, 0);
    return *result ? KN_OK : kn_error_status();
}

static kn_status forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    return attend(&outputs[0], module, inputs,
                  &(const kn_multihead_attention_params){
                      .key_padding_mask = inputs[PADDING], .attn_mask = inputs[MASK], .average_attn_weights = true});
}

/* The same for a module whose parameters may be computed from others, called without its forward function. */
static kn_status attend_computed(kn_tensor **result, kn_module *module, kn_tensor *const *in,
                                 const kn_multihead_attention_params *params)
{
    kn_computed_view view;
    KN_TRY(kn_computed_begin(&view, module));
    const kn_status status = attend(result, view.module, in, params);
    kn_computed_end(&view);
    return status;
}

/* --- calling it directly ------------------------------------------------------------------------------------------ */

kn_multihead_attention_params kn_multihead_attention_params_init(void)
{
    return (kn_multihead_attention_params){KN_MULTIHEAD_ATTENTION_DEFAULTS};
}

kn_tensor *kn_multihead_attention_with(kn_module *module, kn_tensor *query, kn_tensor *key, kn_tensor *value,
                                       const kn_multihead_attention_params *params)
{
    static const char *const names[] = {"query", "key", "value"};
    kn_tensor *const in[] = {query, key, value};
    params = params ? params : &(kn_multihead_attention_params){KN_MULTIHEAD_ATTENTION_DEFAULTS};
    kn_multihead_attention_params own = *params;
    kn_tensor *results[2] = {NULL};
    for (int i = QUERY; i <= VALUE; i++)
        if (!in[i])
            return kn_fail_argument_null("multihead_attention", names[i]), kn_error_make_sticky();
    if (!module || module->kind.forward_many != forward)
        return kn_fail_null(KN_ERR_ARGUMENT, "multihead_attention: the module must be a MultiheadAttention, not %s",
                            module ? module->type_name : "NULL");
    const int depth = kn_scope_begin_internal();
    if (depth == 0)
        return kn_error_make_sticky();
    own.weights = params->weights ? &results[1] : NULL;
    const kn_status status = attend_computed(&results[0], module, in, &own);
    if (status != KN_OK) {
        kn_scope_end(depth);
        return kn_error_make_sticky();
    }
    if (kn_scope_return_all(depth, results, 2, results) != KN_OK)
        return kn_error_make_sticky();
    if (params->weights)
        *params->weights = results[1];
    return results[0];
}

/* --- making it ---------------------------------------------------------------------------------------------------- */

/* Registers an uninitialised parameter. */
static kn_tensor *add(kn_module *module, const char *name, int ndim, const int64_t *shape)
{
    kn_tensor *t = kn_empty_with(ndim, shape, &(kn_tensor_options){.dtype = KN_F32});
    return t ? kn_module_register_parameter(module, name, t) : NULL;
}

static bool fill(kn_tensor *t, double value)
{
    KN_NO_GRAD;
    return kn_fill_(t, value) != NULL;
}

static bool make_projections(kn_module *module, attention *self)
{
    static const char *const names[] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
    const int64_t e = self->params.embed_dim, widths[] = {e, self->params.kdim, self->params.vdim};
    if (self->params.kdim == e && self->params.vdim == e) {
        self->in_proj_weight = add(module, "in_proj_weight", 2, (const int64_t[]){3 * e, e});
        return self->in_proj_weight && kn_init_xavier_uniform_with_(self->in_proj_weight, 1, NULL);
    }
    for (int i = QUERY; i <= VALUE; i++) {
        self->proj_weights[i] = add(module, names[i], 2, (const int64_t[]){e, widths[i]});
        if (!self->proj_weights[i] || !kn_init_xavier_uniform_with_(self->proj_weights[i], 1, NULL))
            return false;
    }
    return true;
}

static bool make_biases(kn_module *module, attention *self)
{
    const int64_t e = self->params.embed_dim;
    if (self->params.bias) {
        self->in_proj_bias = add(module, "in_proj_bias", 1, (const int64_t[]){3 * e});
        if (!self->in_proj_bias || !fill(self->in_proj_bias, 0) || !fill(kn_module_get(self->out_proj, "bias"), 0))
            return false;
    }
    if (!self->params.add_bias_kv)
        return true;
    self->bias_k = add(module, "bias_k", 3, (const int64_t[]){1, 1, e});
    self->bias_v = add(module, "bias_v", 3, (const int64_t[]){1, 1, e});
    const double std = sqrt(1 / (double)e); /* Xavier's, of [1, 1, e] */
    return self->bias_k && self->bias_v && kn_init_normal_with_(self->bias_k, 0, std, NULL) &&
           kn_init_normal_with_(self->bias_v, 0, std, NULL);
}

static bool make_parameters(kn_module *module)
{
    attention *self = module->self;
    kn_module *out = kn_nn_linear(.in_features = self->params.embed_dim, .out_features = self->params.embed_dim,
                                  .bias = self->params.bias);
    if (!out)
        return false;
    kn_free(out->type_name);
    out->type_name = kn_strdup("NonDynamicallyQuantizableLinear");
    self->out_proj = kn_module_register_module(module, "out_proj", out);
    return self->out_proj && out->type_name && make_projections(module, self) && make_biases(module, self);
}

kn_nn_multihead_attention_params kn_nn_multihead_attention_params_init(void)
{
    return (kn_nn_multihead_attention_params){KN_NN_MULTIHEAD_ATTENTION_DEFAULTS};
}

kn_module *kn_nn_multihead_attention_with(const kn_nn_multihead_attention_params *params)
{
    static const kn_module_kind kind = {
        .forward_many = forward, .signature = {.inputs = INPUTS, .optional = 2, .outputs = 1}, .is_layer = true};
    params = params ? params : &(kn_nn_multihead_attention_params){KN_NN_MULTIHEAD_ATTENTION_DEFAULTS};
    attention self = {.params = *params};
    if (params->embed_dim < 1 || params->num_heads < 1 || params->embed_dim % params->num_heads != 0)
        return kn_fail_null(KN_ERR_ARGUMENT,
                            "MultiheadAttention: embed_dim (%lld) and num_heads (%lld) must be at least 1, and "
                            "embed_dim a multiple of num_heads",
                            (long long)params->embed_dim, (long long)params->num_heads);
    if (!(params->dropout >= 0 && params->dropout <= 1))
        return kn_fail_null(KN_ERR_ARGUMENT, "MultiheadAttention: dropout must be from 0 to 1, not %g",
                            params->dropout);
    if (params->kdim < 0 || params->vdim < 0)
        return kn_fail_null(KN_ERR_ARGUMENT,
                            "MultiheadAttention: kdim (%lld) and vdim (%lld) must be at least 1, or 0 for embed_dim",
                            (long long)params->kdim, (long long)params->vdim);
    self.params.kdim = params->kdim ? params->kdim : params->embed_dim;
    self.params.vdim = params->vdim ? params->vdim : params->embed_dim;
    kn_module *module = kn_layer_new_kind("MultiheadAttention", &kind, &self, sizeof self);
    if (!module)
        return NULL;
    const int depth = kn_scope_begin();
    const bool made = depth != 0 && make_parameters(module);
    if (depth != 0)
        kn_scope_end(depth);
    return made ? module : kn_layer_failed(module);
}
