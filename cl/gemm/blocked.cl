/* gemm/blocked.cl - matrix multiplication for GPUs: C = alpha op(A) op(B) + beta C + bias, clamped, row-major
 * (gemm/blocked.clh).
 *
 * Compiled in: as in gemm/blocked.clh; A_ALONG_K and B_ALONG_K say which dimension of op(A) and op(B) is contiguous. */
#include "common/koine.clh"
#include "gemm/block.clh"
#include "gemm/blocked.clh"
#include "gemm/blocked_matrix.clh"
#include "gemm/layout.h"

/* Stores R neighbours in a row of C, of which `columns` are inside. */
static inline void store_neighbours(global T *c, VR sum, long columns, T alpha, T beta, const global T *bias, T low,
                                    T high, bool aligned)
{
    sum *= alpha;
    if (aligned && columns >= R) {
        if (beta != (T)0)
            sum += beta * *(global VR *)c;
        if (bias)
            sum += VLOADR(0, bias);
        *(global VR *)c = KN_CLAMP(sum, (VR)low, (VR)high);
        return;
    }
    T part[R];
    VSTORER(sum, 0, part);
#pragma unroll
    for (int i = 0; i < R; i++)
        if (i < columns) {
            const T value = part[i] + (beta != (T)0 ? beta * c[i] : (T)0) + (bias ? bias[i] : (T)0);
            c[i] = KN_CLAMP(value, low, high);
        }
}

#define NEXT_SLICE(start) /* nothing to do: the pointers advance */
#define READ_A(j, step, left)                                                                                          \
    read_next(&a_at[j], A_ALONG_K ? BK : BK *a_layout.col_stride,                                                      \
              A_ALONG_K    ? (left)                                                                                    \
              : (left) > 0 ? a_inside[j]                                                                               \
                           : 0,                                                                                        \
              a_aligned)
#define READ_B(j, step, left)                                                                                          \
    read_next(&b_at[j], B_ALONG_K ? BK : BK *b_layout.row_stride,                                                      \
              B_ALONG_K    ? (left)                                                                                    \
              : (left) > 0 ? b_inside[j]                                                                               \
                           : 0,                                                                                        \
              b_aligned)

/* A work-group makes a block of the result (gemm/block.clh). aligned: base, leading dimension and batch stride are
 * multiples of Q. */
kernel __attribute__((reqd_work_group_size(BLOCK_ITEMS, 1, 1))) void
gemm_blocked(KN_IN(a), KN_IN(b), KN_IN(bias), KN_OUT(c), long m, long n, long k, kn_gemm_layout a_layout,
             kn_gemm_layout b_layout, long ldc, long c_batch_stride, T alpha, T beta, int has_bias, int a_aligned,
             int b_aligned, int c_aligned, T low, T high)
{
    KN_BIND_IN(T, a);
    KN_BIND_IN(T, b);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, c);
    const kn_gemm_block place = KN_GEMM_BLOCK(m, n);
    const long first_row = place.row, first_column = place.column, batch = place.batch;
    a += batch * a_layout.batch_stride + first_row * a_layout.row_stride;
    b += batch * b_layout.batch_stride + first_column * b_layout.col_stride;
    c += batch * c_batch_stride + first_row * ldc + first_column;
    m -= first_row; /* what remains from here on */
    n -= first_column;
    const int item = get_local_id(0);
    DECLARE_VECTORS(T, a, A_VECTORS, BM, A_ALONG_K, a_layout.row_stride, a_layout.col_stride, m)
    DECLARE_VECTORS(T, b, B_VECTORS, BN, B_ALONG_K, b_layout.col_stride, b_layout.row_stride, n)
    BLOCK_PRODUCT(k, NEXT_SLICE, READ_A, READ_B)
#pragma unroll
    for (int i = 0; i < RESULT_ROWS; i++)
#pragma unroll
        for (int j = 0; j < RESULT_COLUMNS; j++) {
            const long row = RESULT_ROW(i), column = RESULT_COLUMN(j);
            if (row < m && column < n)
                store_neighbours(c + row * ldc + column, RESULT(i, j), n - column, alpha, beta,
                                 has_bias ? bias + first_column + column : (const global T *)0, low, high, c_aligned);
        }
}
