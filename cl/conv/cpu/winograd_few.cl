/* conv/cpu/winograd_few.cl - Winograd's convolution of few tiles with many channels on CPU devices, as
 * conv/cpu/winograd.cl is for many tiles.
 *
 * Compiled in: T, VW, WRI, WRJ, WMI, MT, KV. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "gemm/outer.clh"
#include "gemm/pack.clh"
#include "conv/common/winograd.clh"
#include "conv/cpu/winograd_repack.clh"
#include "conv/cpu/winograd_tiles.clh"

/* First transforms all tiles, v[group][channel block][tile][p][VW]. dim 0: channel block, dim
 * 1: group. */
KN_KERNEL_ONCE(winograd_transform,
               (KN_ARG(x), KN_ARG(v), KN_ARG(scratch), s, window_size),
               KN_IN(x), KN_OUT(v), KN_OUT(scratch), kn_winograd_shape s, long window_size)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, v);
    KN_BIND_OUT(T, scratch);
    const long c = KN_ID(0), group = KN_ID(1), tiles = s.images * s.tile_rows * s.tile_columns;
    winograd_input_block(v + (group * KN_SIZE(0) + c) * ((tiles + MT - 1) / MT * MT) * WP * VW,
                         x + (group * s.inner + c * VW) * s.height * s.width,
                         scratch + (group * KN_SIZE(0) + c) * window_size, s, s.top, s.left, 0, tiles,
                         (int)min((long)VW, s.inner - c * VW));
}

#define UP (VW * KB + VW) /* not a power of 2, so that the vectors of all p fit in the L1 cache */

/* Then a work-item processes blocks of output channels and of tiles, and transforms the weights of `chunk` channels at
 * a time, which stay in its core's cache. dim 0: runs of blocks, dim 1: group. */
KN_KERNEL_ONCE(winograd_few,
               (KN_ARG(v), KN_ARG(w), KN_ARG(bias), KN_ARG(y), KN_ARG(scratch), s, has_bias, low, high),
               KN_IN(v), KN_IN(w), KN_IN(bias), KN_OUT(y), KN_OUT(scratch), kn_winograd_shape s, int has_bias, T low,
               T high)
{
    KN_BIND_IN(T, v);
    KN_BIND_IN(T, w);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(T, scratch);
    const long group = KN_ID(1), all = s.images * s.tile_rows * s.tile_columns,
               padded = (all + MT - 1) / MT * MT;
    const long tile_blocks = (all + s.tiles - 1) / s.tiles, pairs = tile_blocks * ((s.outer + KB - 1) / KB);
    const long item = KN_ID(0), items = KN_SIZE(0), start = item * pairs / items,
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
                    for (long k = 0; k == 0 || k < channels; k += WSUMMED)
                        winograd_multiply_some(m + (t * WP + p * MT) * KB,
                                               v + (c + k) * padded * WP + ((first + t) * WP + p * MT) * VW,
                                               u + k / VW * WP * UP + p * UP, padded * WP * VW, WP * UP,
                                               min(channels - k, (long)WSUMMED), c + k > 0, tiles - t);
        }
        const int outer = (int)min((long)KB, s.outer - block * KB);
        T lanes[KB];
        winograd_bias(lanes, bias + group * s.outer + block * KB, has_bias, outer);
        winograd_output_block(y + block * KB * s.out_height * s.out_width, m, lanes, s, first, tiles, outer, low, high);
    }
}
