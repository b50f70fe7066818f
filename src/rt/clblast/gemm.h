/* rt/clblast/gemm.h - matrix products by CLBlast.
 *
 * Row-major C[m,n] = alpha op(A) op(B) + beta C, `batch` times at the given element strides; f32 or f64. Offsets in
 * elements. */
#pragma once

#include "rt/memory/buffer.h"

typedef struct kn_gemm_operand {
    kn_buffer *buffer;
    int64_t offset;       /* elements */
    int64_t ld;           /* elements from one row to the next, as stored */
    int64_t batch_stride; /* elements from one matrix to the next */
    bool transposed;      /* op(X) = X^T: stored [k,m] for A, [n,k] for B */
} kn_gemm_operand;

typedef struct kn_gemm_params {
    bool f64;
    int64_t m, n, k, batch;
    double alpha, beta;
    kn_gemm_operand a, b, c; /* c.transposed is false */
} kn_gemm_params;

kn_status kn_clblast_gemm(kn_stream *stream, const kn_gemm_params *params);
