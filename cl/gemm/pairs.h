/* gemm/pairs.h - products of bf16 matrices by pairs of elements (gemm/pairs.cl). */
#pragma once

#include "common/shared.h"

/* A sum may consist of parts, each of k elements that are evenly apart: C = the sum over p of A[p] B[p]. The columns of
 * B and C may be in segments that are apart; then the columns of B that follow each other are contiguous. */
typedef struct kn_gemm_words {
    kn_long k;                             /* elements of a part; a plan's k counts words of two */
    kn_long parts, a_part, b_part;         /* elements from one part to the next */
    kn_long segment, b_segment, c_segment; /* columns, and elements from one segment to the next */
    kn_int a_words, b_words;               /* is each row of A, each column of B, contiguous and at whole words? */
} kn_gemm_words;
KN_SHARED_SIZE(kn_gemm_words, 7 * 8 + 2 * 4);
