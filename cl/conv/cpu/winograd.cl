/* conv/cpu/winograd.cl - Winograd's convolution on CPU devices, forward and backward-data (conv/common/winograd.clh has
 * the formulas, conv/cpu/winograd_tiles.clh the steps).
 *
 * Compiled in: T, VW, WR, MT, KV. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "gemm/pack.clh"
#include "conv/common/winograd.clh"
#include "conv/cpu/winograd_repack.clh"
#include "conv/cpu/winograd_tiles.clh"

/* The bias of a block of output channels, of which `outer` exist. */
static inline void winograd_bias(T *lanes, const global T *bias, int has_bias, int outer)
{
    for (int k = 0; k < KB; k++)
        lanes[k] = has_bias && k < outer ? bias[k] : (T)0;
}

/* Transforms all weights: u[group and block][p][channel][KB], with stride u_p over p. dim 0: group and block, dim 1:
 * `chunk` channels each. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
winograd_weights(KN_IN(w), KN_OUT(u), KN_OUT(scratch), kn_winograd_shape s, long u_p)
{
    KN_BIND_IN(T, w);
    KN_BIND_OUT(T, u);
    KN_BIND_OUT(T, scratch);
    const long blocks = (s.outer + KB - 1) / KB;
    const long block = get_global_id(0) % blocks, group = get_global_id(0) / blocks, c = get_global_id(1) * s.chunk;
    winograd_weight_block(u + get_global_id(0) * WP * u_p + c * KB, u_p, VW * KB, w + group * s.group_stride,
                          scratch + (get_global_id(1) * get_global_size(0) + get_global_id(0)) * VW * WR * WR * VW, s,
                          block, c, min(s.chunk, s.inner - c));
}

/* Many tiles: a work-item does all steps for blocks of tiles, in scratch memory that stays in its core's cache. dim 0:
 * runs of blocks, dim 1: group. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
winograd_many(KN_IN(x), KN_IN(u), KN_IN(bias), KN_OUT(y), KN_OUT(scratch), kn_winograd_shape s, long u_p, int has_bias,
              T low, T high)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, u);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(T, scratch);
    const long item = get_global_id(0), items = get_global_size(0);
    const long group = get_global_id(1), channel_blocks = (s.inner + VW - 1) / VW, blocks = (s.outer + KB - 1) / KB;
    const long all = s.images * s.tile_rows * s.tile_columns, tile_blocks = (all + s.tiles - 1) / s.tiles,
               start = item * tile_blocks / items * s.tiles, end = min(all, (item + 1) * tile_blocks / items * s.tiles);
    global T *v = scratch + (group * items + item) * s.scratch;
    global T *m = v + channel_blocks * s.tiles * WP * VW, *window = m + s.panels * s.tiles * WP * KB;
    x += group * s.inner * s.height * s.width;
    y += group * s.outer * s.out_height * s.out_width;
    u += group * blocks * WP * u_p;
    for (long first = start; first < end; first += s.tiles) {
        const long tiles = min(s.tiles, end - first);
        for (long c = 0; c < channel_blocks; c++)
            winograd_input_block(v + c * s.tiles * WP * VW, x + c * VW * s.height * s.width, window, s, first, tiles,
                                 (int)min((long)VW, s.inner - c * VW));
        for (long b0 = 0; b0 < blocks; b0 += s.panels) {
            const long some = min(s.panels, blocks - b0);
            for (long p = 0; p < WP; p++)
                for (long b = 0; b < some; b++)
                    for (long t = 0; t < tiles; t += MT)
                        winograd_multiply(m + ((b * s.tiles + t) * WP + p * MT) * KB, v + (t * WP + p * MT) * VW,
                                          u + ((b0 + b) * WP + p) * u_p, s.tiles * WP * VW, VW * KB, s.inner, false);
            for (long b = 0; b < some; b++) {
                const int outer = (int)min((long)KB, s.outer - (b0 + b) * KB);
                T lanes[KB];
                winograd_bias(lanes, bias + group * s.outer + (b0 + b) * KB, has_bias, outer);
                winograd_output_block(y + (b0 + b) * KB * s.out_height * s.out_width, m + b * s.tiles * WP * KB, lanes,
                                      s, first, tiles, outer, low, high);
            }
        }
    }
}

/* Few tiles, many channels: first transforms all tiles, v[group][channel block][tile][p][VW]. dim 0: channel block, dim
 * 1: group. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
winograd_transform(KN_IN(x), KN_OUT(v), KN_OUT(scratch), kn_winograd_shape s, long window_size)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, v);
    KN_BIND_OUT(T, scratch);
    const long c = get_global_id(0), group = get_global_id(1), tiles = s.images * s.tile_rows * s.tile_columns;
    winograd_input_block(v + (group * get_global_size(0) + c) * ((tiles + MT - 1) / MT * MT) * WP * VW,
                         x + (group * s.inner + c * VW) * s.height * s.width,
                         scratch + (group * get_global_size(0) + c) * window_size, s, 0, tiles,
                         (int)min((long)VW, s.inner - c * VW));
}

#define UP (VW * KB + VW) /* not a power of 2, so that the vectors of all p fit in the L1 cache */

/* Then a work-item processes blocks of output channels and of tiles, and transforms the weights of `chunk` channels at
 * a time, which stay in its core's cache. dim 0: runs of blocks, dim 1: group. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
winograd_few(KN_IN(v), KN_IN(w), KN_IN(bias), KN_OUT(y), KN_OUT(scratch), kn_winograd_shape s, int has_bias, T low,
             T high)
{
    KN_BIND_IN(T, v);
    KN_BIND_IN(T, w);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(T, scratch);
    const long group = get_global_id(1), all = s.images * s.tile_rows * s.tile_columns,
               padded = (all + MT - 1) / MT * MT;
    const long tile_blocks = (all + s.tiles - 1) / s.tiles, pairs = tile_blocks * ((s.outer + KB - 1) / KB);
    const long item = get_global_id(0), items = get_global_size(0), start = item * pairs / items,
               end = (item + 1) * pairs / items;
    global T *m = scratch + (group * items + item) * s.scratch;
    global T *u = m + s.tiles * WP * KB, *taps = u + s.chunk / VW * WP * UP;
    v += group * ((s.inner + VW - 1) / VW) * padded * WP * VW;
    w += group * s.group_stride;
    y += group * s.outer * s.out_height * s.out_width;
    for (long pair = start; pair < end; pair++) {
        const long block = pair / tile_blocks, first = pair % tile_blocks * s.tiles, tiles = min(s.tiles, all - first);
        /* at least once, to write zeros if there is nothing to sum */
        for (long c = 0; c == 0 || c < s.inner; c += s.chunk) {
            const long channels = min(s.chunk, s.inner - c);
            winograd_weight_block(u, UP, WP * UP, w, taps, s, block, c, channels);
            for (long t = 0; t < tiles; t += MT)
                for (long p = 0; p < WP; p++)
                    winograd_multiply(m + (t * WP + p * MT) * KB,
                                      v + c * padded * WP + ((first + t) * WP + p * MT) * VW, u + p * UP,
                                      padded * WP * VW, WP * UP, channels, c > 0);
        }
        const int outer = (int)min((long)KB, s.outer - block * KB);
        T lanes[KB];
        winograd_bias(lanes, bias + group * s.outer + block * KB, has_bias, outer);
        winograd_output_block(y + block * KB * s.out_height * s.out_width, m, lanes, s, first, tiles, outer, low, high);
    }
}
