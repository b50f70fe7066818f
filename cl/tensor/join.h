/* tensor/join.h - concatenation of contiguous tensors (tensor/join.cl). */
#pragma once

#include "common/shared.h"

enum { KN_JOIN_MOST = 8 }; /* tensors per launch */

/* The result is `outer` rows of `row` elements. Tensor i has starts[i + 1] - starts[i] elements of each, from starts[i]
 * on; items take `chunk` elements each. */
typedef struct kn_join_plan {
    kn_long outer, row, chunk, count;
    kn_long starts[KN_JOIN_MOST + 1];
} kn_join_plan;
KN_SHARED_SIZE(kn_join_plan, (4 + KN_JOIN_MOST + 1) * 8);
