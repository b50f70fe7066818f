/* gemm/small.h - batches of small matrix products on CPU devices (gemm/small.cl). */
#pragma once

#include "common/shared.h"

typedef struct kn_gemm_small_size {
    kn_long m, n, k, batch;
    kn_long per_item; /* matrices of a work-item */
    kn_long has_sums; /* of A's rows, which are contiguous across the columns; of one matrix */
} kn_gemm_small_size;
KN_SHARED_SIZE(kn_gemm_small_size, 6 * 8);
