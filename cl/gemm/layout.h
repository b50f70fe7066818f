/* gemm/layout.h - operands and results of matrix products. */
#pragma once

#include "common/shared.h"

/* Row, column and batch strides of op(X), in elements. */
typedef struct kn_gemm_layout {
    kn_long row_stride, col_stride, batch_stride;
} kn_gemm_layout;
KN_SHARED_SIZE(kn_gemm_layout, 3 * 8);

/* The epilogue (gemm/finish.clh). C code has one struct per T, a kernel only its own. */
#define KN_GEMM_FINISH(name, T)                                                                                        \
    typedef struct name {                                                                                              \
        T alpha, beta, low, high;                                                                                      \
        kn_int has_bias, unused;                                                                                       \
    } name;                                                                                                            \
    KN_SHARED_SIZE(name, 4 * sizeof(T) + 2 * 4)
