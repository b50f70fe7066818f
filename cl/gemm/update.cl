/* gemm/update.cl - matrix products of very short sums on CPU devices, such as outer products: C is as large as in other
 * products, and what takes time is writing it. So it is written row by row, in the order of its elements.
 *
 * The rows of op(B) are contiguous, and stay in the level-1 cache. Compiled in: T, VW. Local size 1. */
#include "common/koine.clh"
#include "gemm/finish.clh"
#include "gemm/pack.clh"
#include "gemm/finish_vector.clh"
#include "gemm/update.h"

enum { VECTORS = 4 }; /* at a time */

/* C's elements from c on = the products of a row of A with VECTORS vectors of B's columns. */
static inline void update(global T *restrict c, const global T *restrict bias, const global T *restrict a, long a_k,
                          const global T *restrict b, long b_k, int k_count, kn_gemm_finish f, bool plain)
{
    V sum[VECTORS];
#pragma unroll
    for (int v = 0; v < VECTORS; v++)
        sum[v] = (V)0;
    for (int k = 0; k < k_count; k++)
#pragma unroll
        for (int v = 0; v < VECTORS; v++)
            sum[v] = fma((V)a[k * a_k], VLOAD(v, b + k * b_k), sum[v]);
#pragma unroll
    for (int v = 0; v < VECTORS; v++)
        VSTORE(plain ? sum[v] : finish_vector(f, sum[v], c + v * VW, bias + v * VW, true), v, c);
}

/* dim 0: rows_per_item rows of C, counted through all matrices; dim 1: columns_per_item columns. */
KN_KERNEL_ONCE(gemm_update,
                   (KN_ARG(a), KN_ARG(b), KN_ARG(bias), KN_ARG(c), s, a_layout, b_layout, c_layout, finish), KN_IN(a),
                   KN_IN(b), KN_IN(bias), KN_OUT(c), kn_gemm_update_size s, kn_gemm_layout a_layout,
                   kn_gemm_layout b_layout, kn_gemm_layout c_layout, kn_gemm_finish finish)
{
    KN_BIND_IN(T, a);
    KN_BIND_IN(T, b);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, c);
    const long first = KN_ID(0) * s.rows_per_item, last = min(s.m * s.batch, first + s.rows_per_item);
    const long begin = KN_ID(1) * s.columns_per_item, end = min(s.n, begin + s.columns_per_item);
    const bool plain = keeps_sums(finish) && !finish.has_bias;
    for (long row = first; row < last; row++) {
        const long matrix = row / s.m, i = row - matrix * s.m;
        const global T *a_row = a + matrix * a_layout.batch_stride + i * a_layout.row_stride,
                       *b_rows = b + matrix * b_layout.batch_stride;
        global T *c_row = c + matrix * c_layout.batch_stride + i * c_layout.row_stride;
        long j = begin;
        for (; j + VECTORS * VW <= end; j += VECTORS * VW)
            update(c_row + j, bias + j, a_row, a_layout.col_stride, b_rows + j, b_layout.row_stride, s.k, finish,
                   plain);
        KN_NOT_UNROLLED
        for (; j < end; j++) {
            T sum = 0;
            KN_NOT_UNROLLED
            for (int k = 0; k < s.k; k++)
                sum = fma(a_row[k * a_layout.col_stride], b_rows[k * b_layout.row_stride + j], sum);
            c_row[j] = finish_value(finish, sum, c_row + j, bias + j);
        }
    }
}
