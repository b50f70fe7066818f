/* gemm/pairs.h - products of bf16 matrices by pairs of elements (gemm/pairs.cl). */
#pragma once

#include "common/shared.h"

typedef struct kn_gemm_words {
    kn_long k;               /* elements; a plan's k counts words of two */
    kn_int a_words, b_words; /* is each row of A, each column of B, contiguous and at whole words? */
} kn_gemm_words;
KN_SHARED_SIZE(kn_gemm_words, 8 + 2 * 4);
