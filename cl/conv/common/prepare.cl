/* conv/common/prepare.cl - prepares convolutions on CPU devices before their main launch: zero-padded image, weights
 * packed in blocks of output channels, table of taps.
 *
 * Compiled in: T, VW. Local size 1. */
#include "common/koine.clh"
#include "conv/common/padding.clh"
#include "gemm/pack.clh"

/* weights [groups][blocks of `block` outer channels][inner][rows * columns][block], one (group, block) and one inner
 * channel at a time. */
static inline void pack_weights(global T *restrict packed, const global T *restrict w, const kn_conv_weight_layout g,
                                const kn_conv_tap_list t, const int block, long item)
{
    const long blocks = (g.outer + block - 1) / block, taps = t.rows * t.columns;
    const long inner = item % t.inner, b = item / t.inner % blocks, group = item / t.inner / blocks;
    const int width = (int)min((long)block, g.outer - b * block);
    w += group * g.group_stride + b * block * g.outer_stride + inner * g.inner_stride;
    packed += item * taps * block;
    /* The taps may be contiguous. */
    const bool in_one = g.row_step == 1 && g.column_step == 1 && t.columns == g.kernel_columns;
    const long rows = in_one ? 1 : t.rows, columns = in_one ? taps : t.columns;
    for (long u = 0; u < rows; u++) {
        const global T *row = w + (g.row_first + u * g.row_step) * g.kernel_columns + g.column_first;
        pack_panel(packed + u * columns * block, row, columns, width, block, g.column_step, g.outer_stride);
    }
}

/* dim 0: the work-items that pad, then one per (group, block, inner channel) that packs weights, then one that writes
 * the table. */
KN_KERNEL_ONCE(conv_prepare,
               (KN_ARG(x), KN_ARG(w), KN_ARG(padded), KN_ARG(packed), KN_ARG(table), given_p, given_g, given_t, block),
               KN_IN(x), KN_IN(w), KN_OUT(padded), KN_OUT(packed), KN_OUT(table), const kn_conv_padding given_p,
               const kn_conv_weight_layout given_g, const kn_conv_tap_list given_t, const int block)
{
    const kn_conv_padding p = given_p;
    const kn_conv_weight_layout g = given_g;
    const kn_conv_tap_list t = given_t;
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, w);
    KN_BIND_OUT(T, padded);
    KN_BIND_OUT(T, packed);
    KN_BIND_OUT(int, table);
    const long pack_items = g.groups * ((g.outer + block - 1) / block) * t.inner;
    const long id = KN_ID(0);
    if (id < pad_items(p))
        pad_planes(padded, x, p, id);
    else if (id < pad_items(p) + pack_items)
        pack_weights(packed, w, g, t, block, id - pad_items(p));
    else if (id == pad_items(p) + pack_items)
        write_tap_table(table, t);
}
