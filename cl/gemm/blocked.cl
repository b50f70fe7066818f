/* gemm/blocked.cl - matrix multiplication for GPUs: C = alpha op(A) op(B) + beta C + bias, cut off, row-major (gemm/blocked.clh).
 *
 * Compiled in: what gemm/blocked.clh says; A_ALONG_K and B_ALONG_K tell which dimension of op(A) and op(B) is contiguous. */
#include "common/koine.clh"
#include "gemm/blocked.clh"

typedef struct matrix_layout {
    long row_stride, col_stride, batch_stride;
} matrix_layout;

/* Q elements that are neighbours in memory: those inside the matrix, zeros for the others. aligned: p is at a multiple of 16 bytes. */
static inline VQ load_neighbours(const global T *p, long inside, int aligned)
{
    if (aligned && inside >= Q)
        return *(const global VQ *)p;
    T part[Q];
#pragma unroll
    for (int i = 0; i < Q; i++)
        part[i] = i < inside ? p[i] : (T)0;
    return VLOADQ(0, part);
}

/* R neighbours of a row of C, of which `columns` are inside. */
static inline void store_neighbours(global T *c, VR sum, long columns, T alpha, T beta, const global T *bias, T low, T high, bool aligned)
{
    sum *= alpha;
    if (aligned && columns >= R) {
        if (beta != (T)0)
            sum += beta * *(global VR *)c;
        if (bias)
            sum += VLOADR(0, bias);
        *(global VR *)c = KN_CUT(sum, (VR)low, (VR)high);
        return;
    }
    T part[R];
    VSTORER(sum, 0, part);
#pragma unroll
    for (int i = 0; i < R; i++)
        if (i < columns) {
            const T value = part[i] + (beta != (T)0 ? beta * c[i] : (T)0) + (bias ? bias[i] : (T)0);
            c[i] = KN_CUT(value, low, high);
        }
}

#define READ_A(vector, across, step, left)                                                                                 \
    (across < m ? load_neighbours(a + across * a_layout.row_stride + (step)*a_layout.col_stride, A_ALONG_K ? left : m - across, a_aligned) : (VQ)0)
#define READ_B(vector, across, step, left)                                                                                 \
    (across < n ? load_neighbours(b + across * b_layout.col_stride + (step)*b_layout.row_stride, B_ALONG_K ? left : n - across, b_aligned) : (VQ)0)

/* dim 0: block of columns, dim 1: block of rows, dim 2: batch. aligned: base, leading dimension and batch stride are multiples of Q. */
kernel __attribute__((reqd_work_group_size(BLOCK_ITEMS, 1, 1))) void
gemm_blocked(KN_IN(a), KN_IN(b), KN_IN(bias), KN_OUT(c), long m, long n, long k, matrix_layout a_layout, matrix_layout b_layout, long ldc, long c_batch_stride,
             T alpha, T beta, int has_bias, int a_aligned, int b_aligned, int c_aligned, T low, T high)
{
    KN_BIND_IN(T, a);
    KN_BIND_IN(T, b);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, c);
    const long first_row = (long)get_group_id(1) * BM, first_column = (long)get_group_id(0) * BN, batch = get_group_id(2);
    a += batch * a_layout.batch_stride + first_row * a_layout.row_stride;
    b += batch * b_layout.batch_stride + first_column * b_layout.col_stride;
    c += batch * c_batch_stride + first_row * ldc + first_column;
    m -= first_row; /* what is left from here on */
    n -= first_column;
    BLOCK_PRODUCT(k, READ_A, READ_B)
#pragma unroll
    for (int i = 0; i < RESULT_ROWS; i++)
#pragma unroll
        for (int j = 0; j < RESULT_COLUMNS; j++) {
            const long row = RESULT_ROW(i), column = RESULT_COLUMN(j);
            if (row < m && column < n)
                store_neighbours(c + row * ldc + column, RESULT(i, j), n - column, alpha, beta, has_bias ? bias + first_column + column : (const global T *)0, low, high,
                                 c_aligned);
        }
}
