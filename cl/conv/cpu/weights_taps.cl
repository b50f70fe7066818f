/* conv/cpu/weights_taps.cl - the gradient of a convolution's weights on CPU devices, one tap at a time.
 *
 * For images with relatively much padding, as the forward pass of conv/cpu/images.cl: a tap's sums run over the pixels
 * that it reads inside the image, instead of multiplying zeros. (A 3 x 3 kernel with dilation 12 on 33 x 33 pixels:
 * 0.57 of the multiplications.) Both operands are packed pixel by pixel, x in blocks of KB = KV * VW channels and dy in
 * tiles of ROWS. A tile by a block of sums is kept in vector registers for all pixels of an image, a block of an image
 * in its core's cache for all taps of several tiles.
 *
 * Compiled in: T, VW, KV, ROWS. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "gemm/outer.clh"
#include "gemm/pack.clh"

#include "conv/cpu/weights_taps.h"

#define KB (KV * VW)

/* dim 0: images by groups by panels of `width` channels. packed is [images][groups][panels][pixels][width]. */
KN_KERNEL_ONCE(conv_taps_pack,
               (KN_ARG(images), KN_ARG(packed), channels, pixels, width),
               KN_IN(images), KN_OUT(packed), long channels, long pixels, int width)
{
    KN_BIND_IN(T, images);
    KN_BIND_OUT(T, packed);
    const long panels = (channels + width - 1) / width, first = KN_ID(0) % panels * width;
    pack_panel(packed + KN_ID(0) * pixels * width, images + (KN_ID(0) / panels * channels + first) * pixels, pixels,
               (int)min((long)width, channels - first), width, 1, pixels);
}

/* The pixels that tap u reads inside the image: first .. last - 1, the first one at `from`. */
typedef struct span {
    long first, last, from;
} span;

static inline span span_of(const kn_conv_line l, long u)
{
    const long shift = l.origin + u * l.distance;
    const long first = shift < 0 ? (-shift + l.step - 1) / l.step : 0;
    const long last = l.from > shift ? min(l.to, (l.from - shift - 1) / l.step + 1) : 0;
    return (span){first, last, first * l.step + shift};
}

KN_DEFINE_ADD_OUTER(add_outer, ROWS, KV)

KN_INLINE void add_pixel(V sum[ROWS][KV], const global T *restrict x, const global T *restrict dy)
{
    T column[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; i++)
        column[i] = dy[i];
    add_outer(sum, column, x);
}

/* sums[ROWS][KB] += the products of a tile of dy's image and a block of x's, through tap (u, t). */
static inline void add_tap(global T *restrict sums, const global T *restrict x, const global T *restrict dy,
                           const kn_conv_taps_shape s, long u, long t)
{
    const span rows = span_of(s.rows, u), columns = span_of(s.columns, t);
    V sum[ROWS][KV];
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int v = 0; v < KV; v++)
            sum[i][v] = VLOAD(i * KV + v, sums);
    for (long row = rows.first; row < rows.last; row++) {
        const long x_row = rows.from + (row - rows.first) * s.rows.step;
        const global T *from = x + (x_row * s.columns.from + columns.from) * KB,
                       *gradient = dy + (row * s.columns.to + columns.first) * ROWS;
        KN_IN_PAIRS(j, columns.last - columns.first,
                    add_pixel(sum, from + j * s.columns.step * KB, gradient + j * ROWS));
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int v = 0; v < KV; v++)
            VSTORE(sum[i][v], i * KV + v, sums);
}

/* dw[outer][inner][taps] = a tile's sums, [taps][ROWS][KB]. */
KN_ONCE void store_tile(global T *restrict dw, const global T *restrict sums, long taps, long inner, int outer_count,
                        int inner_count)
{
    for (int i = 0; i < outer_count; i++)
        for (int k = 0; k < inner_count; k++)
            KN_NOT_UNROLLED
            for (long tap = 0; tap < taps; tap++)
                dw[(i * inner + k) * taps + tap] = sums[(tap * ROWS + i) * KB + k];
}

/* dim 0: items, each for some runs of s.tiles tiles. x and dy are packed; dw is [shares][groups * outer][inner][taps];
 * scratch holds [items][s.tiles][taps][ROWS][KB]. */
KN_KERNEL_ONCE(conv_weights_taps,
               (KN_ARG(x), KN_ARG(dy), KN_ARG(dw), KN_ARG(scratch), shape),
               KN_IN(x), KN_IN(dy), KN_OUT(dw), KN_OUT(scratch), kn_conv_taps_shape shape)
{
    const kn_conv_taps_shape s = shape;
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, dy);
    KN_BIND_OUT(T, dw);
    KN_BIND_OUT(T, scratch);
    const long taps = s.rows.taps * s.columns.taps, tile_sums = taps * ROWS * KB;
    const long x_panel = s.rows.from * s.columns.from * KB, dy_panel = s.rows.to * s.columns.to * ROWS;
    const long blocks = (s.inner + KB - 1) / KB, tiles = (s.outer + ROWS - 1) / ROWS,
               runs = (tiles + s.tiles - 1) / s.tiles, all = s.shares * s.groups * blocks * runs;
    const long item = KN_ID(0), items = KN_SIZE(0), end = (item + 1) * all / items;
    global T *sums = scratch + item * s.tiles * tile_sums;
    for (long at = item * all / items; at < end; at++) {
        const long run = at % runs, block = at / runs % blocks, group = at / runs / blocks % s.groups,
                   share = at / runs / blocks / s.groups;
        const long first_tile = run * s.tiles, last_tile = min(first_tile + s.tiles, tiles);
        for (long i = 0; i < (last_tile - first_tile) * tile_sums; i += VW)
            VSTORE((V)(T)0, 0, sums + i);
        for (long image = share * s.images_per_share; image < min(s.images, (share + 1) * s.images_per_share); image++)
            for (long tile = first_tile; tile < last_tile; tile++)
                for (long tap = 0; tap < taps; tap++)
                    add_tap(sums + (tile - first_tile) * tile_sums + tap * ROWS * KB,
                            x + ((image * s.groups + group) * blocks + block) * x_panel,
                            dy + ((image * s.groups + group) * tiles + tile) * dy_panel, s, tap / s.columns.taps,
                            tap % s.columns.taps);
        for (long tile = first_tile; tile < last_tile; tile++) {
            const long channel = (share * s.groups + group) * s.outer + tile * ROWS;
            store_tile(dw + (channel * s.inner + block * KB) * taps, sums + (tile - first_tile) * tile_sums, taps,
                       s.inner, (int)min((long)ROWS, s.outer - tile * ROWS), (int)min((long)KB, s.inner - block * KB));
        }
    }
}
