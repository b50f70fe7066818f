/* gemm/integers.h - products of integer matrices (gemm/integers.cl). */
#pragma once

#include "common/shared.h"

/* Steps in elements: from matrix to matrix, from row to row, and along a row, which is 1 of b and c. */
typedef struct kn_integer_matrix {
    kn_long batch, row, column;
} kn_integer_matrix;

typedef struct kn_integer_product {
    kn_long m, n, k, batch;
    kn_integer_matrix a, b, c;
} kn_integer_product;
KN_SHARED_SIZE(kn_integer_product, 13 * 8);
