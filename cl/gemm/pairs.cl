/* gemm/pairs.cl - products of bf16 matrices on CPU devices: C = clamp(A B + bias), where two products at a time are
 * added to a sum in f32 (gemm/pair_dots.clh).
 *
 * Operands are read as words of two elements that follow each other along k; a last one of its own is with a zero. The
 * work is divided as in gemm/tile.cl. B is staged block by block in this work-item's part of `scratch`, as panels of
 * words [k][NR], and so is A as panels [k][MR], unless its rows are such words already.
 *
 * Compiled in: T = float, VW, NV, MR; DOTS. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "common/bfloat.clh"
#include "common/prefetch.clh"
#include "gemm/finish.clh"
#include "gemm/pack.clh"
#include "gemm/bfloat_finish.clh"
#include "gemm/pair_dots.clh"
#include "gemm/pairs.h"
#include "gemm/tile.h"

#define NR (NV * VW)
#define STAGED(words, width) ((words) * (width) + STAGED_GAP)

/* Where a tile is stored: in C, or, if more blocks of k follow, in `sums`, f32 in the same order, to which the next
 * block adds. */
typedef struct pair_target {
    global ushort *c;
    const global ushort *bias;
    global float *sums;
    long row;
    bool first, last; /* block of k */
} pair_target;

/* Stores the first rows by columns of a tile, whose sums [MR][NR] are in memory, so that the code is shared. */
static inline void store_tile(pair_target to, const float *part, int rows, int columns, kn_gemm_finish f)
{
    for (int i = 0; i < rows; i++, part += NR) {
        global float *sums = to.sums + i * to.row;
        global ushort *c = to.c + i * to.row;
        int j = 0;
        for (; j + VW <= columns; j += VW) {
            const V sum = VLOAD(0, part + j) + (to.first ? (V)0 : VLOAD(0, sums + j));
            if (to.last)
                finish_sums(f, sum, c + j, to.bias + j);
            else
                VSTORE(sum, 0, sums + j);
        }
        KN_NOT_UNROLLED
        for (; j < columns; j++) {
            const float sum = part[j] + (to.first ? 0 : sums[j]);
            if (to.last)
                finish_sum(f, sum, c + j, to.bias + j);
            else
                sums[j] = sum;
        }
    }
}

/* --- staging ------------------------------------------------------------------------------------------------------ */

/* A word of each of `width` columns, of which two elements are in the rows x and y, the upper ones masked; zeros from
 * there to panel_width. */
#define JOIN_NEXT(w)                                                                                                   \
    for (; j + w <= width; j += w)                                                                                     \
    KN_JOIN(vstore, w)                                                                                                 \
    (KN_JOIN(convert_uint, w)(KN_JOIN(vload, w)(0, x + j)) |                                                           \
         (KN_JOIN(convert_uint, w)(KN_JOIN(vload, w)(0, y + j)) << 16 & upper),                                        \
     0, to + j)
KN_INLINE void join_rows(global uint *restrict to, const global ushort *restrict x, const global ushort *restrict y,
                         const uint upper, const int width, const int panel_width)
{
    int j = 0;
    JOIN_NEXT(16);
    JOIN_NEXT(8);
    JOIN_NEXT(4);
    for (; j < width; j++)
        to[j] = (uint)x[j] | ((uint)y[j] << 16 & upper);
    for (; j < panel_width; j++)
        to[j] = 0;
}

/* Of an operand whose elements are contiguous across k. */
enum { ROWS_AHEAD = 16 };
KN_INLINE void stage_rows(global uint *restrict to, const global ushort *restrict x, long count, long k_count,
                          long k_stride, const int panel_width)
{
    const long words = (k_count + 1) / 2;
    for (long p = 0; p < words; p++) {
        const bool pair = 2 * p + 1 < k_count;
        const global ushort *row = x + 2 * p * k_stride, *next = row + (pair ? k_stride : 0);
        const uint upper = pair ? 0xffff0000u : 0;
        for (long j = 0; j < count; j += panel_width) {
            global uint *panel = to + j / panel_width * STAGED(words, panel_width) + p * panel_width;
            PREFETCH(row + ROWS_AHEAD * k_stride + j);
            PREFETCH(next + ROWS_AHEAD * k_stride + j);
            if (j + panel_width <= count)
                join_rows(panel, row + j, next + j, upper, panel_width, panel_width);
            else
                join_rows(panel, row + j, next + j, upper, (int)(count - j), panel_width);
        }
    }
}

/* From the k-th element on, of any operand. */
static inline void gather_words(global uint *restrict panel, const global ushort *restrict x, long k, long k_count,
                                long k_stride, long stride, int width, int panel_width)
{
    for (; k < k_count; k += 2)
        KN_NOT_UNROLLED
    for (int j = 0; j < panel_width; j++) {
        const global ushort *first = x + k * k_stride + j * stride;
        const uint upper = j < width && k + 1 < k_count ? (uint)first[k_stride] << 16 : 0;
        panel[k / 2 * panel_width + j] = j < width ? upper | first[0] : 0;
    }
}

/* Stages `count` columns of B, or rows of A, as panels of words [k][panel_width]. */
KN_INLINE void stage(global uint *restrict to, const global ushort *restrict x, long count, long k_count, long k_stride,
                     long stride, bool in_words, const int panel_width)
{
    if (stride == 1) {
        stage_rows(to, x, count, k_count, k_stride, panel_width);
        return;
    }
    const long whole = in_words ? k_count / 2 : 0;
    for (long j = 0; j < count; j += panel_width, to += STAGED((k_count + 1) / 2, panel_width)) {
        const int width = (int)min((long)panel_width, count - j);
        const global ushort *from = x + j * stride;
        if (whole > 0)
            pack_panel((global float *)to, (const global float *)from, whole, width, panel_width, 1, stride / 2);
        gather_words(to, from, 2 * whole, k_count, k_stride, stride, width, panel_width);
    }
}

KN_ONCE void stage_a(global uint *restrict to, const global ushort *restrict x, long rows, long k_count,
                     kn_gemm_layout layout, bool in_words)
{
    stage(to, x, rows, k_count, layout.col_stride, layout.row_stride, in_words, MR);
}
KN_ONCE void stage_b(global uint *restrict to, const global ushort *restrict x, long columns, long k_count,
                     kn_gemm_layout layout, bool in_words)
{
    stage(to, x, columns, k_count, layout.row_stride, layout.col_stride, in_words, NR);
}

/* --- sums --------------------------------------------------------------------------------------------------------- */

KN_INLINE void add_words(V sum[MR][NV], const uint column[MR], const global uint *restrict b)
{
    U part[NV];
#pragma unroll
    for (int v = 0; v < NV; v++)
        part[v] = VLOAD(v, b);
#pragma unroll
    for (int i = 0; i < MR; i++)
#pragma unroll
        for (int v = 0; v < NV; v++)
            sum[i][v] = add_pairs(sum[i][v], (U)column[i], part[v]);
}
KN_INLINE void add_step(V sum[MR][NV], const global uint *restrict row[MR], long p, const global uint *restrict b)
{
    uint column[MR];
#pragma unroll
    for (int i = 0; i < MR; i++)
        column[i] = row[i][p];
    add_words(sum, column, b + p * NR);
}
KN_INLINE void add_staged_step(V sum[MR][NV], const global uint *restrict a, long p, const global uint *restrict b)
{
    uint column[MR];
#pragma unroll
    for (int i = 0; i < MR; i++)
        column[i] = a[p * MR + i];
    add_words(sum, column, b + p * NR);
}

/* In fours, as in gemm/tile.clh. */
enum { STEPS = 4 };
#define ADD_ALL(step, a)                                                                                               \
    do {                                                                                                               \
        long p = 0;                                                                                                    \
        for (; p + STEPS <= words; p += STEPS)                                                                         \
            _Pragma("unroll") for (int i = 0; i < STEPS; i++) step(sum, a, p + i, b);                                  \
        for (; p < words; p++)                                                                                         \
            step(sum, a, p, b);                                                                                        \
    } while (0)

/* A tile: rows (at most MR) by columns (at most NR). A's rows are a_row elements apart; 0: `a` is a staged panel. */
static inline void tile(pair_target to, const global ushort *restrict a, long a_row, const global uint *restrict b,
                        long words, int rows, int columns, kn_gemm_finish f)
{
    V sum[MR][NV];
#pragma unroll
    for (int i = 0; i < MR; i++)
#pragma unroll
        for (int v = 0; v < NV; v++)
            sum[i][v] = (V)0;
    if (a_row == 0) {
        const global uint *panel = (const global uint *)a;
        ADD_ALL(add_staged_step, panel);
    } else {
        const global uint *row[MR] = {(const global uint *)a}; /* beyond the edge the first again, not stored */
#pragma unroll
        for (int i = 1; i < MR; i++)
            row[i] = (const global uint *)(i < rows ? a + i * a_row : a);
        ADD_ALL(add_step, row);
    }
    float part[MR * NR];
#pragma unroll
    for (int i = 0; i < MR; i++)
#pragma unroll
        for (int v = 0; v < NV; v++)
            VSTORE(sum[i][v], 0, part + i * NR + v * VW);
    store_tile(to, part, rows, columns, f);
}

/* The rows from first_row on of the panels from first_panel on; a, b and those of `to`: this matrix of the batch. As in
 * gemm/tile.cl, where B is always staged. */
KN_ONCE void multiply_unit(pair_target to, const global ushort *restrict a, const global ushort *restrict b,
                           global uint *restrict scratch, kn_gemm_tile_plan p, kn_gemm_words operands,
                           kn_gemm_layout a_layout, kn_gemm_layout b_layout, long first_row, long first_panel,
                           kn_gemm_finish finish)
{
    const long last_row = min(p.m, first_row + p.rows_per_unit);
    const long last_panel = min(p.panels, first_panel + p.panels_per_unit);
    const bool a_stays = p.k <= p.k_block && p.rows_per_unit <= p.row_block;
    global uint *b_scratch = scratch + (p.a_staged ? p.row_block / MR * STAGED(min(p.k, p.k_block), MR) : 0);
    for (long group = first_panel; group < last_panel; group += p.panel_block)
        for (long k0 = 0; k0 == 0 || k0 < p.k; k0 += p.k_block) {
            const long k_count = min(2 * p.k_block, operands.k - 2 * k0), words = (k_count + 1) / 2;
            const long end_panel = min(last_panel, group + p.panel_block);
            to.first = k0 == 0;
            to.last = k0 + p.k_block >= p.k;
            stage_b(b_scratch, b + group * NR * b_layout.col_stride + 2 * k0 * b_layout.row_stride,
                    min(p.n, end_panel * NR) - group * NR, k_count, b_layout, operands.b_words);
            for (long row0 = first_row; row0 < last_row; row0 += p.row_block) {
                const long end_row = min(last_row, row0 + p.row_block);
                const global ushort *rows = a + row0 * a_layout.row_stride + 2 * k0 * a_layout.col_stride;
                if (p.a_staged && !(a_stays && group > first_panel))
                    stage_a(scratch, rows, end_row - row0, k_count, a_layout, operands.a_words);
                for (long panel = group; panel < end_panel; panel++)
                    for (long i = row0; i < end_row; i += MR) {
                        const long place = i * to.row + panel * NR;
                        const pair_target at = {to.c + place, to.bias + panel * NR, to.sums + place,
                                                to.row,       to.first,             to.last};
                        const global uint *staged = scratch + (i - row0) / MR * STAGED(words, MR);
                        tile(at, p.a_staged ? (const global ushort *)staged : rows + (i - row0) * a_layout.row_stride,
                             p.a_staged ? 0 : a_layout.row_stride, b_scratch + (panel - group) * STAGED(words, NR),
                             words, (int)min((long)MR, end_row - i), (int)min((long)NR, p.n - panel * NR), finish);
                    }
            }
        }
}

/* dim 0: units_per_item units. */
KN_KERNEL_ONCE(gemm_pairs,
               (KN_ARG(a), KN_ARG(b), KN_ARG(bias), KN_ARG(c), KN_ARG(sums), KN_ARG(scratch), p, operands, a_layout,
                b_layout, c_layout, finish),
               KN_IN(a), KN_IN(b), KN_IN(bias), KN_OUT(c), KN_OUT(sums), KN_OUT(scratch), kn_gemm_tile_plan p,
               kn_gemm_words operands, kn_gemm_layout a_layout, kn_gemm_layout b_layout, kn_gemm_layout c_layout,
               kn_gemm_finish finish)
{
    KN_BIND_IN(ushort, a);
    KN_BIND_IN(ushort, b);
    KN_BIND_IN(ushort, bias);
    KN_BIND_OUT(ushort, c);
    KN_BIND_OUT(float, sums);
    KN_BIND_OUT(uint, scratch);
    const long item = KN_ID(0), per_matrix = p.row_units * p.panel_units;
    scratch += item * p.scratch;
    for (long unit = item * p.units_per_item; unit < min(p.units, (item + 1) * p.units_per_item); unit++) {
        const long batch = unit / per_matrix, in_matrix = unit % per_matrix, place = batch * c_layout.batch_stride;
        const pair_target to = {c + place, bias, sums + place, c_layout.row_stride, true, true};
        multiply_unit(to, a + batch * a_layout.batch_stride, b + batch * b_layout.batch_stride, scratch, p, operands,
                      a_layout, b_layout, in_matrix / p.panel_units * p.rows_per_unit,
                      in_matrix % p.panel_units * p.panels_per_unit, finish);
    }
}
