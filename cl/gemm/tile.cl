/* gemm/tile.cl - matrix products on CPU devices: C = finish(op(A) op(B)), in tiles (gemm/tile.clh).
 *
 * The work is divided into units of some rows by some panels of NR columns. Within a unit the outermost loop is over
 * blocks of k: the unit's rows of A stay in the level-2 cache while its panels of B are used, and each panel stays in
 * cache while the rows are. Units are ordered along a group of panels, then by row block: the group stays in the
 * level-3 cache for all rows. A work-item takes several consecutive units.
 *
 * B is read as panels [k][NR], in place if its columns are contiguous, or staged block by block in this work-item's
 * part of `scratch`. A is read in place, with any strides, or as panels [k][MR].
 *
 * Compiled in: T, VW, NV, MR. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "gemm/finish.clh"
#include "gemm/pack.clh"
#include "gemm/layout.h"
#include "gemm/tile.clh"
#include "gemm/tile.h"

/* --- packing: an operand [length, width] as panels [batch][panels][length][panel_width] --------------------------- */

static inline void pack_item(global T *restrict to, const global T *restrict x, kn_gemm_pack_job job, long item)
{
    const long panel = item % job.panels, begin = item / job.panels % job.blocks * job.block,
               batch = item / job.panels / job.blocks, left = job.width - panel * job.panel_width;
    pack_panel(to + ((batch * job.panels + panel) * job.length + begin) * job.panel_width,
               x + batch * job.batch_stride + begin * job.length_stride + panel * job.panel_width * job.width_stride,
               min(job.block, job.length - begin), (int)min(job.panel_width, left), (int)job.panel_width,
               job.length_stride, job.width_stride);
}

/* dim 0: the items of A's job, then those of B's. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
gemm_pack(KN_IN(a), KN_OUT(a_panels), kn_gemm_pack_job a_job, KN_IN(b), KN_OUT(b_panels), kn_gemm_pack_job b_job)
{
    KN_BIND_IN(T, a);
    KN_BIND_IN(T, b);
    KN_BIND_OUT(T, a_panels);
    KN_BIND_OUT(T, b_panels);
    const long item = get_global_id(0);
    if (item < a_job.items)
        pack_item(a_panels, a, a_job, item);
    else if (item - a_job.items < b_job.items)
        pack_item(b_panels, b, b_job, item - a_job.items);
}

/* --- multiplying -------------------------------------------------------------------------------------------------- */

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

/* Computes the rows from first_row on of the panels from first_panel on. a, b, c: this matrix of the batch. */
static inline void multiply_unit(global T *restrict c, const global T *restrict a, const global T *restrict b,
                                 const global T *restrict bias, global T *restrict scratch, kn_gemm_tile_plan p,
                                 kn_gemm_layout a_layout, kn_gemm_layout b_layout, kn_gemm_layout c_layout,
                                 long first_row, long first_panel, kn_gemm_finish finish)
{
    const long last_row = min(p.m, first_row + p.rows_per_unit),
               last_panel = min(p.panels, first_panel + p.panels_per_unit);
    const long b_k = p.b_packed ? NR : b_layout.row_stride, b_panel = NR * (p.b_packed ? p.k : b_layout.col_stride),
               a_row = p.a_packed ? 1 : a_layout.row_stride, a_k = p.a_packed ? MR : a_layout.col_stride;
    for (long k0 = 0; k0 == 0 || k0 < p.k; k0 += p.k_block) {
        const kn_gemm_finish f = finish_of_block(finish, k0 == 0, k0 + p.k_block >= p.k);
        const long k_count = min(p.k_block, p.k - k0);
        for (long panel = first_panel; panel < last_panel; panel++) {
            const int columns = (int)min((long)NR, p.n - panel * NR);
            const bool staged = !p.b_packed && (p.b_staged || columns < NR);
            const global T *block = b + panel * b_panel + k0 * b_k;
            if (staged)
                pack_panel(scratch, block, k_count, columns, NR, b_k, b_layout.col_stride);
            for (long i = first_row; i < last_row; i += MR) {
                const tile_target to = {c + i * c_layout.row_stride + panel * NR * c_layout.col_stride,
                                        bias + i * p.bias_row + panel * NR * p.bias_column, c_layout.row_stride,
                                        c_layout.col_stride, p.bias_row, p.bias_column};
                tile(to, a + (p.a_packed ? i * p.k : i * a_row) + k0 * a_k, a_row, a_k, staged ? scratch : block,
                     staged ? NR : b_k, k_count, (int)min((long)MR, last_row - i), columns, f);
            }
        }
    }
}

/* dim 0: units_per_item units. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
gemm_tiles(KN_IN(a), KN_IN(b), KN_IN(bias), KN_OUT(c), KN_OUT(scratch), kn_gemm_tile_plan p, kn_gemm_layout a_layout,
           kn_gemm_layout b_layout, kn_gemm_layout c_layout, kn_gemm_finish finish)
{
    KN_BIND_IN(T, a);
    KN_BIND_IN(T, b);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, c);
    KN_BIND_OUT(T, scratch);
    const long item = get_global_id(0), per_matrix = p.panel_blocks * p.row_blocks,
               per_group = p.blocks_per_group * p.row_blocks;
    scratch += item * min(p.k, p.k_block) * NR;
    for (long unit = item * p.units_per_item; unit < min(p.units, (item + 1) * p.units_per_item); unit++) {
        const long batch = unit / per_matrix, in_matrix = unit % per_matrix, in_group = in_matrix % per_group,
                   first = in_matrix / per_group * p.blocks_per_group,
                   blocks = min(p.blocks_per_group, p.panel_blocks - first);
        multiply_unit(c + batch * c_layout.batch_stride, a + batch * a_layout.batch_stride,
                      b + batch * b_layout.batch_stride, bias, scratch, p, a_layout, b_layout, c_layout,
                      in_group / blocks * p.rows_per_unit, (first + in_group % blocks) * p.panels_per_unit, finish);
    }
}
