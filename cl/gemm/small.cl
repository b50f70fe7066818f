/* gemm/small.cl - batches of small matrix products on CPU devices, for which the preparations of gemm/tile.cl take
 * longer than the products themselves.
 *
 * A work-item takes consecutive matrices, and of each C tiles of ROWS rows by one vector of columns. A is read in
 * place, with any strides, and so is B where a panel of it is a whole vector wide; else the panel is first copied to
 * this work-item's part of `scratch`, [k][VW].
 *
 * Compiled in: T, VW. Local size 1. */
#include "common/affinity.clh"
#include "gemm/finish.clh"
#include "gemm/pack.clh"
#include "gemm/small.h"

enum { ROWS = 8 };

static inline void copy_panel(global T *restrict panel, const global T *restrict b, kn_gemm_layout layout, long k_count,
                              int columns)
{
    for (long k = 0; k < k_count; k++)
        KN_NOT_UNROLLED
    for (int j = 0; j < VW; j++)
        panel[k * VW + j] = j < columns ? b[k * layout.row_stride + j * layout.col_stride] : (T)0;
}

/* sum = the rows of A times a panel of B. */
static inline void add_products(V sum[ROWS], const global T *restrict row[ROWS], const long a_k,
                                const global T *restrict b, const long b_k, long k_count)
{
    for (long k = 0; k < k_count; k++) {
        const V part = VLOAD(0, b + k * b_k);
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            sum[i] = fma((V)row[i][k * a_k], part, sum[i]);
    }
}

/* A tile of `rows` by `columns`. */
static inline void tile(global T *restrict c, long c_row, const global T *restrict bias, const global T *restrict a,
                        kn_gemm_layout a_layout, const global T *restrict b, long b_k, long k_count, int rows,
                        int columns, kn_gemm_finish finish, bool plain)
{
    V sum[ROWS];
    const global T *row[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        sum[i] = (V)0;
        row[i] = a + min(i, rows - 1) * a_layout.row_stride; /* sums beyond the last row are not stored */
    }
    if (a_layout.col_stride == 1)
        add_products(sum, row, 1, b, b_k, k_count);
    else
        add_products(sum, row, a_layout.col_stride, b, b_k, k_count);
    if (plain && columns == VW) {
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            if (i < rows)
                VSTORE(sum[i], 0, c + i * c_row);
        return;
    }
    T part[ROWS * VW];
#pragma unroll
    for (int i = 0; i < ROWS; i++)
        VSTORE(sum[i], i, part);
    for (int i = 0; i < rows; i++)
        KN_NOT_UNROLLED
    for (int j = 0; j < columns; j++)
        c[i * c_row + j] = finish_value(finish, part[i * VW + j], c + i * c_row + j, bias + j);
}

/* dim 0: per_item matrices. */
KN_KERNEL_AFFINITY(gemm_small,
                   (KN_ARG(a), KN_ARG(b), KN_ARG(bias), KN_ARG(c), KN_ARG(scratch), s, a_layout, b_layout, c_layout,
                    finish),
                   KN_IN(a), KN_IN(b), KN_IN(bias), KN_OUT(c), KN_OUT(scratch), kn_gemm_small_size s,
                   kn_gemm_layout a_layout, kn_gemm_layout b_layout, kn_gemm_layout c_layout, kn_gemm_finish finish)
{
    KN_BIND_IN(T, a);
    KN_BIND_IN(T, b);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, c);
    KN_BIND_OUT(T, scratch);
    const long first = KN_ID(0) * s.per_item, last = min(s.batch, first + s.per_item);
    const bool plain = keeps_sums(finish) && !finish.has_bias;
    scratch += KN_ID(0) * s.k * VW;
    for (long matrix = first; matrix < last; matrix++)
        for (long j = 0; j < s.n; j += VW) {
            const int columns = (int)min((long)VW, s.n - j);
            const bool copied = columns < VW || b_layout.col_stride != 1;
            const global T *panel = b + matrix * b_layout.batch_stride + j * b_layout.col_stride;
            if (copied)
                copy_panel(scratch, panel, b_layout, s.k, columns);
            for (long i = 0; i < s.m; i += ROWS)
                tile(c + matrix * c_layout.batch_stride + i * c_layout.row_stride + j, c_layout.row_stride, bias + j,
                     a + matrix * a_layout.batch_stride + i * a_layout.row_stride, a_layout, copied ? scratch : panel,
                     copied ? VW : b_layout.row_stride, s.k, (int)min((long)ROWS, s.m - i), columns, finish, plain);
        }
}
