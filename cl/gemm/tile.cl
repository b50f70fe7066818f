/* gemm/tile.cl - matrix products on CPU devices: C = finish(op(A) op(B)), in tiles (gemm/tile.clh).
 *
 * The work is divided into units, rectangles of C: some rows by some panels of NR columns. Within a unit the outer
 * loops are over blocks of panels and of k: such a block of B stays in the level-2 cache while all rows of the unit are
 * multiplied by it, block by block. A work-item takes several consecutive units.
 *
 * Operands are read in place, or staged block by block in this work-item's part of `scratch`: B as panels [k][NR] if
 * its columns are not contiguous, or its rows are far apart and used often; A, which may have any strides, as panels
 * [k][MR] if its rows are contiguous, so that the elements of a column are far apart.
 *
 * Compiled in: T, VW, NV, MR; FETCH_AHEAD; SUMS_OF_A or SUMS_OF_B: the sums of A's rows or of B's columns are wanted,
 * too, and it is staged. Options, because with code for them in it the kernel is up to 2 % slower. Local size 1, no
 * local memory, no barrier. */
#include "common/koine.clh"
#include "common/prefetch.clh"
#include "gemm/finish.clh"
#include "gemm/layout.h"
#include "gemm/outer.clh"
#include "gemm/pack.clh"
#include "gemm/row_sums.clh"
#include "gemm/tile.clh"
#include "gemm/tile.h"

/* k is summed block by block in C: the first block applies beta, the last one the bias and the activation. */
static inline kn_gemm_finish finish_of_block(kn_gemm_finish f, bool first, bool last)
{
    if (!first)
        f.beta = (T)1;
    if (!last) {
        f.has_bias = 0;
        f.low = f.high = (T)NAN;
    }
    return f;
}

/* Staged panels are some elements apart: at distances of a power of two they would share a few sets of the level-1
 * cache while several are written in turn. */
#define STAGED(k_count, width) ((k_count) * (width) + STAGED_GAP)

/* One step of a panel of A, in vectors of 8: what is written after MR elements is overwritten, or in the gap. */
enum { STEPS_AT_ONCE = 8, VECTORS_OF_A = (MR + 7) / 8 * 8 };
static inline void stage_step(global T *restrict to, const global T *restrict x)
{
#pragma unroll
    for (int j = 0; j < VECTORS_OF_A; j += 8)
        vstore8(vload8(0, x + j), 0, to + j);
}

/* Stages rows of A, which are contiguous across the columns, as panels [k_count][MR]: for a few k all panels, so that
 * whole rows are read, and what a panel gets is written in one go. The vectors of the last panel end in the next step's
 * row, of which there is none after the last. In place of the rows that a panel has fewer than MR it gets elements
 * whose products nobody stores. */
static inline void stage_a(global T *restrict to, const global T *restrict x, long rows, long k_count, long k_stride)
{
    const long panels = rows >= VECTORS_OF_A ? (rows - VECTORS_OF_A) / MR + 1 : 0;
    long i = panels * MR;
    for (long first = 0; first < k_count; first += STEPS_AT_ONCE)
        for (long panel = 0; panel < panels; panel++)
            for (long k = first; k < min(k_count, first + STEPS_AT_ONCE); k++)
                stage_step(to + panel * STAGED(k_count, MR) + k * MR, x + k * k_stride + panel * MR);
    for (; i < rows; i += MR) {
        global T *panel = to + i / MR * STAGED(k_count, MR);
        const long in_vectors = i + VECTORS_OF_A <= k_stride + rows ? k_count - 1 : 0;
        for (long k = 0; k < in_vectors; k++)
            stage_step(panel + k * MR, x + i + k * k_stride);
        pack_panel(panel + in_vectors * MR, x + i + in_vectors * k_stride, k_count - in_vectors,
                   (int)min((long)MR, rows - i), MR, k_stride, 1);
    }
}

/* Stages columns of B as panels [k_count][NR]. Rows that are a page or more apart the hardware does not prefetch. */
enum { ROWS_AHEAD = 16 };
static inline void stage_b(global T *restrict to, const global T *restrict x, long columns, long k_count,
                           kn_gemm_layout layout)
{
    const long panels = layout.col_stride == 1 ? columns / NR : 0;
    for (long k = 0; k < k_count; k++)
        for (long panel = 0; panel < panels; panel++) {
#pragma unroll
            for (int j = 0; j < NR; j += LINE)
                PREFETCH(x + (k + ROWS_AHEAD) * layout.row_stride + panel * NR + j);
#pragma unroll
            for (int v = 0; v < NV; v++)
                VSTORE(VLOAD(v, x + k * layout.row_stride + panel * NR), v, to + panel * STAGED(k_count, NR) + k * NR);
        }
    for (long j = panels * NR; j < columns; j += NR)
        pack_panel(to + j / NR * STAGED(k_count, NR), x + j * layout.col_stride, k_count,
                   (int)min((long)NR, columns - j), NR, layout.row_stride, layout.col_stride);
}

#ifdef SUMS_OF_A
/* sums = the sums over k of staged rows of A, added to those of earlier blocks of k. */
static inline void sum_staged_rows(global T *restrict sums, const global T *restrict staged, long rows, long k_count,
                                   bool first)
{
    for (long i = 0; i < rows; i += MR, staged += STAGED(k_count, MR)) {
        T total[(MR + 7) / 8 * 8];
#pragma unroll
        for (int j = 0; j < MR; j += 8)
            vstore8(sum_8_rows(staged + j, k_count, MR), 0, total + j);
        for (int j = 0; j < min((long)MR, rows - i); j++)
            sums[i + j] = first ? total[j] : sums[i + j] + total[j];
    }
}
#endif

#ifdef SUMS_OF_B
/* The same of the columns of a staged panel of B: sums of a few rows are added, which loses less than one long sum. */
enum { ROWS_AT_ONCE = 16 };
static inline void sum_staged_columns(global T *restrict sums, const global T *restrict staged, int columns,
                                      long k_count, bool first)
{
    V sum[NV];
    T total[NR];
#pragma unroll
    for (int v = 0; v < NV; v++)
        sum[v] = (V)0;
    for (long k = 0; k < k_count; k += ROWS_AT_ONCE) {
        V part[2][NV]; /* to hide the latency of an addition */
#pragma unroll
        for (int v = 0; v < NV; v++)
            part[0][v] = part[1][v] = (V)0;
        const long end = min(k + ROWS_AT_ONCE, k_count);
        long row = k;
        for (; row + 2 <= end; row += 2)
#pragma unroll
            for (int v = 0; v < NV; v++) {
                part[0][v] += VLOAD(v, staged + row * NR);
                part[1][v] += VLOAD(v, staged + (row + 1) * NR);
            }
#pragma unroll
        for (int v = 0; v < NV; v++)
            sum[v] += part[0][v] + part[1][v] + (row < end ? VLOAD(v, staged + row * NR) : (V)0);
    }
#pragma unroll
    for (int v = 0; v < NV; v++)
        VSTORE(sum[v], v, total);
    for (int j = 0; j < columns; j++)
        sums[j] = first ? total[j] : sums[j] + total[j];
}
#endif

/* Computes the rows from first_row on of the panels from first_panel on. a, b, c: this matrix of the batch. */
KN_ONCE void multiply_unit(global T *restrict c, const global T *restrict a, const global T *restrict b,
                                 const global T *restrict bias, global T *restrict scratch, global T *restrict sums,
                                 kn_gemm_tile_plan p, kn_gemm_layout a_layout, kn_gemm_layout b_layout,
                                 kn_gemm_layout c_layout, long first_row, long first_panel, kn_gemm_finish finish)
{
    const long last_row = min(p.m, first_row + p.rows_per_unit),
               last_panel = min(p.panels, first_panel + p.panels_per_unit);
    const long a_row = a_layout.row_stride, a_k = a_layout.col_stride;
    const bool a_stays = p.k <= p.k_block && p.rows_per_unit <= p.row_block;
    for (long group = first_panel; group < last_panel; group += p.panel_block)
        for (long k0 = 0; k0 == 0 || k0 < p.k; k0 += p.k_block) {
            const kn_gemm_finish f = finish_of_block(finish, k0 == 0, k0 + p.k_block >= p.k);
            const bool plain = is_plain(f, c_layout.col_stride, p.bias_column);
            const long k_count = min(p.k_block, p.k - k0), end_panel = min(last_panel, group + p.panel_block);
            global T *b_scratch = scratch + (p.a_staged ? p.row_block / MR * STAGED(min(p.k, p.k_block), MR) : 0);
            /* Panels from first_staged on are staged: all, or one at the edge of an operand that is read in place. */
            const long first_staged = p.b_staged ? group : p.n / NR;
            if (first_staged < end_panel)
                stage_b(b_scratch, b + first_staged * NR * b_layout.col_stride + k0 * b_layout.row_stride,
                        min(p.n, end_panel * NR) - first_staged * NR, k_count, b_layout);
#ifdef SUMS_OF_B
            /* Units that stage the same panels share them. */
            for (long panel = group + first_row / p.rows_per_unit; panel < end_panel; panel += p.row_units)
                sum_staged_columns(sums + panel * NR, b_scratch + (panel - group) * STAGED(k_count, NR),
                                   (int)min((long)NR, p.n - panel * NR), k_count, k0 == 0);
#endif
            for (long row0 = first_row; row0 < last_row; row0 += p.row_block) {
                const long end_row = min(last_row, row0 + p.row_block);
                if (p.a_staged && !(a_stays && group > first_panel))
                    stage_a(scratch, a + row0 + k0 * a_layout.col_stride, end_row - row0, k_count, a_layout.col_stride);
#ifdef SUMS_OF_A
                if (group == 0)
                    sum_staged_rows(sums + row0, scratch, end_row - row0, k_count, k0 == 0);
#endif
                for (long panel = group; panel < end_panel; panel++) {
                    const int columns = (int)min((long)NR, p.n - panel * NR);
                    const bool staged = panel >= first_staged;
                    const global T *block = staged ? b_scratch + (panel - first_staged) * STAGED(k_count, NR)
                                                   : b + panel * NR * b_layout.col_stride + k0 * b_layout.row_stride;
                    for (long i = row0; i < end_row; i += MR) {
                        const tile_target to = {c + i * c_layout.row_stride + panel * NR * c_layout.col_stride,
                                                bias + i * p.bias_row + panel * NR * p.bias_column,
                                                c_layout.row_stride,
                                                c_layout.col_stride,
                                                p.bias_row,
                                                p.bias_column};
                        const global T *row =
                            p.a_staged ? scratch + (i - row0) / MR * STAGED(k_count, MR) : a + i * a_row + k0 * a_k;
                        tile(to, row, p.a_staged, a_row, a_k, block, staged ? NR : b_layout.row_stride, k_count,
                             (int)min((long)MR, end_row - i), columns, f, plain);
                    }
                }
            }
        }
}

/* dim 0: units_per_item units. */
KN_KERNEL_ONCE(gemm_tiles,
               (KN_ARG(a), KN_ARG(b), KN_ARG(bias), KN_ARG(c), KN_ARG(scratch), KN_ARG(sums), p, a_layout, b_layout,
                c_layout, finish),
               KN_IN(a), KN_IN(b), KN_IN(bias), KN_OUT(c), KN_OUT(scratch), KN_OUT(sums), kn_gemm_tile_plan p,
               kn_gemm_layout a_layout, kn_gemm_layout b_layout, kn_gemm_layout c_layout, kn_gemm_finish finish)
{
    KN_BIND_IN(T, a);
    KN_BIND_IN(T, b);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, c);
    KN_BIND_OUT(T, scratch);
    KN_BIND_OUT(T, sums);
    const long item = KN_ID(0), per_matrix = p.row_units * p.panel_units;
    scratch += item * p.scratch;
    for (long unit = item * p.units_per_item; unit < min(p.units, (item + 1) * p.units_per_item); unit++) {
        const long batch = unit / per_matrix, in_matrix = unit % per_matrix;
        multiply_unit(c + batch * c_layout.batch_stride, a + batch * a_layout.batch_stride,
                      b + batch * b_layout.batch_stride, bias, scratch, sums, p, a_layout, b_layout, c_layout,
                      in_matrix / p.panel_units * p.rows_per_unit, in_matrix % p.panel_units * p.panels_per_unit,
                      finish);
    }
}
