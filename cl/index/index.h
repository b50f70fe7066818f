/* index/index.h - what gather.cl and scatter.cl walk: a space of places, each with an element among the values, one
 * of a table, and an index that moves the latter by `step`. */
#pragma once

#include "common/divisor.h"
#include "common/shared.h"

enum { KN_INDEX_VALUES, KN_INDEX_TABLE, KN_INDEX_INDEX, KN_INDEX_LANES };

/* Strides are in elements, by lane; those of the table are without the index's moves. */
typedef struct kn_index_walk {
    kn_long lines; /* the product of `shape` */
    kn_long ndim;
    kn_long shape[KN_MAX_DIMS];
    kn_long strides[KN_INDEX_LANES][KN_MAX_DIMS];
    kn_long inner; /* elements of a line, and their strides */
    kn_long inner_strides[KN_INDEX_LANES];
    kn_long places; /* of a scatter: how many indices in turn move each element, and their strides */
    kn_long place_strides[KN_INDEX_LANES];
    kn_long size, step;                       /* indices are below `size` */
    kn_long wraps;                            /* negative ones count from the end */
    kn_long parts;                            /* into which a line is divided among work-items */
    kn_long ranges;                           /* of a scatter: into which the indices are divided */
    kn_divisor by_inner, by[KN_MAX_DIMS + 1]; /* for fewer than 2^31 elements */
    kn_int fills; /* of a scatter: first the table becomes zeros (1) or a copy of another (2) */
    kn_int unused;
} kn_index_walk;
KN_SHARED_SIZE(kn_index_walk, 8 * (9 + KN_MAX_DIMS * 4 + 6) + 12 * (KN_MAX_DIMS + 2) + 8);

/* The true elements of a mask of n elements, in chunks of `length`: coordinate d of number k becomes element k * step +
 * d * apart of the result. */
typedef struct kn_index_listing {
    kn_long ndim;
    kn_long shape[KN_MAX_DIMS];
    kn_long n, length, chunks;
    kn_long step, apart;
} kn_index_listing;
KN_SHARED_SIZE(kn_index_listing, 8 * (6 + KN_MAX_DIMS));
