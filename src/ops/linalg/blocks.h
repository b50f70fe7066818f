/* ops/linalg/blocks.h - blocks of matrices as operands of products, for factorisations of large matrices. */
#pragma once

#include "ops/gemm/gemm.h"
#include "ops/linalg/linalg.h"

#define KN_LINALG_BLOCK 64 /* BLOCK of linalg/panels.clh */

/* The part of a batch of matrices [rows, columns] that begins there. */
static inline kn_gemm_operand kn_block_of(const kn_tensor *t, int64_t row, int64_t column)
{
    return (kn_gemm_operand){.buffer = t->storage->buffer,
                             .offset = t->offset + row * kn_columns(t) + column,
                             .ld = kn_columns(t),
                             .batch_stride = kn_rows(t) * kn_columns(t)};
}

/* c [m, n] = alpha a [m, k] b [k, n] + beta c for each of the matrices of a batch, in full precision. */
typedef struct kn_block_product {
    kn_dtype dtype;
    int64_t batch, m, n, k;
    double alpha, beta;
    kn_gemm_operand a, b, c;
} kn_block_product;
kn_status kn_multiply_blocks(kn_stream *stream, const kn_block_product *product);

/* The elements from one column to the next of a panel's copy (linalg/panels.clh). */
static inline int64_t kn_panel_column(int64_t rows)
{
    enum { UNUSED = 16 };
    return kn_round_up_i64(rows, KN_LINALG_BLOCK) + UNUSED;
}
