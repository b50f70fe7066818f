/* conv/winograd.cl - Winograd's convolution on CPU devices, forward and backward-data (conv/winograd.clh has the formulas, conv/winograd_tiles.clh the steps).
 *
 * Compiled in: T, VW, WR, MT, KV. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "gemm/pack.clh"
#include "conv/winograd.clh"
#include "conv/winograd_tiles.clh"

/* The bias of a block of output channels, of which `outer` exist. */
static inline void winograd_bias(T *lanes, const global T *bias, int has_bias, int outer)
{
    for (int k = 0; k < KB; k++)
        lanes[k] = has_bias && k < outer ? bias[k] : (T)0;
}

/* All weights transformed: u[group and block][p][channel][KB]. dim 0: group and block, dim 1: `chunk` channels each. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void winograd_weights(KN_IN(w), KN_OUT(u), KN_OUT(scratch), winograd_shape s)
{
    KN_BIND_IN(T, w);
    KN_BIND_OUT(T, u);
    KN_BIND_OUT(T, scratch);
    const long blocks = (s.outer + KB - 1) / KB;
    const long block = get_global_id(0) % blocks, group = get_global_id(0) / blocks, c = get_global_id(1) * s.chunk;
    winograd_weight_block(u + get_global_id(0) * 36 * s.u_pitch + c * KB, w + group * s.group_stride,
                          scratch + (get_global_id(1) * get_global_size(0) + get_global_id(0)) * VW * WR * WR * VW, s, block, c, min(s.chunk, s.inner - c));
}

/* Many tiles: a work-item takes blocks of tiles through all steps, in scratch of its own that stays in its core's cache. dim 0: runs of blocks, dim 1: group. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void winograd_many(KN_IN(x), KN_IN(u), KN_IN(bias), KN_OUT(y), KN_OUT(scratch), winograd_shape s, int has_bias,
                                                                         T low, T high)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, u);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(T, scratch);
    const long group = get_global_id(1), channel_blocks = (s.inner + VW - 1) / VW, blocks = (s.outer + KB - 1) / KB;
    const long all = s.images * s.tile_rows * s.tile_columns, start = get_global_id(0) * s.blocks_per_item * s.tiles,
               end = min(all, start + s.blocks_per_item * s.tiles);
    global T *v = scratch + (group * get_global_size(0) + get_global_id(0)) * s.scratch;
    global T *m = v + 36 * s.v_pitch, *window = m + 36 * s.m_pitch;
    x += group * s.inner * s.height * s.width;
    y += group * s.outer * s.out_height * s.out_width;
    u += group * blocks * 36 * s.u_pitch;
    for (long first = start; first < end; first += s.tiles) {
        const long tiles = min(s.tiles, end - first);
        for (long c = 0; c < channel_blocks; c++)
            winograd_input_block(v + c * s.tiles * VW, x + c * VW * s.height * s.width, window, s, first, tiles, (int)min((long)VW, s.inner - c * VW));
        for (long b0 = 0; b0 < blocks; b0 += s.panels) {
            const long some = min(s.panels, blocks - b0);
            for (long p = 0; p < 36; p++)
                for (long b = 0; b < some; b++)
                    for (long t = 0; t < tiles; t += MT)
                        winograd_multiply(m + p * s.m_pitch + (b * s.tiles + t) * KB, v + p * s.v_pitch + t * VW, u + ((b0 + b) * 36 + p) * s.u_pitch,
                                          s.tiles * VW, s.inner, false);
            for (long b = 0; b < some; b++) {
                const int outer = (int)min((long)KB, s.outer - (b0 + b) * KB);
                T lanes[KB];
                winograd_bias(lanes, bias + group * s.outer + (b0 + b) * KB, has_bias, outer);
                winograd_output_block(y + (b0 + b) * KB * s.out_height * s.out_width, m + b * s.tiles * KB, lanes, s, first, tiles, outer, low, high);
            }
        }
    }
}

/* Few tiles, many channels: first all tiles transformed, v[group][p][channel block][tile][VW]. dim 0: channel block, dim 1: group. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void winograd_transform(KN_IN(x), KN_OUT(v), KN_OUT(scratch), winograd_shape s, long window_size)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, v);
    KN_BIND_OUT(T, scratch);
    const long c = get_global_id(0), group = get_global_id(1), tiles = s.images * s.tile_rows * s.tile_columns;
    winograd_input_block(v + group * 36 * s.v_pitch + c * ((tiles + MT - 1) / MT * MT) * VW, x + (group * s.inner + c * VW) * s.height * s.width,
                         scratch + (group * get_global_size(0) + c) * window_size, s, 0, tiles, (int)min((long)VW, s.inner - c * VW));
}

/* Then a work-item takes blocks of output channels and of tiles, and transforms `chunk` channels' weights at a time, which never leave its core's cache. dim 0: runs of blocks, dim 1:
 * group. */
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void winograd_few(KN_IN(v), KN_IN(w), KN_IN(bias), KN_OUT(y), KN_OUT(scratch), winograd_shape s, int has_bias,
                                                                        T low, T high)
{
    KN_BIND_IN(T, v);
    KN_BIND_IN(T, w);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(T, scratch);
    const long group = get_global_id(1), all = s.images * s.tile_rows * s.tile_columns, padded = (all + MT - 1) / MT * MT;
    const long tile_blocks = (all + s.tiles - 1) / s.tiles, pairs = tile_blocks * ((s.outer + KB - 1) / KB);
    const long start = get_global_id(0) * s.blocks_per_item;
    global T *m = scratch + (group * get_global_size(0) + get_global_id(0)) * s.scratch;
    global T *u = m + 36 * s.m_pitch, *taps = u + 36 * s.u_pitch;
    v += group * 36 * s.v_pitch;
    w += group * s.group_stride;
    y += group * s.outer * s.out_height * s.out_width;
    for (long pair = start; pair < min(pairs, start + s.blocks_per_item); pair++) {
        const long block = pair / tile_blocks, first = pair % tile_blocks * s.tiles, tiles = min(s.tiles, all - first);
        for (long c = 0; c == 0 || c < s.inner; c += s.chunk) { /* once, to write zeros, if there is nothing to sum */
            const long channels = min(s.chunk, s.inner - c);
            winograd_weight_block(u, w, taps, s, block, c, channels);
            for (long p = 0; p < 36; p++)
                for (long t = 0; t < tiles; t += MT)
                    winograd_multiply(m + p * s.m_pitch + t * KB, v + p * s.v_pitch + (c * padded) + (first + t) * VW, u + p * s.u_pitch, padded * VW, channels,
                                      c > 0);
        }
        const int outer = (int)min((long)KB, s.outer - block * KB);
        T lanes[KB];
        winograd_bias(lanes, bias + group * s.outer + block * KB, has_bias, outer);
        winograd_output_block(y + block * KB * s.out_height * s.out_width, m, lanes, s, first, tiles, outer, low, high);
    }
}
