/* loops/layout.h - operands with any strides over one shape, collapsed to as few dimensions as possible. */
#pragma once

#include <koine/dtype.h>

#include "pointwise/plan.h"

/* Operands with equal strides share a lane. */
typedef struct kn_layout {
    int ndim; /* at least 1 after kn_layout_collapse */
    int lanes;
    int64_t shape[KN_MAX_DIMS];
    int64_t strides[KN_LAYOUT_LANES][KN_MAX_DIMS]; /* elements; 0 where broadcast */
} kn_layout;

/* Orders the dimensions by the steps of lane 0, the smallest innermost, so that its memory is passed through from
 * beginning to end: for work whose order does not matter. */
void kn_layout_sort(kn_layout *layout);

/* Drops dimensions of size 1 and merges neighbours that are contiguous in every lane. The shape must not be empty. */
void kn_layout_collapse(kn_layout *layout);

int64_t kn_layout_count(const kn_layout *layout);

/* Is there a single dimension, with stride 1 or 0 in each lane? */
bool kn_layout_is_flat(const kn_layout *layout);

/* Is lane 0 contiguous? */
bool kn_layout_begins_contiguous(const kn_layout *layout);

/* Are elements of any lane apart along the innermost dimension? */
bool kn_layout_has_steps(const kn_layout *layout);
