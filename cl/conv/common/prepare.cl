/* conv/common/prepare.cl - prepares convolutions on CPU devices before their main launch: zero-padded image, weights
 * packed in blocks of KB output channels, table of taps.
 *
 * Compiled in: T, VW, KB. Local size 1. */
#include "common/koine.clh"
#include "conv/common/padding.clh"
#include "gemm/pack.clh"

/* weights [groups][blocks of KB outer channels][inner][rows * columns][KB], one (group, block) and one inner channel at
 * a time. */
static inline void pack_weights(global T *restrict packed, const global T *restrict w, const kn_conv_weight_layout g,
                                const kn_conv_tap_list t, long item)
{
    const long blocks = (g.outer + KB - 1) / KB, taps = t.rows * t.columns;
    const long inner = item % t.inner, block = item / t.inner % blocks, group = item / t.inner / blocks;
    const int width = (int)min((long)KB, g.outer - block * KB);
    w += group * g.group_stride + block * KB * g.outer_stride + inner * g.inner_stride;
    packed += item * taps * KB;
    /* The taps may be contiguous. */
    const bool in_one = g.row_step == 1 && g.column_step == 1 && t.columns == g.kernel_columns;
    const long rows = in_one ? 1 : t.rows, columns = in_one ? taps : t.columns;
    for (long u = 0; u < rows; u++) {
        const global T *row = w + (g.row_first + u * g.row_step) * g.kernel_columns + g.column_first;
        pack_panel(packed + u * columns * KB, row, columns, width, KB, g.column_step, g.outer_stride);
    }
}

/* dim 0: the work-items that pad, then one per (group, block, inner channel) that packs weights, then one that writes
 * the table. */
KN_KERNEL_ONCE(conv_prepare,
               (KN_ARG(x), KN_ARG(w), KN_ARG(padded), KN_ARG(packed), KN_ARG(table), given_p, given_g, given_t),
               KN_IN(x), KN_IN(w), KN_OUT(padded), KN_OUT(packed), KN_OUT(table), const kn_conv_padding given_p,
               const kn_conv_weight_layout given_g, const kn_conv_tap_list given_t)
{
    const kn_conv_padding p = given_p;
    const kn_conv_weight_layout g = given_g;
    const kn_conv_tap_list t = given_t;
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, w);
    KN_BIND_OUT(T, padded);
    KN_BIND_OUT(T, packed);
    KN_BIND_OUT(int, table);
    const long pack_items = g.groups * ((g.outer + KB - 1) / KB) * t.inner;
    const long id = KN_ID(0);
    if (id < pad_items(p))
        pad_planes(padded, x, p, id);
    else if (id < pad_items(p) + pack_items)
        pack_weights(packed, w, g, t, id - pad_items(p));
    else if (id == pad_items(p) + pack_items)
        write_tap_table(table, t);
}
