/* conv/cpu/pointwise.cl - 1 x 1 convolutions on CPU devices, forward and backward-weights (all pixels of x read) and
 * backward-data (any stride and padding), as matrix products over the pixels of all images (conv/cpu/pointwise.clh).
 *
 *     forward:           y[p][k] = the sum over c of x[p][c] * w[k][c]
 *     backward-data:     x[p][c] = the sum over k of y[p][k] * w[k][c], zeros in skipped pixels
 *     backward-weights:  w[k][c] = the sum over p of y[p][k] * x[p][c]
 *
 * In the first two, pixels are broadcast and channels are in vectors. Pixels are packed first, across images, so that
 * only the very last tile may be partial; read in place, from lines a plane apart, they take 1.2 times as long on an
 * Intel Xeon. Weights are packed by the work-item of a block of KB channels, in its core's cache, for all pixels of a
 * block. 85 to 93 % of the multiply-adds' peak on layers of 7 x 7 and 14 x 14 pixels with 192 channels or more;
 * transposing weights and results takes 2 % each of 512 channels' time, so few channels are faster in
 * conv/cpu/bands.cl, or as products per image (src/ops/conv/cpu/products.c). The third is at the end of the file.
 *
 * Compiled in: T, VW, MT, KV. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "gemm/outer.clh"
#include "gemm/pack.clh"
#include "conv/cpu/copy.clh"
#include "conv/cpu/pointwise.clh"
#include "conv/cpu/pointwise.h"

/* Copies `count` pixels, of which the first is number `at` of its tile, to tiles `step` elements apart. */
static inline void pack_run(global T *restrict to, const global T *restrict from, long at, long count, long step)
{
    if (at > 0) {
        const long head = min(MT - at, count);
        for (int i = 0; i < head; i++)
            to[at + i] = from[i];
        from += head;
        count -= head;
        to += step;
    }
    for (; count >= MT; count -= MT, from += MT, to += step)
#pragma unroll
        for (int i = 0; i < MT; i++)
            to[i] = from[i];
    for (int i = 0; i < count; i++)
        to[i] = from[i];
}

/* panels[tile][channel][MT], tiles `step` elements apart, from x[image][channel][plane], zeros past the last pixel.
 * Channel by channel, in long runs, because cache lines hold pixels of several tiles. dim 0: KN_CONV_PACKED_TILES
 * each, dim 1: `some` channels each. */
KN_KERNEL_ONCE(pointwise_pack,
               (KN_ARG(x), KN_ARG(panels), images, plane, channels, some, step),
               KN_IN(x), KN_OUT(panels), long images, long plane, long channels, long some, long step)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, panels);
    const long all = images * plane, item = KN_CONV_PACKED_TILES * MT, start = KN_ID(0) * item,
               end = min(start + item, all);
    const long first = KN_ID(1) * some, last = min(channels, first + some);
    for (long p = start, run; p < end; p += run) {
        const long image = p / plane;
        const global T *from = x + (image * channels + first) * plane + p % plane;
        global T *to = panels + p / MT * step;
        run = min(end, (image + 1) * plane) - p;
        for (long c = first; c < last; c++, from += plane)
            pack_run(to + c * MT, from, p % MT, run, step);
    }
    if (end == all && all % MT > 0)
        for (long c = first; c < last; c++)
            zero_run(panels + all / MT * step + c * MT + all % MT, MT - all % MT);
}

/* Stores pixels first .. first + count - 1 of `columns` channels to images without gaps. */
static inline void store_pixels(global T *restrict y, const global T *restrict m, long plane, long channels, long first,
                                long count, int columns)
{
    for (long i = 0; i < count;) {
        const long p = (first + i) % plane, image = (first + i) / plane, run = min(plane - p, count - i);
        store_transposed(y + image * channels * plane + p, (int)plane, m + i * KB, run, columns);
        i += run;
    }
}

/* The first of x's `size` rows or columns that pixel i of `count` writes: itself and zeros up to the next. */
static inline long owned_from(long i, long step, long origin, long count, long size)
{
    return i == 0 ? 0 : i == count ? size : clamp(i * step - origin, 0L, size);
}

/* Stores a run of pixels of row i of y, from column j on, to an image of x, with zeros around them up to the next
 * ones. */
static inline void spread_run(global T *restrict x, const global T *restrict from, const kn_conv_sampling *g,
                              long i, long j, long run)
{
    const long left = owned_from(j, g->column_step, g->left, g->columns, g->width),
               right = owned_from(j + run, g->column_step, g->left, g->columns, g->width),
               top = owned_from(i, g->row_step, g->top, g->rows, g->height),
               bottom = owned_from(i + 1, g->row_step, g->top, g->rows, g->height);
    if (right - left == g->width)
        zero_run(x + top * g->width, (bottom - top) * g->width);
    else
        for (long row = top; row < bottom; row++)
            zero_run(x + row * g->width + left, right - left);
    const long row = i * g->row_step - g->top, first = max(j, (g->left + g->column_step - 1) / g->column_step),
               last = min(j + run, (g->width - 1 + g->left) / g->column_step + 1);
    if (row >= 0 && row < g->height && first < last)
        spread_steps(x + row * g->width + first * g->column_step - g->left, from + first - j, last - first,
                     g->column_step);
}

/* Stores to images with zeros between the pixels. lines: scratch of KB * pixels elements. */
static inline void spread_pixels(global T *restrict x, global T *restrict lines, const global T *restrict m,
                                 const kn_conv_sampling *g, long channels, long first, long pixels, int columns)
{
    const long plane = g->height * g->width;
    store_transposed(lines, (int)pixels, m, pixels, columns);
    for (int k = 0; k < columns; k++)
        for (long t = 0; t < pixels;) {
            const long p = first + t, j = p % g->columns, i = p / g->columns % g->rows;
            const long image = p / g->columns / g->rows, run = min(g->columns - j, pixels - t);
            spread_run(x + (image * channels + k) * plane, lines + k * pixels + t, g, i, j, run);
            t += run;
        }
}

/* dim 0: runs of pairs of a block of KB channels and a block of tiles: all channels for a block's pixels, then the next
 * block. */
KN_KERNEL_ONCE(pointwise_multiply,
               (KN_ARG(panels), KN_ARG(w), KN_ARG(bias), KN_ARG(y), KN_ARG(scratch), given_g, given_s, has_bias, low,
                high),
               KN_IN(panels), KN_IN(w), KN_IN(bias), KN_OUT(y), KN_OUT(scratch), const kn_conv_sampling given_g,
               const kn_conv_pointwise_shape given_s, int has_bias, T low, T high)
{
    const kn_conv_sampling g = given_g;
    const kn_conv_pointwise_shape s = given_s;
    KN_BIND_IN(T, panels);
    KN_BIND_IN(T, w);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(T, scratch);
    const long pixels = g.rows * g.columns, all = g.images * pixels, tiles = (all + MT - 1) / MT,
               plane = s.spread ? g.height * g.width : pixels;
    const long blocks = (s.outer + KB - 1) / KB, pairs = (tiles + s.tiles - 1) / s.tiles * blocks;
    const long item = KN_ID(0), items = KN_SIZE(0), end = (item + 1) * pairs / items;
    global T *u = scratch + item * s.scratch, *m = u + s.chunk * KB, *lines = m + s.tiles * MT * KB;
    for (long pair = item * pairs / items; pair < end; pair++) {
        const long block = pair % blocks, first = pair / blocks * s.tiles, some = min(s.tiles, tiles - first);
        const int columns = (int)min((long)KB, s.outer - block * KB);
        T start[KB];
        for (int k = 0; k < KB; k++)
            start[k] = has_bias && k < columns ? bias[block * KB + k] : (T)0;
        /* at least once, for the bias, if there is nothing to sum */
        for (long c = 0; c == 0 || c < s.inner; c += s.chunk) {
            const long count = min(s.chunk, s.inner - c);
            const bool last = c + s.chunk >= s.inner;
            pack_panel(u, w + c * s.inner_stride + block * KB * s.outer_stride, count, columns, KB, s.inner_stride,
                       s.outer_stride);
            for (long t = 0; t < some; t++)
                pointwise_tile(m + t * MT * KB, panels + (first + t) * s.panel + c * MT, u, count, c == 0, start,
                               last ? low : (T)NAN, last ? high : (T)NAN);
        }
        const long stored = min(some * MT, all - first * MT);
        global T *to = y + block * KB * plane;
        if (s.spread)
            spread_pixels(to, lines, m, &g, s.outer, first * MT, stored, columns);
        else
            store_pixels(to, m, pixels, s.outer, first * MT, stored, columns);
    }
}

/* --- the gradient of the weights ---------------------------------------------------------------------------------- */

/* u[pixel][KB] = b of pixels p .. p + count - 1 */
static inline void pack_pixels(global T *restrict u, const global T *restrict b, const kn_conv_pointwise_product *s,
                               long p, long count, int columns)
{
    for (long i = 0; i < count;) {
        const long image = (p + i) / s->plane, at = (p + i) % s->plane, run = min(s->plane - at, count - i);
        pack_panel(u + i * KB, b + image * s->columns * s->plane + at, run, columns, KB, 1, s->plane);
        i += run;
    }
}

/* m (+)= a u over those pixels; a: the first image's first row of the tile. */
KN_ONCE void multiply_rows(global T *restrict m, const global T *restrict a, const global T *restrict u,
                           const kn_conv_pointwise_product *s, long p, long count, bool first)
{
    V sum[MT][KV];
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int k = 0; k < KV; k++)
            sum[i][k] = first ? (V)0 : VLOAD(i * KV + k, m);
    long at = p % s->plane;
    a += p / s->plane * s->rows * s->plane;
    for (long left = count; left > 0; at = 0, a += s->rows * s->plane) {
        const long run = min(s->plane - at, left);
        add_products(sum, a + at, s->plane, 1, u, run);
        u += run * KB;
        left -= run;
    }
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int k = 0; k < KV; k++)
            VSTORE(sum[i][k], i * KV + k, m);
}

/* Stores `rows` rows of results to dw, which points to the first. */
static inline void store_rows(global T *restrict dw, const global T *restrict m, const kn_conv_pointwise_product *s,
                              long rows, int columns)
{
    if (s->row_stride == 1)
        store_transposed(dw, (int)s->column_stride, m, rows, columns);
    else
        for (long i = 0; i < rows; i++)
            copy_run(dw + i * s->row_stride, m + i * KB, columns);
}

/* dim 0: runs of units, each a block of KB columns, a block of tiles and a share of the pixels; dw: of each share. The
 * very last tile starts earlier, so that every tile has MT rows. */
KN_KERNEL_ONCE(pointwise_weights,
               (KN_ARG(a), KN_ARG(b), KN_ARG(dw), KN_ARG(scratch), s),
               KN_IN(a), KN_IN(b), KN_OUT(dw), KN_OUT(scratch), kn_conv_pointwise_product s)
{
    KN_BIND_IN(T, a);
    KN_BIND_IN(T, b);
    KN_BIND_OUT(T, dw);
    KN_BIND_OUT(T, scratch);
    const long pixels = s.images * s.plane, tiles = (s.rows + MT - 1) / MT;
    const long blocks = (s.columns + KB - 1) / KB, pairs = (tiles + s.tiles - 1) / s.tiles * blocks;
    const long item = KN_ID(0), items = KN_SIZE(0), units = s.shares * pairs, end = (item + 1) * units / items;
    global T *u = scratch + item * s.scratch, *m = u + s.chunk * KB;
    for (long unit = item * units / items; unit < end; unit++) {
        const long share = unit / pairs, block = unit % pairs % blocks, first = unit % pairs / blocks * s.tiles;
        const long some = min(s.tiles, tiles - first);
        const long start = share * s.share_pixels, stop = min(pixels, start + s.share_pixels);
        const int columns = (int)min((long)KB, s.columns - block * KB);
        for (long p = start; p == start || p < stop; p += s.chunk) {
            const long count = min(s.chunk, stop - p);
            pack_pixels(u, b + block * KB * s.plane, &s, p, count, columns);
            for (long t = 0; t < some; t++)
                multiply_rows(m + t * MT * KB, a + min((first + t) * MT, s.rows - MT) * s.plane, u, &s, p, count,
                              p == start);
        }
        global T *to = dw + share * s.rows * s.columns + block * KB * s.column_stride;
        const long before = first + some == tiles ? some - 1 : some; /* without the very last tile */
        store_rows(to + first * MT * s.row_stride, m, &s, before * MT, columns);
        if (before < some)
            store_rows(to + (s.rows - MT) * s.row_stride, m + before * MT * KB, &s, MT, columns);
    }
}
