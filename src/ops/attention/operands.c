/* ops/attention/operands.c - the operands of attention as kernels read them. */

#include "ops/attention/attention.h"
#include "ops/pointwise/dropout.h"

/* Strides of [outer, head, row, column], if the dimensions before the head can be one. */
static bool find_strides(kn_attention_strides *strides, const kn_tensor *t)
{
    int64_t count = 1;
    *strides = (kn_attention_strides){.row = t->strides[t->ndim - 2], .column = t->strides[t->ndim - 1]};
    if (t->ndim > 2)
        strides->head = t->strides[t->ndim - 3];
    for (int d = t->ndim - 4, found = 0; d >= 0; d--) {
        if (t->shape[d] == 1)
            continue;
        if (!found)
            strides->outer = t->strides[d];
        else if (t->strides[d] != strides->outer * count)
            return false;
        found = 1;
        count *= t->shape[d];
    }
    return true;
}

/* The same with contiguous rows. */
static bool find_row_strides(kn_attention_strides *strides, const kn_tensor *t)
{
    const bool fits = find_strides(strides, t) && (strides->column == 1 || t->shape[t->ndim - 1] <= 1);
    strides->column = 1;
    return fits;
}

bool kn_attention_takes(const kn_tensor *t)
{
    kn_attention_strides strides;
    return find_row_strides(&strides, t);
}

/* The tensor, or a contiguous copy, owned, and its strides. */
static kn_status take(kn_tensor **taken, kn_attention_strides *strides, kn_tensor *t, bool rows)
{
    if (rows ? find_row_strides(strides, t) : find_strides(strides, t))
        *taken = kn_retain(t);
    else
        KN_TRY(kn_tensor_cast(taken, t, t->dtype, t->storage->device)); /* contiguous, also if it was expanded */
    find_strides(strides, *taken);
    if (rows)
        strides->column = 1;
    return KN_OK;
}

/* The mask as a view of the shape of the scores. */
static kn_status expand_mask(kn_tensor **view, kn_tensor *mask, const kn_tensor *query, int64_t keys)
{
    int64_t shape[KN_MAX_DIMS], strides[KN_MAX_DIMS];
    for (int d = 0; d < query->ndim; d++) {
        const int own = d - (query->ndim - mask->ndim);
        shape[d] = d == query->ndim - 1 ? keys : query->shape[d];
        strides[d] = own >= 0 && mask->shape[own] != 1 ? mask->strides[own] : 0;
    }
    return kn_tensor_view(view, mask, query->ndim, shape, strides, mask->offset);
}

static kn_status take_mask(kn_attention_operands *o, const kn_attention_problem *problem)
{
    kn_tensor *query = problem->operands[KN_QUERY], *view = NULL;
    if (!problem->mask) {
        o->mask = kn_retain(query); /* some buffer for the kernel's argument */
        return KN_OK;
    }
    o->shape.has_mask = true;
    KN_TRY(expand_mask(&view, problem->mask, query, o->shape.keys));
    const kn_status status = take(&o->mask, &o->shape.mask, view, false);
    kn_release(view);
    return status;
}

kn_status kn_attention_operands_of(kn_attention_operands *o, const kn_attention_problem *problem)
{
    const kn_tensor *query = problem->operands[KN_QUERY], *key = problem->operands[KN_KEY],
                    *value = problem->operands[KN_VALUE];
    const int ndim = query->ndim;
    *o = (kn_attention_operands){.shape = {.outer = ndim > 3 ? kn_shape_numel(ndim - 3, query->shape) : 1,
                                           .heads = ndim > 2 ? query->shape[ndim - 3] : 1,
                                           .group = 1,
                                           .queries = query->shape[ndim - 2],
                                           .keys = key->shape[ndim - 2],
                                           .width = query->shape[ndim - 1],
                                           .value_width = value->shape[ndim - 1],
                                           .causal = problem->is_causal}};
    if (problem->dropout_p > 0)
        o->shape.drop_below = kn_dropout_threshold(problem->dropout_p);
    if (ndim > 2 && key->shape[ndim - 3] > 0)
        o->shape.group = query->shape[ndim - 3] / key->shape[ndim - 3];
    kn_attention_strides *const strides[] = {&o->shape.query, &o->shape.key, &o->shape.value};
    for (int i = 0; i < KN_ATTENTION_OPERANDS; i++)
        KN_TRY(take(&o->tensors[i], strides[i], problem->operands[i], true));
    if (problem->gradient)
        KN_TRY(take(&o->gradient, &o->shape.gradient, problem->gradient, true));
    kn_attention_strides *const written[] = {&o->shape.to_query, &o->shape.to_key, &o->shape.to_value};
    find_row_strides(&o->shape.result, problem->result);
    for (int i = 0; i < KN_ATTENTION_OPERANDS; i++)
        if (problem->gradients[i])
            find_row_strides(written[i], problem->gradients[i]);
    return take_mask(o, problem);
}

void kn_attention_release(kn_attention_operands *o)
{
    for (int i = 0; i < KN_ATTENTION_OPERANDS; i++)
        kn_release(o->tensors[i]);
    kn_release(o->mask);
    kn_release(o->gradient);
}

int64_t kn_attention_draw_blocks(const kn_tensor *query, const kn_tensor *key)
{
    const int64_t rows = kn_shape_numel(query->ndim - 1, query->shape);
    return rows * ((key->shape[key->ndim - 2] + 3) / 4);
}
