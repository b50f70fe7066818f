/* conv/cpu/images.cl - convolution on CPU devices, one pixel of several images at a time.
 *
 * For small images with relatively much padding: a tile is the same pixel of NX images by KB = KV * VW output channels,
 * so that it reads the same taps throughout, and taps in the padding are skipped instead of multiplied by zeros. (The
 * gradient of a 13 x 13 image through a 5 x 5 kernel on 9 x 9 pixels: 2.1 times fewer multiplications.) x is repacked
 * as [images][height][width][channels]. The weights, which are more than the images where there are many channels, are
 * read once: a work-item packs those of a block of output channels in chunks that stay in its core's cache, as
 * [tap][channel][KB], and adds each chunk's products to the sums of a run of pixels, which stay there too.
 *
 * Compiled in: T, VW, KV, NX. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "gemm/outer.clh"
#include "gemm/pack.clh"

#include "conv/cpu/images.h"
#include "conv/cpu/winograd_repack.clh"

#define KB (KV * VW)
#include "conv/cpu/sums.clh"

/* dim 0: images */
KN_KERNEL_ONCE(conv_images_repack,
               (KN_ARG(x), KN_ARG(repacked), channels, pixels),
               KN_IN(x), KN_OUT(repacked), long channels, long pixels)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, repacked);
    const long at = KN_ID(0) * channels * pixels;
    pack_panel(repacked + at, x + at, pixels, (int)channels, (int)channels, 1, pixels);
}

/* The pixel that pixel i reads through tap u, or -1. */
static inline long pixel_read(const kn_conv_line l, long i, long u)
{
    const long at = i * l.step + l.origin + u * l.distance;
    if (at < 0)
        return -1;
    if (l.division == 1)
        return at < l.from ? at : -1;
    return at % l.division == 0 && at / l.division < l.from ? at / l.division : -1;
}

/* The weights of channels c .. c + channels - 1, for the block of output channels that w points to. gathered: those of
 * a vector of output channels, [channel][tap][VW]. */
static inline void pack_weights(global T *restrict packed, global T *restrict gathered, const global T *restrict w,
                                const kn_conv_images_shape s, long outer, long left, long c, long channels)
{
    const long area = s.rows.taps * s.columns.taps;
    for (int v = 0; v < KV; v++) {
        const int some = (int)clamp(outer - v * VW, 0L, (long)VW);
        const long from = v * VW * s.outer_stride + c * s.inner_stride;
        if (some > 0)
            gather_taps(gathered, w + from, area, s.outer_stride, s.inner_stride, channels, some, left - from);
        else
            winograd_clear(gathered, channels * area);
        for (long i = 0; i < channels; i++)
            for (long tap = 0; tap < area; tap++)
                VSTORE(VLOAD(i * area + tap, gathered), v, packed + (tap * s.chunk + i) * KB);
    }
}

KN_DEFINE_ADD_OUTER(add_column, NX, KV)

/* sum[n] += channel c of the n-th image's pixel times its weights. */
KN_INLINE void add_channel(V sum[NX][KV], const global T *restrict pixel[NX], const global T *restrict weight, long c)
{
    T column[NX];
#pragma unroll
    for (int n = 0; n < NX; n++)
        column[n] = pixel[n][c];
    add_column(sum, column, weight + c * KB);
}

/* sums[n][k] += the products of `channels` channels, through all taps that pixel (i, j) has; x points to the first of
 * them in the first pixel of the first of `images` images. Stored sums are clamped (low, high NaN: they are not). */
static inline void add_products(global T *restrict sums, const global T *restrict x, const global T *restrict packed,
                                const kn_conv_images_shape s, long i, long j, long channels, int images, T low,
                                T high)
{
    const long pitch = s.groups * s.inner, image_size = s.rows.from * s.columns.from * pitch;
    V sum[NX][KV];
#pragma unroll
    for (int n = 0; n < NX; n++)
#pragma unroll
        for (int v = 0; v < KV; v++)
            sum[n][v] = VLOAD(n * KV + v, sums);
    for (long u = 0; u < s.rows.taps; u++) {
        const long row = pixel_read(s.rows, i, u);
        for (long t = 0; row >= 0 && t < s.columns.taps; t++) {
            const long column = pixel_read(s.columns, j, t);
            if (column < 0)
                continue;
            const global T *weight = packed + (u * s.columns.taps + t) * s.chunk * KB;
            const global T *restrict pixel[NX];
#pragma unroll
            for (int n = 0; n < NX; n++)
                pixel[n] = x + min(n, images - 1) * image_size + (row * s.columns.from + column) * pitch;
            KN_IN_PAIRS(c, channels, add_channel(sum, pixel, weight, c));
        }
    }
#pragma unroll
    for (int n = 0; n < NX; n++)
#pragma unroll
        for (int v = 0; v < KV; v++)
            VSTORE(KN_CLAMP(sum[n][v], (V)low, (V)high), n * KV + v, sums);
}

/* y = the sums of a row of pixels, [pixel][NX][KB], for `images` images and `outer` channels. */
KN_ONCE void store_row(global T *restrict y, const global T *restrict sums, const kn_conv_images_shape s, int images,
                       int outer)
{
    const long pixels = s.rows.to * s.columns.to, width = s.columns.to;
    for (int n = 0; n < images; n++, y += s.groups * s.outer * pixels, sums += KB) {
        int k = 0;
        if (width >= 8)
            for (; k + 8 <= outer; k += 8)
                for (long j = 0; j < width; j += 8) {
                    const long e = min(j, width - 8); /* the last 8 overlap those before */
                    transpose_8(y + k * pixels + e, (int)pixels, sums + e * NX * KB + k, NX * KB, 8);
                }
        for (; k < outer; k++)
            KN_NOT_UNROLLED
            for (long j = 0; j < width; j++)
                y[k * pixels + j] = sums[j * NX * KB + k];
    }
}

/* dim 0: items, each for a share of the runs of all blocks of output channels. */
KN_KERNEL_ONCE(conv_images,
               (KN_ARG(x), KN_ARG(w), KN_ARG(bias), KN_ARG(y), KN_ARG(scratch), shape, has_bias, low, high),
               KN_IN(x), KN_IN(w), KN_IN(bias), KN_OUT(y), KN_OUT(scratch), kn_conv_images_shape shape, int has_bias,
               T low, T high)
{
    const kn_conv_images_shape s = shape;
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, w);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(T, scratch);
    const long area = s.rows.taps * s.columns.taps, pixels = s.rows.to * s.columns.to;
    const long units = (s.images + NX - 1) / NX * s.rows.to, blocks = (s.outer + KB - 1) / KB,
               runs = (units + s.run - 1) / s.run, all = s.groups * blocks * runs;
    const long item = KN_ID(0), items = KN_SIZE(0), end = (item + 1) * all / items;
    global T *packed = scratch + item * s.scratch, *gathered = packed + s.chunk * area * KB,
             *sums = gathered + s.chunk * area * VW;
    for (long at = item * all / items; at < end; at++) {
        const long block = at / runs % blocks, group = at / runs / blocks;
        const long first = at % runs * s.run, last = min(first + s.run, units);
        const int outer = (int)min((long)KB, s.outer - block * KB);
        const long channel = group * s.outer + block * KB, start = group * s.group_stride + block * KB * s.outer_stride;
        start_sums(sums, bias + channel, has_bias ? outer : 0, (last - first) * s.columns.to * NX);
        /* at least once, for the bias, if there is nothing to sum */
        for (long c = 0; c == 0 || c < s.inner; c += s.chunk) {
            const long channels = min(s.chunk, s.inner - c);
            const bool done = c + s.chunk >= s.inner;
            pack_weights(packed, gathered, w + start, s, outer, s.groups * s.outer * s.inner * area - start, c,
                         channels);
            for (long unit = first; unit < last; unit++) {
                const long image = unit / s.rows.to * NX;
                for (long j = 0; j < s.columns.to; j++)
                    add_products(sums + ((unit - first) * s.columns.to + j) * NX * KB,
                                 x + (image * s.rows.from * s.columns.from * s.groups + group) * s.inner + c, packed, s,
                                 unit % s.rows.to, j, channels, (int)min((long)NX, s.images - image),
                                 done ? low : (T)NAN, done ? high : (T)NAN);
            }
        }
        for (long unit = first; unit < last; unit++) {
            const long image = unit / s.rows.to * NX, row = unit % s.rows.to;
            store_row(y + (image * s.groups * s.outer + channel) * pixels + row * s.columns.to,
                      sums + (unit - first) * s.columns.to * NX * KB, s, (int)min((long)NX, s.images - image), outer);
        }
    }
}
