/* attention/attention.h - scaled dot-product attention: sizes and strides, for all kernels of it. */
#pragma once

#include "common/shared.h"

/* Strides in elements. The elements of a row are contiguous, except of the mask: column is 1. */
typedef struct kn_attention_strides {
    kn_long outer, head, row, column;
} kn_attention_strides;
KN_SHARED_SIZE(kn_attention_strides, 4 * 8);

/* query [outer, heads, queries, width], key [outer, heads / group, keys, width], value [..., keys, value_width], mask
 * [outer, heads, queries, keys], result and its gradient [outer, heads, queries, value_width], and the gradients of the
 * first three, as they; the logsumexp [outer, heads, queries] is contiguous.
 *
 * The word that decides whether a probability is dropped is word key % 4 of block (number * ceil(keys / 4) + key / 4) *
 * queries + query of the draw, with `number` that of the head: vectors of queries draw whole blocks. */
typedef struct kn_attention_shape {
    kn_long outer, heads, group, queries, keys, width, value_width;
    kn_attention_strides query, key, value, mask, result, gradient, to_query, to_key, to_value;
    kn_int has_mask, causal;
    kn_uint drop_below; /* dropped if the word's upper 24 bits are below this; 0: no dropout */
    kn_int unused;
} kn_attention_shape;
KN_SHARED_SIZE(kn_attention_shape, 7 * 8 + 9 * 4 * 8 + 4 * 4);

/* How CPU kernels divide the work: units in order, units_per_item for each work-item, which has `scratch` elements of
 * memory for itself. Backward: a unit is a head of the keys and `chunk` keys, whose part of the query's gradient is
 * `part` elements after that of the chunk before; it takes blocks of at most `columns` queries, a multiple of a tile's
 * columns, and `keys` keys, a multiple of 4. */
typedef struct kn_attention_cut {
    kn_long units, units_per_item, scratch, chunk, chunks, part;
    kn_int columns, keys;
} kn_attention_cut;
KN_SHARED_SIZE(kn_attention_cut, 6 * 8 + 2 * 4);
