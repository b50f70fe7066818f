/* ops/attention/reference.c - attention in plain C, which others are compared with. */
#include <math.h>

#include "base/memory.h"
#include "ops/attention/attention.h"
#include "ops/dispatch/reference.h"
#include "ops/pointwise/dropout.h"
#include "tensor/philox.h"

/* One row of probabilities; `row` counts the queries of all heads. Returns the logarithm of the sum of exponentials. */
static double reference_row(double *p, const kn_call *call, const kn_attention_record *record, int64_t row,
                            int64_t head)
{
    const kn_tensor *query = call->inputs[KN_QUERY], *key = call->inputs[KN_KEY], *mask = call->inputs[KN_MASK];
    const int64_t queries = query->shape[query->ndim - 2], keys = key->shape[key->ndim - 2],
                  width = query->shape[query->ndim - 1];
    kn_tensor scores = *query; /* its shape only */
    double highest = -INFINITY, sum = 0;
    scores.shape[scores.ndim - 1] = keys;
    for (int64_t k = 0; k < keys; k++) {
        p[k] = 0;
        for (int64_t e = 0; e < width; e++)
            p[k] += kn_reference_get(query, row * width + e) * kn_reference_get(key, (head * keys + k) * width + e);
        p[k] = record->scale * p[k] +
               (mask ? kn_reference_get(mask, kn_reference_index(mask, &scores, row * keys + k)) : 0);
        if (record->is_causal && k > row % queries)
            p[k] = -INFINITY;
        highest = fmax(highest, p[k]);
    }
    for (int64_t k = 0; k < keys; k++) {
        p[k] = highest == -INFINITY ? 0 : exp(p[k] - highest);
        sum += p[k];
    }
    for (int64_t k = 0; k < keys; k++) {
        const uint64_t block = (uint64_t)((row / queries * ((keys + 3) / 4) + k / 4) * queries + row % queries);
        uint32_t words[4] = {0};
        if (record->dropout_p > 0)
            kn_philox_block(words, record->draw.seed, record->draw.offset, block);
        const bool kept = record->dropout_p <= 0 || (words[k % 4] >> 8) >= kn_dropout_threshold(record->dropout_p);
        p[k] *= kept ? kn_dropout_scale(record->dropout_p) / (sum == 0 ? 1 : sum) : 0;
    }
    return sum == 0 ? (double)INFINITY : highest + log(sum);
}

kn_status kn_attention_reference_on_host(const kn_call *call)
{
    const kn_attention_record *record = call->params;
    const kn_tensor *query = call->inputs[KN_QUERY], *key = call->inputs[KN_KEY], *value = call->inputs[KN_VALUE];
    const int64_t queries = query->shape[query->ndim - 2], keys = key->shape[key->ndim - 2],
                  value_width = value->shape[value->ndim - 1], rows = kn_shape_numel(query->ndim - 1, query->shape);
    const int64_t group = query->ndim > 2 && key->shape[key->ndim - 3] > 0
                              ? query->shape[query->ndim - 3] / key->shape[key->ndim - 3]
                              : 1;
    double *p = kn_malloc((size_t)(keys + 1) * sizeof *p);
    if (!p)
        return KN_ERR_MEMORY;
    for (int64_t row = 0; row < rows; row++) {
        const int64_t head = row / queries / group;
        const double lse = reference_row(p, call, record, row, head);
        if (call->num_outputs > 1)
            kn_reference_set(call->outputs[1], row, lse);
        for (int64_t f = 0; f < value_width; f++) {
            double sum = 0;
            for (int64_t k = 0; k < keys; k++)
                sum += p[k] == 0 ? 0 : p[k] * kn_reference_get(value, (head * keys + k) * value_width + f);
            kn_reference_set(call->outputs[0], row * value_width + f, sum);
        }
    }
    kn_free(p);
    return KN_OK;
}
