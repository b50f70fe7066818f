/* attention/attention.h - scaled dot-product attention: sizes and strides, for all kernels of it. */
#pragma once

#include "common/shared.h"

/* Strides in elements. Of the query, key and value the elements of a row are contiguous: column is 1. */
typedef struct kn_attention_strides {
    kn_long outer, head, row, column;
} kn_attention_strides;
KN_SHARED_SIZE(kn_attention_strides, 4 * 8);

/* query [outer, heads, queries, width], key [outer, heads / group, keys, width], value [..., keys, value_width], mask
 * [outer, heads, queries, keys] with any strides; result and its gradient [outer, heads, queries, value_width] and the
 * logsumexp [outer, heads, queries] are contiguous.
 *
 * The word that decides whether a probability is dropped is word key % 4 of block (number * ceil(keys / 4) + key / 4) *
 * queries + query of the draw, with `number` that of the head: vectors of queries draw whole blocks. */
typedef struct kn_attention_shape {
    kn_long outer, heads, group, queries, keys, width, value_width;
    kn_attention_strides query, key, value, mask, gradient;
    kn_int has_mask, causal;
    kn_uint drop_below; /* dropped if the word's upper 24 bits are below this; 0: no dropout */
    kn_int unused;
} kn_attention_shape;
KN_SHARED_SIZE(kn_attention_shape, 7 * 8 + 5 * 4 * 8 + 4 * 4);

/* How CPU kernels divide the work: units in order, units_per_item for each work-item, which has `scratch` elements of
 * memory for itself. Backward: a unit is a head of the keys and `chunk` keys. */
typedef struct kn_attention_cut {
    kn_long units, units_per_item, scratch, chunk, chunks;
} kn_attention_cut;
KN_SHARED_SIZE(kn_attention_cut, 5 * 8);
