/* gemm/thin.h - matrix products on GPUs with few columns, or few rows (gemm/thin.cl). */
#pragma once

#include "common/shared.h"

/* Strides in elements of rows, columns, steps and matrices; for C also of parts. */
typedef struct kn_gemm_thin_layout {
    kn_long a_row, a_step, a_batch, b_column, b_step, b_batch;
    kn_long c_row, c_column, c_batch, c_part, bias_row, bias_column;
} kn_gemm_thin_layout;
KN_SHARED_SIZE(kn_gemm_thin_layout, 12 * 8);

typedef struct kn_gemm_thin_size {
    kn_long rows, steps, steps_per_part;
    kn_int columns, team;
} kn_gemm_thin_size;
KN_SHARED_SIZE(kn_gemm_thin_size, 3 * 8 + 2 * 4);
