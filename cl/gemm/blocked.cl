/* gemm/blocked.cl - matrix multiplication for GPUs: C = alpha op(A) op(B) + beta C + bias, cut off, row-major.
 *
 * A work-group of (BM / TM) x (BN / TN) work-items computes a block of BM x BN of C. It walks over k in steps of BK: the two slices A [BM x BK] and B [BK x BN] are
 * copied to local memory, from which each work-item multiplies TM x TN results in registers: per k it reads TM + TN values for TM * TN multiply-adds, and each
 * value in local memory is read by the other work-items of its row or column too.
 *
 *  - Registers hold the next slice while the present one is multiplied, and local memory has room for two: one barrier per slice, and the global loads have the
 *    whole multiplication to arrive.
 *  - A lies in local memory with its rows along the fast dimension ([k][row]), so that both operands are read as vectors of Q (16 bytes). A work-item's rows are
 *    groups of Q, BM / (TM / Q) apart, so that neighbours read neighbouring vectors: no bank conflicts. PAD rows out the transposing stores' conflicts.
 *  - Global memory is read in vectors of Q along whatever dimension of the operand is contiguous; where the operands do not start on such boundaries, element by element.
 *  - Beyond the edges of the operands zeros are read and nothing is stored.
 *
 * Compiled in: T, Q (elements of 16 bytes), BM, BN, BK, TM, TN (multiples of Q), A_ALONG_K and B_ALONG_K (1: the operand is contiguous along k; 0: along its rows or
 * columns). Local size (BM / TM) * (BN / TN). */
#include "common/koine.clh"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define VQ JOIN(T, Q)
#define VLOADQ JOIN(vload, Q)
#define VSTOREQ JOIN(vstore, Q)

#define ITEMS_M (BM / TM)
#define ITEMS_N (BN / TN)
#define ITEMS (ITEMS_M * ITEMS_N)
#define PAD Q
#define A_PITCH (BM + PAD)
#define B_PITCH (BN + PAD)
#define A_VECTORS ((BM * BK + ITEMS * Q - 1) / (ITEMS * Q)) /* of a slice, per work-item */
#define B_VECTORS ((BN * BK + ITEMS * Q - 1) / (ITEMS * Q))

typedef struct matrix_layout {
    long row_stride, col_stride, batch_stride;
} matrix_layout;

/* An operand as the copying sees it: `width` rows of A or columns of B by k. */
typedef struct slice_source {
    long width_stride, k_stride;
    long width;                /* rows or columns from here to the matrix' edge */
    int aligned;               /* base and strides are multiples of Q */
} slice_source;

/* Q elements that are neighbours in memory: those inside the matrix, zeros for the others. */
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

/* Reads this work-item's vectors of the slice at k (k_left values are left): vector number i of the slice has its neighbours along k, or along the width. */
#define READ_SLICE(registers, count, x, source, block, along_k, k_left)                                                    \
    _Pragma("unroll") for (int j = 0; j < count; j++)                                                                      \
    {                                                                                                                      \
        const int i = item + j * ITEMS, w = along_k ? i / (BK / Q) : i % (block / Q) * Q,                                  \
                  depth = along_k ? i % (BK / Q) * Q : i / (block / Q);                                                        \
        const bool there = i < block * BK / Q && w < source.width && depth < k_left;                                           \
        registers[j] = there ? load_neighbours(x + w * source.width_stride + depth * source.k_stride,                            \
                                               along_k ? k_left - depth : source.width - w, source.aligned)                    \
                             : (VQ)0;                                                                                      \
    }

/* Writes them to local memory, [k][width]. */
#define WRITE_SLICE(to, registers, count, block, pitch, along_k)                                                           \
    _Pragma("unroll") for (int j = 0; j < count; j++)                                                                      \
    {                                                                                                                      \
        const int i = item + j * ITEMS, w = along_k ? i / (BK / Q) : i % (block / Q) * Q,                                  \
                  depth = along_k ? i % (BK / Q) * Q : i / (block / Q);                                                        \
        if (i < block * BK / Q) {                                                                                          \
            T part[Q];                                                                                                     \
            VSTOREQ(registers[j], 0, part);                                                                                \
            if (along_k) {                                                                                                 \
                _Pragma("unroll") for (int e = 0; e < Q; e++)(to)[(depth + e) * pitch + w] = part[e];                          \
            } else {                                                                                                       \
                *(local VQ *)((to) + depth * pitch + w) = registers[j];                                                        \
            }                                                                                                              \
        }                                                                                                                  \
    }

/* Q neighbours of a row of C, of which `columns` are inside; aligned: at a multiple of 16 bytes. */
static inline void store_results(global T *c, VQ sum, long columns, T alpha, T beta, const global T *bias, T low, T high, bool aligned)
{
    sum *= alpha;
    if (aligned && columns >= Q) {
        if (beta != (T)0)
            sum += beta * *(global VQ *)c;
        if (bias)
            sum += VLOADQ(0, bias);
        *(global VQ *)c = KN_CUT(sum, (VQ)low, (VQ)high);
        return;
    }
    T part[Q];
    VSTOREQ(sum, 0, part);
#pragma unroll
    for (int i = 0; i < Q; i++)
        if (i < columns) {
            const T value = part[i] + (beta != (T)0 ? beta * c[i] : (T)0) + (bias ? bias[i] : (T)0);
            c[i] = KN_CUT(value, low, high);
        }
}

/* dim 0: block of columns, dim 1: block of rows, dim 2: batch. */
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
gemm_blocked(KN_IN(a), KN_IN(b), KN_IN(bias), KN_OUT(c), long m, long n, long k, matrix_layout a_layout, matrix_layout b_layout, long ldc, long c_batch_stride,
             T alpha, T beta, int has_bias, int a_aligned, int b_aligned, int c_aligned, T low, T high)
{
    local T a_slices[2][BK * A_PITCH] __attribute__((aligned(16)));
    local T b_slices[2][BK * B_PITCH] __attribute__((aligned(16)));
    KN_BIND_IN(T, a);
    KN_BIND_IN(T, b);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, c);
    const int item = get_local_id(0), item_n = item % ITEMS_N, item_m = item / ITEMS_N;
    const long first_row = (long)get_group_id(1) * BM, first_column = (long)get_group_id(0) * BN, batch = get_group_id(2);
    const slice_source a_source = {a_layout.row_stride, a_layout.col_stride, m - first_row, a_aligned};
    const slice_source b_source = {b_layout.col_stride, b_layout.row_stride, n - first_column, b_aligned};
    a += batch * a_layout.batch_stride + first_row * a_layout.row_stride;
    b += batch * b_layout.batch_stride + first_column * b_layout.col_stride;

    VQ sum[TM][TN / Q], a_next[A_VECTORS], b_next[B_VECTORS];
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN / Q; j++)
            sum[i][j] = (VQ)0;
    READ_SLICE(a_next, A_VECTORS, a, a_source, BM, A_ALONG_K, k)
    READ_SLICE(b_next, B_VECTORS, b, b_source, BN, B_ALONG_K, k)
    WRITE_SLICE(a_slices[0], a_next, A_VECTORS, BM, A_PITCH, A_ALONG_K)
    WRITE_SLICE(b_slices[0], b_next, B_VECTORS, BN, B_PITCH, B_ALONG_K)
    barrier(CLK_LOCAL_MEM_FENCE);

    int present = 0;
    for (long k0 = 0; k0 < k; k0 += BK) {
        const long k_left = k - k0 - BK;
        if (k_left > 0) {
            a += BK * a_source.k_stride;
            b += BK * b_source.k_stride;
            READ_SLICE(a_next, A_VECTORS, a, a_source, BM, A_ALONG_K, k_left)
            READ_SLICE(b_next, B_VECTORS, b, b_source, BN, B_ALONG_K, k_left)
        }
        const local T *a_slice = a_slices[present] + item_m * Q, *b_slice = b_slices[present] + item_n * Q;
#pragma unroll
        for (int step = 0; step < BK; step++) {
            VQ row[TM / Q], column[TN / Q];
#pragma unroll
            for (int i = 0; i < TM / Q; i++)
                row[i] = *(const local VQ *)(a_slice + step * A_PITCH + i * ITEMS_M * Q);
#pragma unroll
            for (int j = 0; j < TN / Q; j++)
                column[j] = *(const local VQ *)(b_slice + step * B_PITCH + j * ITEMS_N * Q);
#pragma unroll
            for (int i = 0; i < TM / Q; i++)
#pragma unroll
                for (int j = 0; j < TN / Q; j++) {
                    sum[i * Q + 0][j] = fma((VQ)row[i].s0, column[j], sum[i * Q + 0][j]);
                    sum[i * Q + 1][j] = fma((VQ)row[i].s1, column[j], sum[i * Q + 1][j]);
#if Q == 4
                    sum[i * Q + 2][j] = fma((VQ)row[i].s2, column[j], sum[i * Q + 2][j]);
                    sum[i * Q + 3][j] = fma((VQ)row[i].s3, column[j], sum[i * Q + 3][j]);
#endif
                }
        }
        present = 1 - present;
        if (k_left > 0) {
            WRITE_SLICE(a_slices[present], a_next, A_VECTORS, BM, A_PITCH, A_ALONG_K)
            WRITE_SLICE(b_slices[present], b_next, B_VECTORS, BN, B_PITCH, B_ALONG_K)
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

#pragma unroll
    for (int i = 0; i < TM; i++) {
        const long row = first_row + (i / Q * ITEMS_M + item_m) * Q + i % Q;
#pragma unroll
        for (int j = 0; j < TN / Q; j++) {
            const long column = first_column + (j * ITEMS_N + item_n) * Q;
            if (row < m && column < n)
                store_results(c + batch * c_batch_stride + row * ldc + column, sum[i][j], n - column, alpha, beta, has_bias ? bias + column : (const global T *)0,
                              low, high, c_aligned);
        }
    }
}
