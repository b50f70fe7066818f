/* gemm/update.h - matrix products of very short sums on CPU devices (gemm/update.cl). */
#pragma once

#include "common/shared.h"

typedef struct kn_gemm_update_size {
    kn_long m, n, batch, rows_per_item, columns_per_item;
    kn_int k, unused;
} kn_gemm_update_size;
KN_SHARED_SIZE(kn_gemm_update_size, 5 * 8 + 2 * 4);
