/* gemm/integers.h - products of integer matrices (gemm/integers.cl). */
#pragma once

#include "common/shared.h"

/* Steps in elements, from matrix to matrix and from row to row. */
typedef struct kn_integer_matrix {
    kn_long batch, row;
} kn_integer_matrix;

typedef struct kn_integer_product {
    kn_long m, n, k, batch;
    kn_integer_matrix a, b, c;
} kn_integer_product;
KN_SHARED_SIZE(kn_integer_product, 10 * 8);
