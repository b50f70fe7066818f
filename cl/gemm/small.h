/* gemm/small.h - batches of small matrix products on CPU devices (gemm/small.cl). */
#pragma once

#include "common/shared.h"

typedef struct kn_gemm_small_size {
    kn_long m, n, k, batch;
    kn_long per_item; /* matrices of a work-item */
} kn_gemm_small_size;
KN_SHARED_SIZE(kn_gemm_small_size, 5 * 8);
