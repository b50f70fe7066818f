/* gemm/pairs.cl - products of bf16 matrices on CPU devices: C = finish(A B), where two products at a time are added to
 * a sum in f32 (gemm/pair_dots.clh). C and the bias are of bf16 or f32. For convolutions sums may be of several
 * products, and columns in segments, which are images (gemm/pairs.h).
 *
 * Operands are read as words of two elements that follow each other along k; a last one of its own is with a zero. The
 * work is divided as in gemm/tile.cl. B is staged block by block in this work-item's part of `scratch`, as panels of
 * words [k][NR], and so is A as panels [k][MR], unless its rows are such words already.
 *
 * Compiled in: T = float, VW, NV, MR; DOTS; BFLOAT, of C and the bias (gemm/element.clh). Local size 1, no local
 * memory, no barrier. */
#include "common/koine.clh"
#include "common/bfloat.clh"
#include "common/prefetch.clh"
#include "gemm/finish.clh"
#include "gemm/pack.clh"
#include "gemm/finish_vector.clh"
#include "gemm/element.clh"
#include "gemm/pair_dots.clh"
#include "gemm/pairs.h"
#include "gemm/tile.h"

#define NR (NV * VW)
#define STAGED(words, width) ((words) * (width) + STAGED_GAP)

/* Where a tile is stored: in C, or, if more blocks of k follow, in `sums`, f32 in the same order, to which the next
 * block adds. A bias of the rows is added here, if alpha is 1, one of the columns by the epilogue. */
typedef struct pair_target {
    global element *c;
    const global element *bias;
    global float *sums;
    long row;
    long place, at; /* of the tile's first column: in C's first row, and in its segment */
    long bias_row, bias_column;
    bool first, last; /* block of k */
} pair_target;

/* Stores some columns of a tile's row, which follow each other in C, too. */
static inline void store_row(pair_target to, const float *restrict part, int columns, float row_bias, kn_gemm_finish f)
{
    global float *sums = to.sums + to.place;
    global element *c = to.c + to.place;
    int j = 0;
    for (; j + VW <= columns; j += VW) {
        const V sum = VLOAD(0, part + j) + (to.first ? (V)0 : VLOAD(0, sums + j));
        if (to.last)
            FINISH_LANES(f, sum + row_bias, c + j, to.bias + j);
        else
            VSTORE(sum, 0, sums + j);
    }
    KN_NOT_UNROLLED
    for (; j < columns; j++) {
        const float sum = part[j] + (to.first ? 0 : sums[j]);
        if (to.last)
            FINISH(f, sum + row_bias, c + j, to.bias + j);
        else
            sums[j] = sum;
    }
}

/* Stores the first rows by columns of a tile, whose sums [MR][NR] are in memory, so that the code is shared. */
static inline void store_tile(pair_target to, const float *part, int rows, int columns, kn_gemm_words operands,
                              kn_gemm_finish f)
{
    const bool adds = to.bias_row != 0 && f.has_bias;
    f.has_bias &= to.bias_column != 0;
    while (columns > 0) {
        const int count = (int)min((long)columns, operands.segment - to.at);
        pair_target row = to;
        for (int i = 0; i < rows; i++, row.place += to.row)
            store_row(row, part + i * NR, count, adds ? VALUE(to.bias[i]) : 0, f);
        part += count;
        columns -= count;
        to.bias += count * to.bias_column;
        to.place += operands.c_segment - to.at; /* the next segment's start, if there is one */
        to.at = 0;
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

/* Columns of an operand, which are contiguous in segments of `length`: the first is `at` in its segment. */
typedef struct columns_in {
    long count, at, length, step; /* elements from one segment to the next */
} columns_in;

/* Of an operand whose elements are contiguous across k. */
enum { ROWS_AHEAD = 16 };
KN_INLINE void stage_rows(global uint *restrict to, const global ushort *restrict x, const columns_in columns,
                          long k_count, long k_stride, const int panel_width)
{
    const long words = (k_count + 1) / 2;
    for (long p = 0; p < words; p++) {
        const bool pair = 2 * p + 1 < k_count;
        const uint upper = pair ? 0xffff0000u : 0;
        const long second = pair ? k_stride : 0;
        const global ushort *row = x + 2 * p * k_stride;
        long at = columns.at;
        for (long j = 0; j < columns.count; j += panel_width) {
            global uint *panel = to + j / panel_width * STAGED(words, panel_width) + p * panel_width;
            PREFETCH(row + ROWS_AHEAD * k_stride + at);
            PREFETCH(row + (ROWS_AHEAD + 1) * k_stride + at);
            if (j + panel_width <= columns.count && at + panel_width <= columns.length) {
                join_rows(panel, row + at, row + second + at, upper, panel_width, panel_width);
                at += panel_width;
                continue;
            }
            const int width = (int)min((long)panel_width, columns.count - j);
            KN_NOT_UNROLLED
            for (int done = 0; done < width;) {
                if (at == columns.length) {
                    at = 0;
                    row += columns.step;
                }
                const int part = (int)min((long)(width - done), columns.length - at);
                const int filled = done + part < width ? part : panel_width - done;
                join_rows(panel + done, row + at, row + second + at, upper, part, filled);
                at += part;
                done += part;
            }
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

/* Stages columns of B, or rows of A, as panels of words [k][panel_width]. */
KN_INLINE void stage(global uint *restrict to, const global ushort *restrict x, const columns_in columns, long k_count,
                     long k_stride, long stride, bool in_words, const int panel_width)
{
    if (stride == 1) {
        stage_rows(to, x, columns, k_count, k_stride, panel_width);
        return;
    }
    const long whole = in_words ? k_count / 2 : 0;
    for (long j = 0; j < columns.count; j += panel_width, to += STAGED((k_count + 1) / 2, panel_width)) {
        const int width = (int)min((long)panel_width, columns.count - j);
        const global ushort *from = x + j * stride;
        if (whole > 0)
            pack_panel((global float *)to, (const global float *)from, whole, width, panel_width, 1, stride / 2);
        gather_words(to, from, 2 * whole, k_count, k_stride, stride, width, panel_width);
    }
}

KN_ONCE void stage_a(global uint *restrict to, const global ushort *restrict x, long rows, long k_count,
                     kn_gemm_layout layout, bool in_words)
{
    stage(to, x, (columns_in){rows, 0, rows, 0}, k_count, layout.col_stride, layout.row_stride, in_words, MR);
}
KN_ONCE void stage_b(global uint *restrict to, const global ushort *restrict x, long first, long last, long k_count,
                     kn_gemm_layout layout, kn_gemm_words operands)
{
    const long segment = first / operands.segment, at = first % operands.segment;
    const columns_in columns = {last - first, at, operands.segment, operands.b_segment};
    x += segment * operands.b_segment + (layout.col_stride == 1 ? 0 : at * layout.col_stride);
    stage(to, x, columns, k_count, layout.row_stride, layout.col_stride, operands.b_words, NR);
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
                        long words, int rows, int columns, kn_gemm_words operands, kn_gemm_finish f)
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
    store_tile(to, part, rows, columns, operands, f);
}

/* A staged block of B, panels of `words` steps of k, and the rows of A that it is multiplied by. */
typedef struct pair_block {
    const global ushort *rows; /* in place */
    global uint *a, *b;        /* staged: the same, or unused; the panels */
    long words, row0, end_row, first_panel, end_panel;
} pair_block;

static inline void multiply_block(pair_target to, pair_block block, kn_gemm_tile_plan p, kn_gemm_words operands,
                                  long a_row, kn_gemm_finish finish)
{
    const global element *bias = to.bias;
    for (long panel = block.first_panel; panel < block.end_panel; panel++) {
        const long column = panel * NR, segment = column / operands.segment;
        const global uint *b = block.b + (panel - block.first_panel) * STAGED(block.words, NR);
        to.at = column % operands.segment;
        for (long i = block.row0; i < block.end_row; i += MR) {
            const long above = i - block.row0;
            to.place = i * to.row + segment * operands.c_segment + to.at;
            to.bias = bias + i * to.bias_row + column * to.bias_column;
            tile(to,
                 p.a_staged ? (const global ushort *)(block.a + above / MR * STAGED(block.words, MR))
                            : block.rows + above * a_row,
                 p.a_staged ? 0 : a_row, b, block.words, (int)min((long)MR, block.end_row - i),
                 (int)min((long)NR, p.n - column), operands, finish);
        }
    }
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
    const long blocks = p.k > p.k_block ? (p.k + p.k_block - 1) / p.k_block : 1, all = blocks * operands.parts;
    const bool a_stays = all == 1 && p.rows_per_unit <= p.row_block;
    pair_block x = {a, scratch, scratch, 0, 0, 0, 0, 0};
    x.b += p.a_staged ? p.row_block / MR * STAGED(min(p.k, p.k_block), MR) : 0;
    for (x.first_panel = first_panel; x.first_panel < last_panel; x.first_panel += p.panel_block)
        for (long i = 0; i < all; i++) {
            const long part = i / blocks, k0 = i % blocks * 2 * p.k_block;
            const long k_count = min(2 * p.k_block, operands.k - k0);
            const global ushort *const a_block = a + part * operands.a_part + k0 * a_layout.col_stride;
            x.words = (k_count + 1) / 2;
            x.end_panel = min(last_panel, x.first_panel + p.panel_block);
            to.first = i == 0;
            to.last = i == all - 1;
            stage_b(x.b, b + part * operands.b_part + k0 * b_layout.row_stride, x.first_panel * NR,
                    min(p.n, x.end_panel * NR), k_count, b_layout, operands);
            for (x.row0 = first_row; x.row0 < last_row; x.row0 = x.end_row) {
                x.end_row = min(last_row, x.row0 + p.row_block);
                x.rows = a_block + x.row0 * a_layout.row_stride;
                if (p.a_staged && !(a_stays && x.first_panel > first_panel))
                    stage_a(x.a, x.rows, x.end_row - x.row0, k_count, a_layout, operands.a_words);
                multiply_block(to, x, p, operands, a_layout.row_stride, finish);
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
    KN_BIND_IN(element, bias);
    KN_BIND_OUT(element, c);
    KN_BIND_OUT(float, sums);
    KN_BIND_OUT(uint, scratch);
    const long item = KN_ID(0), per_matrix = p.row_units * p.panel_units;
    scratch += item * p.scratch;
    for (long unit = item * p.units_per_item; unit < min(p.units, (item + 1) * p.units_per_item); unit++) {
        const long batch = unit / per_matrix, in_matrix = unit % per_matrix, place = batch * c_layout.batch_stride;
        const pair_target to = {c + place,  bias,         sums + place, c_layout.row_stride, 0, 0,
                                p.bias_row, p.bias_column, true,        true};
        multiply_unit(to, a + batch * a_layout.batch_stride, b + batch * b_layout.batch_stride, scratch, p, operands,
                      a_layout, b_layout, in_matrix / p.panel_units * p.rows_per_unit,
                      in_matrix % p.panel_units * p.panels_per_unit, finish);
    }
}
