/* sort/plan.h - how the sorting of rows is divided (sort/sort.cl). */
#pragma once

#include "common/shared.h"

/* Rows of n elements in `chunks` pieces of `length`, of which the last may be shorter. */
typedef struct kn_sort_plan {
    kn_long rows, n, chunks, length;
    kn_long k;                      /* results per row or, of a selection, per chunk */
    kn_int descending;              /* 0 or 1 */
    kn_int shift;                   /* of the digit that a pass sorts by */
    kn_int has_items;               /* the input are items, not elements */
    kn_int segment;                 /* GPUs: elements of local memory per chunk, a power of two */
    kn_int has_values, has_indices; /* which outputs are wanted */
} kn_sort_plan;
KN_SHARED_SIZE(kn_sort_plan, 5 * 8 + 6 * 4);
