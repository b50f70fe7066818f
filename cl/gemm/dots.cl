/* gemm/dots.cl - matrix products on CPU devices whose operands are both contiguous along k (A plain, B transposed),
 * read in place: each element of C is a dot product, vectorised along k.
 *
 * Packing B for gemm/tile.cl would cost as much as some 30 rows of A. A tile is DOT_ROWS by DOT_COLUMNS sums, each a
 * vector whose lanes are added at the end: per vector of k, DOT_ROWS + DOT_COLUMNS loads feed DOT_ROWS * DOT_COLUMNS
 * multiply-adds. A tile's rows of B stay in the level-1 cache for all rows of A.
 *
 * Compiled in: T, VW, REGISTERS (vector registers). Local size 1, no local memory, no
 * barrier. */
#include "common/koine.clh"
#include "gemm/finish.clh"
#include "gemm/pack.clh"

#define DOT_ROWS (REGISTERS >= 32 ? 4 : 2)
#define DOT_COLUMNS 4

/* Adds halves until one lane is left. */
static inline T sum_lanes(V value)
{
    T part[VW];
    VSTORE(value, 0, part);
#pragma unroll
    for (int width = VW / 2; width > 0; width /= 2)
#pragma unroll
        for (int i = 0; i < width; i++)
            part[i] += part[i + width];
    return part[0];
}

/* C[i, j] for `rows` (at most DOT_ROWS) and `columns` (at most DOT_COLUMNS). */
static inline void dot_tile(global T *restrict c, const global T *restrict a, const global T *restrict b,
                            const global T *restrict bias, long ldc, long a_stride, long b_stride, long k, int rows,
                            int columns, kn_gemm_finish f)
{
    const global T *x[DOT_ROWS], *y[DOT_COLUMNS];
    V sum[DOT_ROWS][DOT_COLUMNS];
    /* Rows and columns beyond the edge repeat the last one and are not stored. */
#pragma unroll
    for (int j = 0; j < DOT_COLUMNS; j++)
        y[j] = b + min(j, columns - 1) * b_stride;
#pragma unroll
    for (int i = 0; i < DOT_ROWS; i++) {
        x[i] = a + min(i, rows - 1) * a_stride;
#pragma unroll
        for (int j = 0; j < DOT_COLUMNS; j++)
            sum[i][j] = (V)0;
    }
    long p = 0;
    for (; p + VW <= k; p += VW) {
        V column[DOT_COLUMNS];
#pragma unroll
        for (int j = 0; j < DOT_COLUMNS; j++)
            column[j] = VLOAD(0, y[j] + p);
#pragma unroll
        for (int i = 0; i < DOT_ROWS; i++) {
            const V row = VLOAD(0, x[i] + p);
#pragma unroll
            for (int j = 0; j < DOT_COLUMNS; j++)
                sum[i][j] = fma(row, column[j], sum[i][j]);
        }
    }
#pragma unroll
    for (int i = 0; i < DOT_ROWS; i++)
#pragma unroll
        for (int j = 0; j < DOT_COLUMNS; j++) {
            T total = sum_lanes(sum[i][j]);
            for (long q = p; q < k; q++)
                total = fma(x[i][q], y[j][q], total);
            if (i < rows && j < columns)
                c[i * ldc + j] = finish_value(f, total, c + i * ldc + j, bias + j);
        }
}

/* dim 0: block of columns_per_item columns of C, dim 1: batch. */
KN_KERNEL_ONCE(gemm_dots,
               (KN_ARG(a), KN_ARG(b), KN_ARG(bias), KN_ARG(c), m, n, k, a_stride, a_batch_stride, b_stride,
                b_batch_stride, ldc, c_batch_stride, columns_per_item, given),
               KN_IN(a), KN_IN(b), KN_IN(bias), KN_OUT(c), long m, long n, long k, long a_stride, long a_batch_stride,
               long b_stride, long b_batch_stride, long ldc, long c_batch_stride, long columns_per_item,
               const kn_gemm_finish given)
{
    const kn_gemm_finish finish = given;
    KN_BIND_IN(T, a);
    KN_BIND_IN(T, b);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, c);
    const long batch = KN_ID(1), first = KN_ID(0) * columns_per_item,
               last = min(n, first + columns_per_item);
    a += batch * a_batch_stride;
    b += batch * b_batch_stride;
    c += batch * c_batch_stride;
    for (long j = first; j < last; j += DOT_COLUMNS)
        for (long i = 0; i < m; i += DOT_ROWS)
            dot_tile(c + i * ldc + j, a + i * a_stride, b + j * b_stride, bias + j, ldc, a_stride, b_stride, k,
                     (int)min((long)DOT_ROWS, m - i), (int)min((long)DOT_COLUMNS, last - j), finish);
}
