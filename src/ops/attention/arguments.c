/* ops/attention/arguments.c - which query, key, value and mask fit each other. */
#include <koine/shape.h>
#include <string.h>

#include "ops/attention/attention.h"

static const char *const names[] = {"query", "key", "value"};

static kn_status check_operands(kn_tensor *const *in)
{
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    for (int i = 0; i < KN_ATTENTION_OPERANDS; i++) {
        if (in[i]->ndim < 2)
            return kn_fail(KN_ERR_SHAPE, "%s must have at least 2 dimensions, [..., length, size], not %s", names[i],
                           kn_tensor_describe(a, sizeof a, in[i]));
        if (in[i]->dtype != in[0]->dtype)
            return kn_fail(KN_ERR_DTYPE, "query, key and value must have the same dtype, but %s is %s and query is %s",
                           names[i], kn_dtype_name(in[i]->dtype), kn_dtype_name(in[0]->dtype));
    }
    const kn_tensor *query = in[KN_QUERY], *key = in[KN_KEY], *value = in[KN_VALUE];
    if (query->shape[query->ndim - 1] != key->shape[key->ndim - 1])
        return kn_fail(KN_ERR_SHAPE, "the last dimensions of query %s and key %s must be the same",
                       kn_tensor_describe(a, sizeof a, query), kn_tensor_describe(b, sizeof b, key));
    if (key->shape[key->ndim - 2] != value->shape[value->ndim - 2])
        return kn_fail(KN_ERR_SHAPE, "key %s and value %s must have the same length, their second-to-last dimension",
                       kn_tensor_describe(a, sizeof a, key), kn_tensor_describe(b, sizeof b, value));
    return KN_OK;
}

kn_status kn_attention_check_mask(const kn_tensor *mask, const kn_tensor *query, int64_t keys, bool is_causal)
{
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    bool fits = mask->ndim <= query->ndim;
    if (is_causal)
        return kn_fail(KN_ERR_ARGUMENT, "attn_mask must not be given if is_causal is true");
    if (mask->dtype != KN_BOOL && mask->dtype != query->dtype)
        return kn_fail(KN_ERR_DTYPE, "attn_mask must be bool or of the query's dtype, %s, not %s",
                       kn_dtype_name(query->dtype), kn_dtype_name(mask->dtype));
    for (int d = 1; fits && d <= mask->ndim; d++) {
        const int64_t size = mask->shape[mask->ndim - d], wanted = d == 1 ? keys : query->shape[query->ndim - d];
        fits = size == 1 || size == wanted;
    }
    return fits ? KN_OK
                : kn_fail(KN_ERR_SHAPE, "attn_mask %s does not broadcast to the scores of query %s and %lld keys",
                          kn_tensor_describe(a, sizeof a, mask), kn_tensor_describe(b, sizeof b, query),
                          (long long)keys);
}

/* The size that dimension d before the last `fixed` must have in all operands; -1 if they do not broadcast. */
static int64_t common_size(kn_tensor *const *in, int d, int fixed)
{
    int64_t size = 1;
    for (int i = 0; i < KN_ATTENTION_OPERANDS; i++) {
        const int own = in[i]->ndim - fixed - 1 - d;
        const int64_t n = own >= 0 ? in[i]->shape[own] : 1;
        if (n != 1 && size != 1 && n != size)
            return -1;
        size = n == 1 ? size : n;
    }
    return size;
}

static kn_status fail_leading(kn_tensor *const *in, const char *why)
{
    char a[KN_DESCRIBE], b[KN_DESCRIBE], c[KN_DESCRIBE];
    return kn_fail(KN_ERR_SHAPE, "query %s, key %s and value %s: %s", kn_tensor_describe(a, sizeof a, in[KN_QUERY]),
                   kn_tensor_describe(b, sizeof b, in[KN_KEY]), kn_tensor_describe(c, sizeof c, in[KN_VALUE]), why);
}

/* Grouped queries: the heads, dimension -3, need not be the same. */
static kn_status check_heads(kn_tensor *const *in)
{
    for (int i = 0; i < KN_ATTENTION_OPERANDS; i++)
        if (in[i]->ndim < 3)
            return fail_leading(in, "enable_gqa needs at least 3 dimensions, [..., heads, length, size]");
    const int64_t heads = in[KN_QUERY]->shape[in[KN_QUERY]->ndim - 3], shared = in[KN_KEY]->shape[in[KN_KEY]->ndim - 3];
    if (in[KN_VALUE]->shape[in[KN_VALUE]->ndim - 3] != shared || (shared == 0 ? heads != 0 : heads % shared != 0))
        return fail_leading(in, "with enable_gqa key and value must have the same number of heads, dimension -3, and "
                                "the query's number must be a multiple of it");
    return KN_OK;
}

kn_status kn_attention_broadcast(kn_tensor **in, bool grouped)
{
    const int fixed = grouped ? 3 : 2;
    int64_t shape[KN_MAX_DIMS];
    int ndim = 0;
    KN_TRY(check_operands(in));
    if (grouped)
        KN_TRY(check_heads(in));
    for (int i = 0; i < KN_ATTENTION_OPERANDS; i++)
        ndim = in[i]->ndim > ndim ? in[i]->ndim : ndim;
    for (int d = 0; d < ndim - fixed; d++)
        if ((shape[ndim - fixed - 1 - d] = common_size(in, d, fixed)) < 0)
            return fail_leading(in, "the dimensions before the last two must broadcast (enable_gqa allows different "
                                    "numbers of heads)");
    for (int i = 0; i < KN_ATTENTION_OPERANDS; i++) {
        const int own = in[i]->ndim;
        bool same = own == ndim;
        for (int d = 0; same && d < ndim - fixed; d++)
            same = in[i]->shape[d] == shape[d];
        memcpy(shape + ndim - fixed, in[i]->shape + own - fixed, (size_t)fixed * sizeof shape[0]);
        if (!same && !(in[i] = kn_expand(in[i], ndim, shape)))
            return kn_error_status();
    }
    return KN_OK;
}
