/* gemm/row.cl - one row times a matrix with contiguous rows, on CPU devices; memory-bound.
 *
 * The matrix is read in place, in slices of rows: a slice's row of sums stays in the level-1 cache while eight rows at
 * a time are added to it. gemm/total.cl adds the slices.
 *
 * Compiled in: T, VW; BFLOAT (gemm/element.clh). Local size 1. */
#include "common/koine.clh"
#include "common/bfloat.clh"
#include "gemm/finish.clh"
#include "gemm/pack.clh"
#include "gemm/element.clh"

#define ROWS 8

/* sum[first..last) += x[r] * b[r], over `rows` rows, a constant after inlining: a translator to SPIR-V fails where the
 * length of an unrolled loop is not known. */
KN_INLINE void add_rows(global T *restrict sum, const global element *restrict x, long x_stride,
                        const global element *restrict b, long b_stride, const int rows, long first, long last)
{
    T factor[ROWS];
    for (int r = 0; r < rows; r++)
        factor[r] = VALUE(x[r * x_stride]);
    long j = first;
    for (; j + VW <= last; j += VW) {
        V s = VLOAD(0, sum + j);
#pragma unroll
        for (int r = 0; r < rows; r++)
            s = fma((V)factor[r], VALUES(b + r * b_stride + j), s);
        VSTORE(s, 0, sum + j);
    }
    for (; j < last; j++)
        for (int r = 0; r < rows; r++)
            sum[j] = fma(factor[r], VALUE(b[r * b_stride + j]), sum[j]);
}

/* part[slice][n]. dim 0: block of `columns`, dim 1: slice of `slice` rows. */
KN_KERNEL_ONCE(gemm_row_sums,
               (KN_ARG(x), KN_ARG(b), KN_ARG(part), n, k, x_stride, b_stride, columns, slice),
               KN_IN(x), KN_IN(b), KN_OUT(part), long n, long k, long x_stride, long b_stride, long columns, long slice)
{
    KN_BIND_IN(element, x);
    KN_BIND_IN(element, b);
    KN_BIND_OUT(T, part);
    const long first = KN_ID(0) * columns, last = min(n, first + columns),
               end = min(k, (KN_ID(1) + 1) * slice);
    long i = KN_ID(1) * slice;
    part += KN_ID(1) * n;
    for (long j = first; j < last; j++)
        part[j] = 0;
    for (; i + ROWS <= end; i += ROWS)
        add_rows(part, x + i * x_stride, x_stride, b + i * b_stride, b_stride, ROWS, first, last);
    for (; i < end; i++)
        add_rows(part, x + i * x_stride, x_stride, b + i * b_stride, b_stride, 1, first, last);
}
