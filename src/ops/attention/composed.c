/* ops/attention/composed.c - attention of matrix products and exponentials, with the matrix of scores: for devices and
 * sizes that the kernels do not support, and for gradients of gradients. */
#include <koine/autograd.h>
#include <koine/matmul.h>
#include <koine/pointwise.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <string.h>

#include "ops/attention/attention.h"
#include "ops/pointwise/dropout.h"
#include "tensor/scope.h"

static kn_tensor *turned(kn_tensor *t) { return kn_transpose(t, -2, -1); }

static int64_t group_of(const kn_attention_problem *p)
{
    const kn_tensor *query = p->operands[KN_QUERY], *key = p->operands[KN_KEY];
    const int d = query->ndim - 3;
    return d >= 0 && key->shape[d] > 0 ? query->shape[d] / key->shape[d] : 1;
}

/* Each head of a key or value, for all heads of the query that use it. */
static kn_tensor *for_each_query_head(const kn_attention_problem *p, kn_tensor *t)
{
    const int64_t group = group_of(p);
    int64_t shape[KN_MAX_DIMS + 1];
    if (group == 1 || !t)
        return t;
    const int ndim = t->ndim, head = ndim - 3;
    for (int d = 0; d <= ndim; d++)
        shape[d] = d <= head ? t->shape[d] : d == head + 1 ? group : t->shape[d - 1];
    kn_tensor *expanded = kn_expand(kn_unsqueeze(t, head + 1), ndim + 1, shape);
    memmove(shape + head, shape + head + 1, sizeof shape[0] * (size_t)(ndim - head));
    shape[head] = t->shape[head] * group;
    return kn_reshape(expanded, ndim, shape);
}

/* The reverse: the sum over the heads that share one. */
static kn_tensor *sum_of_query_heads(const kn_attention_problem *p, kn_tensor *t)
{
    const int64_t group = group_of(p);
    int64_t shape[KN_MAX_DIMS + 1];
    if (group == 1 || !t)
        return t;
    const int ndim = t->ndim, head = ndim - 3;
    for (int d = 0; d <= ndim; d++)
        shape[d] = d < head ? t->shape[d] : d == head ? t->shape[d] / group : d == head + 1 ? group : t->shape[d - 1];
    return kn_sum_dims(kn_reshape(t, ndim + 1, shape), (const int[]){head + 1}, 1, false);
}

/* -infinity above the diagonal, else 0. */
static kn_tensor *causal_mask(const kn_tensor *query, int64_t keys)
{
    const int64_t queries = query->shape[query->ndim - 2];
    const kn_tensor_options options = {.dtype = query->dtype, .device = query->storage->device};
    kn_tensor *row = kn_reshape(kn_arange_with(0, (double)queries, 1, &options), 2, (const int64_t[]){queries, 1});
    kn_tensor *column = kn_arange_with(0, (double)keys, 1, &options);
    kn_tensor *hidden = kn_full_with(0, NULL, kn_scalar_real(-(double)INFINITY), &options),
              *zero = kn_zeros_with(0, NULL, &options);
    return kn_where(kn_gt(column, row), hidden, zero);
}

/* The scores and, of each row, the maximum, 0 where all keys are hidden. */
static kn_tensor *scores_of(const kn_attention_problem *p, kn_tensor *key)
{
    kn_tensor *query = p->operands[KN_QUERY];
    kn_tensor *scores = kn_matmul(kn_mul_scalar(query, p->scale), turned(key));
    if (p->mask)
        scores = kn_add(scores, p->mask);
    if (p->is_causal)
        scores = kn_add(scores, causal_mask(query, key ? key->shape[key->ndim - 2] : 0));
    return scores;
}

static kn_tensor *ones(const kn_tensor *like, int ndim, const int64_t *shape)
{
    return kn_ones_with(ndim, shape, &(kn_tensor_options){.dtype = like->dtype, .device = like->storage->device});
}

/* The factors by which dropout multiplies the probabilities, in the kernels' order of words; NULL without dropout. */
static kn_tensor *factors_of(const kn_attention_problem *p, const kn_tensor *probabilities)
{
    const int ndim = probabilities->ndim;
    const int64_t queries = probabilities->shape[ndim - 2], keys = probabilities->shape[ndim - 1];
    const int64_t heads = kn_shape_numel(ndim - 2, probabilities->shape), quads = (keys + 3) / 4;
    if (p->dropout_p <= 0)
        return NULL;
    kn_tensor *words = ones(probabilities, 4, (const int64_t[]){heads, quads, queries, 4});
    words = kn_permute(kn_dropout_again(words, &p->draw, p->dropout_p), (const int[]){0, 2, 1, 3});
    words = kn_narrow(kn_reshape(words, 3, (const int64_t[]){heads, queries, quads * 4}), 2, 0, keys);
    return kn_reshape(words, ndim, probabilities->shape);
}

typedef struct weights {
    kn_tensor *probabilities, *factors; /* factors NULL: no dropout */
    kn_tensor *lse;
} weights;

/* Rows without visible keys have probability 0 everywhere, and gradient 0. */
static weights weights_of(const kn_attention_problem *p, kn_tensor *key)
{
    const int last = -1;
    kn_tensor *scores = scores_of(p, key);
    if (!scores)
        return (weights){.probabilities = NULL};
    if (kn_numel(scores) == 0) /* no keys */
        return (weights){scores, NULL, NULL};
    const kn_tensor_options options = {.dtype = scores->dtype, .device = scores->storage->device};
    kn_tensor *highest = kn_amax(kn_detach(scores), &last, 1, true);
    kn_tensor *zero = kn_zeros_with(0, NULL, &options), *one = ones(scores, 0, NULL);
    kn_tensor *none = kn_full_with(0, NULL, kn_scalar_real(-(double)INFINITY), &options);
    highest = kn_where(kn_eq(highest, none), zero, highest);
    kn_tensor *exponentials = kn_exp(kn_sub(scores, highest)), *sum = kn_sum_dims(exponentials, &last, 1, true);
    kn_tensor *divisor = kn_where(kn_eq(sum, zero), one, sum);
    kn_tensor *probabilities = kn_div(exponentials, divisor);
    kn_tensor *lse = kn_sub(kn_add(highest, kn_log(divisor)), kn_where(kn_eq(sum, zero), none, zero));
    return (weights){probabilities, probabilities ? factors_of(p, probabilities) : NULL, lse};
}

static kn_tensor *dropped(kn_tensor *t, weights w) { return w.factors ? kn_mul(t, w.factors) : t; }

kn_tensor *kn_attention_composed(const kn_attention_problem *p)
{
    const weights w = weights_of(p, for_each_query_head(p, p->operands[KN_KEY]));
    return kn_matmul(dropped(w.probabilities, w), for_each_query_head(p, p->operands[KN_VALUE]));
}

kn_status kn_attention_gradients_composed(const kn_attention_problem *p, const bool *needs,
                                          kn_tensor *gradients[KN_ATTENTION_OPERANDS])
{
    kn_tensor *key = for_each_query_head(p, p->operands[KN_KEY]),
              *value = for_each_query_head(p, p->operands[KN_VALUE]);
    const int last = -1;
    const weights w = weights_of(p, key);
    kn_tensor *slopes = dropped(kn_matmul(p->gradient, turned(value)), w);
    slopes = kn_mul(w.probabilities, kn_sub(slopes, kn_sum_dims(kn_mul(slopes, w.probabilities), &last, 1, true)));
    slopes = kn_mul_scalar(slopes, p->scale);
    kn_tensor *made[KN_ATTENTION_OPERANDS] = {NULL};
    if (needs[KN_QUERY])
        made[KN_QUERY] = kn_matmul(slopes, key);
    if (needs[KN_KEY])
        made[KN_KEY] = sum_of_query_heads(p, kn_matmul(turned(slopes), p->operands[KN_QUERY]));
    if (needs[KN_VALUE])
        made[KN_VALUE] = sum_of_query_heads(p, kn_matmul(turned(dropped(w.probabilities, w)), p->gradient));
    for (int i = 0; i < KN_ATTENTION_OPERANDS; i++) {
        if (needs[i] && !made[i])
            return kn_error_status();
        gradients[i] = made[i];
    }
    return KN_OK;
}

/* --- as implementations ------------------------------------------------------------------------------------------- */

static kn_status put(kn_tensor *to, kn_tensor *from)
{
    kn_tensor *fitting = from && to ? kn_reshape(from, to->ndim, to->shape) : NULL;
    return fitting ? kn_tensor_copy(to, fitting) : kn_error_status();
}

static kn_status forward(const kn_attention_problem *p)
{
    const weights w = weights_of(p, for_each_query_head(p, p->operands[KN_KEY]));
    if (w.probabilities && !w.lse) { /* no keys */
        KN_TRY(kn_tensor_fill(p->result, 0));
        return kn_tensor_fill(p->lse, INFINITY);
    }
    KN_TRY(put(p->result, kn_matmul(dropped(w.probabilities, w), for_each_query_head(p, p->operands[KN_VALUE]))));
    return put(p->lse, w.lse);
}

static kn_status backward(const kn_attention_problem *p)
{
    const bool needs[KN_ATTENTION_OPERANDS] = {true, true, true};
    kn_tensor *made[KN_ATTENTION_OPERANDS];
    KN_TRY(kn_attention_gradients_composed(p, needs, made));
    for (int i = 0; i < KN_ATTENTION_OPERANDS; i++)
        KN_TRY(put(p->gradients[i], made[i]));
    return KN_OK;
}

static kn_status without_recording(const kn_attention_problem *p, kn_status (*run)(const kn_attention_problem *p))
{
    const int scope = kn_scope_begin_internal();
    if (!scope)
        return KN_ERR_MEMORY;
    const bool enabled = kn_set_grad_enabled(false);
    const kn_status status = run(p);
    kn_set_grad_enabled(enabled);
    kn_scope_end(scope);
    return status;
}

static bool is_of_halves(const kn_attention_problem *p) { return kn_dtype_is_reduced(p->operands[KN_QUERY]->dtype); }

kn_status kn_attention_reference(kn_stream *stream, const void *problem)
{
    return is_of_halves(problem) ? kn_attention_in_f32(stream, problem, kn_attention_reference)
                                 : without_recording(problem, forward);
}

kn_status kn_attention_reference_backward(kn_stream *stream, const void *problem)
{
    return is_of_halves(problem) ? kn_attention_in_f32(stream, problem, kn_attention_reference_backward)
                                 : without_recording(problem, backward);
}
