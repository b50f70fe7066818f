/* gemm/small.cl - small matrix products on CPU devices, alone or in batches, for which the preparations of gemm/tile.cl
 * take longer than the products themselves.
 *
 * A work-item takes consecutive matrices, and computes each C in tiles (gemm/tile.clh). A is read in place, with any
 * strides, and so is B where a panel of it is a tile wide; else the panel is first copied to this work-item's part of
 * `scratch`, [k][NR].
 *
 * Compiled in: T, VW, NV, MR. Local size 1. */
#include "common/koine.clh"
#include "common/prefetch.clh"
#include "gemm/finish.clh"
#include "gemm/outer.clh"
#include "gemm/pack.clh"
#include "gemm/row_sums.clh"
#include "gemm/small.h"
#include "gemm/tile.clh"

/* sums = the sums over k of A's rows. */
static inline void sum_rows(global T *restrict sums, const global T *restrict a, long rows, long k_count, long stride)
{
    long i = 0;
    for (; i + 8 <= rows; i += 8)
        vstore8(sum_8_rows(a + i, k_count, stride), 0, sums + i);
    for (; i < rows; i++) {
        T sum = 0;
        for (long k = 0; k < k_count; k++)
            sum += a[i + k * stride];
        sums[i] = sum;
    }
}

/* dim 0: per_item matrices. With has_sums there is no bias, and these are written in its place: an argument more would
 * take 4 % of a launch. */
KN_KERNEL_ONCE(gemm_small,
                   (KN_ARG(a), KN_ARG(b), KN_ARG(bias), KN_ARG(c), KN_ARG(scratch), s, a_layout, b_layout, c_layout,
                    finish),
                   KN_IN(a), KN_IN(b), KN_INOUT(bias), KN_OUT(c), KN_OUT(scratch), kn_gemm_small_size s,
                   kn_gemm_layout a_layout, kn_gemm_layout b_layout, kn_gemm_layout c_layout, kn_gemm_finish finish)
{
    KN_BIND_IN(T, a);
    KN_BIND_IN(T, b);
    KN_BIND_OUT(T, bias);
    KN_BIND_OUT(T, c);
    KN_BIND_OUT(T, scratch);
    const long first = KN_ID(0) * s.per_item, last = min(s.batch, first + s.per_item);
    const bool plain = is_plain(finish, 1, 1);
    scratch += KN_ID(0) * s.k * NR;
    if (s.has_sums)
        sum_rows(bias, a, s.m, s.k, a_layout.col_stride);
    for (long matrix = first; matrix < last; matrix++)
        for (long j = 0; j < s.n; j += NR) {
            const int columns = (int)min((long)NR, s.n - j);
            const bool copied = columns < NR || b_layout.col_stride != 1;
            const global T *panel = b + matrix * b_layout.batch_stride + j * b_layout.col_stride;
            if (copied)
                pack_panel(scratch, panel, s.k, columns, NR, b_layout.row_stride, b_layout.col_stride);
            for (long i = 0; i < s.m; i += MR) {
                const tile_target to = {.c = c + matrix * c_layout.batch_stride + i * c_layout.row_stride + j,
                                        .bias = bias + j,
                                        .c_row = c_layout.row_stride,
                                        .c_column = 1,
                                        .bias_column = 1};
                tile(to, a + matrix * a_layout.batch_stride + i * a_layout.row_stride, false, a_layout.row_stride,
                     a_layout.col_stride, copied ? scratch : panel, copied ? NR : b_layout.row_stride, s.k,
                     (int)min((long)MR, s.m - i), columns, finish, plain);
            }
        }
}
