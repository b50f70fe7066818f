/* conv/cpu/winograd.cl - Winograd's convolution of many tiles on CPU devices, forward and backward-data
 * (conv/common/winograd.clh has the formulas, conv/cpu/winograd_tiles.clh the steps); and backward-data from tiles of
 * dy.
 *
 * Compiled in: T, VW, WRI, WRJ, WMI, MT, KV. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "gemm/outer.clh"
#include "gemm/pack.clh"
#include "conv/common/winograd.clh"
#include "conv/cpu/winograd_repack.clh"
#include "conv/cpu/winograd_tiles.clh"

/* Transforms all weights: u[group and block][p][channel][KB], with stride u_p over p. dim 0: group and block, dim 1:
 * `chunk` channels each. */
KN_KERNEL_ONCE(winograd_weights,
               (KN_ARG(w), KN_ARG(u), KN_ARG(scratch), s, u_p),
               KN_IN(w), KN_OUT(u), KN_OUT(scratch), kn_winograd_shape s, long u_p)
{
    KN_BIND_IN(T, w);
    KN_BIND_OUT(T, u);
    KN_BIND_OUT(T, scratch);
    const long blocks = (s.outer + KB - 1) / KB;
    const long block = KN_ID(0) % blocks, group = KN_ID(0) / blocks, c = KN_ID(1) * s.chunk;
    winograd_weight_block(u + KN_ID(0) * WP * u_p + c * KB, u_p, VW * KB, w + group * s.group_stride,
                          scratch + (KN_ID(1) * KN_SIZE(0) + KN_ID(0)) * VW * WTAPS * VW, s,
                          block, c, min(s.chunk, s.inner - c));
}

/* m of `some` blocks of output channels from b0 on, for a block of tiles. */
static inline void multiply_block(global T *restrict m, const global T *restrict v, const global T *restrict u,
                                  const kn_winograd_shape *s, long u_p, long b0, long some, long tiles)
{
    for (long p = 0; p < WP; p++)
        for (long b = 0; b < some; b++)
            for (long t = 0; t < tiles; t += MT)
                for (long c = 0; c == 0 || c < s->inner; c += WSUMMED)
                    winograd_multiply(m + ((b * s->tiles + t) * WP + p * MT) * KB,
                                      v + (c / VW * s->tiles * WP + t * WP + p * MT) * VW,
                                      u + ((b0 + b) * WP + p) * u_p + c * KB, s->tiles * WP * VW, VW * KB,
                                      min(s->inner - c, (long)WSUMMED), c > 0);
}

/* A work-item does all steps for blocks of tiles and parts of the output channels, in scratch memory that stays in its
 * core's cache. dim 0: runs of these, dim 1: group. */
KN_KERNEL_ONCE(winograd_many,
               (KN_ARG(x), KN_ARG(u), KN_ARG(bias), KN_ARG(y), KN_ARG(scratch), s, u_p, has_bias, low, high),
               KN_IN(x), KN_IN(u), KN_IN(bias), KN_OUT(y), KN_OUT(scratch), kn_winograd_shape s, long u_p, int has_bias,
               T low, T high)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, u);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(T, scratch);
    const long item = KN_ID(0), items = KN_SIZE(0);
    const long group = KN_ID(1), channel_blocks = (s.inner + VW - 1) / VW, blocks = (s.outer + KB - 1) / KB;
    const long all = s.images * s.tile_rows * s.tile_columns, pairs = (all + s.tiles - 1) / s.tiles * s.parts,
               start = item * pairs / items, end = (item + 1) * pairs / items;
    global T *v = scratch + (group * items + item) * s.scratch;
    global T *m = v + channel_blocks * s.tiles * WP * VW, *window = m + s.panels * s.tiles * WP * KB;
    x += group * s.inner * s.height * s.width;
    y += group * s.outer * s.out_height * s.out_width;
    u += group * blocks * WP * u_p;
    for (long pair = start; pair < end; pair++) {
        const long first = pair / s.parts * s.tiles, tiles = min(s.tiles, all - first);
        const long part = pair % s.parts, end_block = (part + 1) * blocks / s.parts;
        for (long c = 0; c < channel_blocks && (part == 0 || pair == start); c++)
            winograd_input_block(v + c * s.tiles * WP * VW, x + c * VW * s.height * s.width, window, s, s.top, s.left,
                                 first, tiles, (int)min((long)VW, s.inner - c * VW));
        for (long b0 = part * blocks / s.parts; b0 < end_block; b0 += s.panels) {
            const long some = min(s.panels, end_block - b0);
            multiply_block(m, v, u, &s, u_p, b0, some, tiles);
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

/* --- backward-data from tiles of dy ------------------------------------------------------------------------------- */

/* Without padding in the forward pass dx is larger than dy: of 13 x 13 and 9 x 9 pixels, dy has 9 tiles and dx 16. A
 * tile of dy gives a window of dx, which overlaps its neighbours', so whole images are computed at a time. */
WINOGRAD_READ_BLOCK(winograd_gradient_block, winograd_gradient, WM)

static inline void add_row(global T *restrict to, const V *line)
{
#pragma unroll
    for (int j = 0; j < WTJ; j++)
        VSTORE(VLOAD(j, to) + line[j], j, to);
}

/* An image of VW channels, of which `channels` exist: window[row][column][VW] = the sum of its tiles, from `t` on in m,
 * and the part that is not padding to dx. */
KN_ONCE void winograd_scatter_image(global T *restrict dx, const global T *restrict m, global T *restrict window,
                                    const kn_winograd_shape s, long t, int channels)
{
    const long rows = s.tile_rows * WMI + WRI - 1, columns = s.tile_columns * WMJ + WRJ - 1;
    winograd_clear(window, rows * columns);
    for (long row = 0; row < s.tile_rows; row++)
        for (long column = 0; column < s.tile_columns; column++, t++) {
            const global T *from = m + WTILE(t) * KB;
            global T *to = window + (row * WMI * columns + column * WMJ) * VW;
            WINOGRAD_TRANSFORM(winograd_image, WT, WT, VLOAD((i * WTJ + j) * MT * KV, from),
                               add_row(to + i * columns * VW, line));
        }
    for (long row = 0; row < s.out_height; row++)
        for (long column = 0; column < s.out_width; column += VW) {
            const int some = (int)min((long)VW, s.out_width - column);
            V pixels[VW];
#pragma unroll
            for (int i = 0; i < VW; i++)
                pixels[i] = i < some ? VLOAD((row - s.top) * columns + column - s.left + i, window) : (V)0;
            winograd_store_pixels(dx + row * s.out_width + column, pixels, s.out_height * s.out_width, some, channels);
        }
}

/* Like winograd_many, for blocks of s.tiles / (tiles of an image) images; top, left: of the window in dx. */
KN_KERNEL_ONCE(winograd_scattered,
               (KN_ARG(dy), KN_ARG(u), KN_ARG(dx), KN_ARG(scratch), s, u_p),
               KN_IN(dy), KN_IN(u), KN_OUT(dx), KN_OUT(scratch), kn_winograd_shape s, long u_p)
{
    KN_BIND_IN(T, dy);
    KN_BIND_IN(T, u);
    KN_BIND_OUT(T, dx);
    KN_BIND_OUT(T, scratch);
    const long item = KN_ID(0), items = KN_SIZE(0), group = KN_ID(1);
    const long blocks = (s.outer + KB - 1) / KB, channel_blocks = (s.inner + VW - 1) / VW,
               each = s.tile_rows * s.tile_columns, plane = s.out_height * s.out_width;
    const long together = s.tiles / each, image_blocks = (s.images + together - 1) / together,
               end = min(s.images, (item + 1) * image_blocks / items * together);
    global T *v = scratch + (group * items + item) * s.scratch;
    global T *m = v + channel_blocks * s.tiles * WP * VW, *window = m + s.panels * s.tiles * WP * KB;
    dy += group * s.inner * s.height * s.width;
    u += group * blocks * WP * u_p;
    for (long first = item * image_blocks / items * together; first < end; first += together) {
        const long images = min(together, end - first);
        for (long c = 0; c < channel_blocks; c++)
            winograd_gradient_block(v + c * s.tiles * WP * VW, dy + c * VW * s.height * s.width, window, s, 0, 0,
                                    first * each, images * each, (int)min((long)VW, s.inner - c * VW));
        for (long b0 = 0; b0 < blocks; b0 += s.panels) {
            const long some = min(s.panels, blocks - b0);
            multiply_block(m, v, u, &s, u_p, b0, some, images * each);
            for (long i = 0; i < images; i++)
                for (long k = 0; k < some * KB && b0 * KB + k < s.outer; k += VW)
                    winograd_scatter_image(dx + (((first + i) * s.groups + group) * s.outer + b0 * KB + k) * plane,
                                           m + k / KB * s.tiles * WP * KB + k % KB, window, s, i * each,
                                           (int)min((long)VW, s.outer - b0 * KB - k));
        }
    }
}
