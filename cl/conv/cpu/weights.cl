/* conv/cpu/weights.cl - the gradient of a convolution's weights (and bias) on CPU devices.
 *
 *     dw[k, t] = sum over images and pixels of dy[n, k, pixel] * x[n, start(pixel) + tap[t]]
 *
 * with taps, starts and units as in conv/cpu/direct.cl. A unit's dy is packed pixel by pixel, KB = KV * VW channels
 * wide, so that a block of it stays in the first cache for all taps, and what it reads of x is copied with its padding.
 * The sums of TAPS taps by KB channels are kept in vector registers for all pixels of the unit: per pixel KV vector
 * loads of dy, TAPS broadcasts of x, TAPS * KV multiply-adds.
 *
 * The units are split into shares, enough of them to occupy all compute units. Each has sums of its own, which are
 * added in a fixed order.
 *
 * Compiled in: T, VW, KV, TAPS. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "conv/common/padding.clh"
#define ROWS TAPS
#include "conv/cpu/parts.clh"
#include "conv/cpu/weights.h"

/* --- sums --------------------------------------------------------------------------------------------------------- */

/* Packs a block of the unit's dy, [pixels][KB], and adds its pixels to bias[KB]. */
KN_ONCE void pack_gradient(global T *restrict packed, global T *restrict bias, const global T *restrict dy,
                           const kn_conv_parts *g, const unit *u, long channel, int channels)
{
    const bool whole_rows = u->columns.count == g->columns.out;
    const long runs = whole_rows ? 1 : u->rows.count, run = u->image_pixels / runs;
    for (long image = 0; image < u->images; image++) {
        const global T *from = dy + y_start(&g->y, u->first_image + image, channel) + u->columns.first;
        for (long i = 0; i < runs; i++)
            pack_panel(packed + (image * u->image_pixels + i * run) * KB, from + (u->rows.first + i) * g->columns.out,
                       run, channels, KB, 1, g->y.depth * g->y.plane);
    }
    V sum[KV];
#pragma unroll
    for (int v = 0; v < KV; v++)
        sum[v] = VLOAD(v, bias);
    for (long i = 0; i < u->pixels; i++)
#pragma unroll
        for (int v = 0; v < KV; v++)
            sum[v] += VLOAD(v, packed + i * KB);
#pragma unroll
    for (int v = 0; v < KV; v++)
        VSTORE(sum[v], v, bias);
}

/* Adds all pixels of a block to the sums of `count` taps, at most TAPS. */
static inline void sum_taps(global T *restrict sums, const global T *restrict x, const global int *restrict starts,
                            const global T *restrict dy, const global int *restrict table, int count, long pixels)
{
    const global T *restrict from[TAPS];
    V sum[TAPS][KV];
#pragma unroll
    for (int i = 0; i < TAPS; i++) {
        const int tap = min(i, count - 1); /* taps past the last repeat it and are not stored */
        from[i] = x + table[tap];
#pragma unroll
        for (int v = 0; v < KV; v++)
            sum[i][v] = VLOAD(v, sums + tap * KB);
    }
    add_products(sum, from, starts, dy, pixels);
#pragma unroll
    for (int i = 0; i < TAPS; i++)
        if (i < count)
#pragma unroll
            for (int v = 0; v < KV; v++)
                VSTORE(sum[i][v], v, sums + i * KB);
}

static inline void clear(global T *restrict to, long vectors)
{
    for (long i = 0; i < vectors; i++)
        VSTORE((V)(T)0, i, to);
}

/* Adds the unit's pixels to the sums of its blocks, [blocks][taps][KB]. */
KN_ONCE void sum_unit(global T *restrict sums, global T *restrict copy, const global T *restrict packed,
                      const global int *restrict starts, const global int *restrict table, const global T *restrict x,
                      const kn_conv_weights_layout *g, const unit *u)
{
    const kn_conv_parts *p = &g->parts;
    const long per_channel = g->taps.rows * g->taps.columns;
    for (long c = 0; c < p->inner; c += p->chunk) {
        const long channels = min(p->chunk, p->inner - c), taps = channels * per_channel;
        const global T *from = chunk_of(copy, x, p, u, c, channels);
        for (long block = 0; block < u->blocks; block++)
            for (long t = 0; t < taps; t += TAPS)
                sum_taps(sums + ((block * p->inner + c) * per_channel + t) * KB, from, starts,
                         packed + block * g->panel_pixels * KB, table + t, (int)min((long)TAPS, taps - t), u->pixels);
    }
}

/* dim 0: g.shares_per_item shares each, numbered sets of blocks and groups fastest. sums is [shares][blocks of all
 * groups][taps][KB], bias_part [shares][blocks of all groups][KB]. */
KN_KERNEL_ONCE(conv_weights_sums, (KN_ARG(x), KN_ARG(dy), KN_ARG(sums), KN_ARG(bias_part), KN_ARG(scratch), given),
               KN_IN(x), KN_IN(dy), KN_OUT(sums), KN_OUT(bias_part), KN_OUT(scratch),
               const kn_conv_weights_layout given)
{
    const kn_conv_weights_layout g = given;
    const kn_conv_parts *p = &g.parts;
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, dy);
    KN_BIND_OUT(T, sums);
    KN_BIND_OUT(T, bias_part);
    KN_BIND_OUT(T, scratch);
    const long sets = sets_of(p), all_sets = p->groups * sets, all_blocks = p->groups * blocks_of(p);
    const long block_sums = p->inner * g.taps.rows * g.taps.columns * KB;
    global T *copy = scratch + KN_ID(0) * g.scratch_size, *packed = copy + p->copy_size;
    global int *starts = (global int *)(packed + p->unit_blocks * g.panel_pixels * KB);
    global int *table = starts + g.panel_pixels;
    write_tap_table(table, g.taps);
    const long last = min(g.shares * all_sets, (KN_ID(0) + 1) * g.shares_per_item);
    for (long i = KN_ID(0) * g.shares_per_item; i < last; i++) {
        const long share = i / all_sets, group = i % all_sets / sets, set = i % sets;
        const long block = share * all_blocks + group * blocks_of(p) + set * p->unit_blocks;
        const long blocks = min(p->unit_blocks, blocks_of(p) - set * p->unit_blocks);
        clear(sums + block * block_sums, blocks * block_sums / VW);
        clear(bias_part + block * KB, blocks * KV);
        for (long id = share * g.set_units / g.shares; id < (share + 1) * g.set_units / g.shares; id++) {
            const unit u = unit_of(p, (group * g.set_units + id) * sets + set);
            write_starts(starts, p, &u, 0);
            for (long b = 0; b < blocks; b++)
                pack_gradient(packed + b * g.panel_pixels * KB, bias_part + (block + b) * KB, dy, p, &u,
                              group * p->outer + (u.first_block + b) * KB, channels_of_block(p, &u, b));
            sum_unit(sums + block * block_sums, copy, packed, starts, table, x, &g, &u);
        }
    }
}

/* --- total -------------------------------------------------------------------------------------------------------- */

#define STRIP 8

/* Adds STRIP taps, or `count`, of a block over all shares, and stores them with the channels outermost. */
static inline void total_strip(global T *restrict dw, const global T *restrict sums, long share_size, long shares,
                               int count, int channels, long taps)
{
    T total[STRIP * KB] __attribute__((aligned(64)));
    for (int i = 0; i < count * KB; i += VW)
        VSTORE(shares > 0 ? VLOAD(0, sums + i) : (V)(T)0, 0, total + i);
    for (long share = 1; share < shares; share++)
        for (int i = 0; i < count * KB; i += VW)
            VSTORE(VLOAD(0, total + i) + VLOAD(0, sums + share * share_size + i), 0, total + i);
    int k = 0;
    if (count == STRIP)
        for (; k + 8 <= channels; k += 8) {
            V8 a[8];
#pragma unroll
            for (int i = 0; i < 8; i++)
                a[i] = vload8(0, total + i * KB + k);
            zip_transpose_8(a);
#pragma unroll
            for (int i = 0; i < 8; i++)
                vstore8(a[i], 0, dw + (k + i) * taps);
        }
    for (; k < channels; k++)
        for (int i = 0; i < count; i++)
            dw[k * taps + i] = total[i * KB + k];
}

/* dim 0: a strip of taps; dim 1: a block, of all groups. The first strips add the bias. */
KN_KERNEL_ONCE(conv_weights_total, (KN_ARG(sums), KN_ARG(bias_part), KN_ARG(dw), KN_ARG(db), given), KN_IN(sums),
               KN_IN(bias_part), KN_OUT(dw), KN_OUT(db), const kn_conv_weights_layout given)
{
    const kn_conv_weights_layout g = given;
    const kn_conv_parts *p = &g.parts;
    KN_BIND_IN(T, sums);
    KN_BIND_IN(T, bias_part);
    KN_BIND_OUT(T, dw);
    KN_BIND_OUT(T, db);
    const long blocks = blocks_of(p), all_blocks = p->groups * blocks, block = KN_ID(1);
    const long channel = block / blocks * p->outer + block % blocks * KB,
               taps = p->inner * g.taps.rows * g.taps.columns;
    const int channels = (int)min((long)KB, p->outer - block % blocks * KB);
    const long t = KN_ID(0) * STRIP;
    if (t < taps)
        total_strip(dw + channel * taps + t, sums + (block * taps + t) * KB, all_blocks * taps * KB, g.shares,
                    (int)min((long)STRIP, taps - t), channels, taps);
    if (t == 0 && g.has_bias)
        for (int k = 0; k < channels; k++) {
            T total = 0;
            for (long share = 0; share < g.shares; share++)
                total += bias_part[(share * all_blocks + block) * KB + k];
            db[channel + k] = total;
        }
}
