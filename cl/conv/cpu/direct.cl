/* conv/cpu/direct.cl - direct convolution on CPU devices from NCHW: no im2col, no blocked layout, no padded image.
 *
 * Forward and backward-data are both correlations of an image with a list of taps:
 *
 *     y[n, k, pixel] = bias[k] + sum over t of x[n, start(pixel) + tap[t]] * w[k, t],    clamped to [low, high]
 *
 * A tap is one (channel, row, column) of the kernel, and tap[t] the offset in elements from a pixel's start to the
 * element that the tap reads. Taps encode channels, kernel size and dilation, and start(pixel) the stride, so there is
 * a single flat loop over taps. A tile is PX pixels by KB = KV * VW output channels: accumulators are vectors along the
 * channels, each value of x is a scalar broadcast from any address, so that partial rows cost nothing. PX * KV + KV + 1
 * vectors must fit in registers.
 *
 * A unit of work is a part of the image, small enough for its sums to stay in the second cache. Its input channels are
 * taken a chunk at a time, so that a block's weights for one chunk stay in the first cache while all tiles of the unit
 * are summed; the sums wait in scratch memory for the next chunk. Of volumes, whose slices are the images, the taps
 * along the depth are further channels.
 *
 * In backward-data with a stride, the output's rows and columns fall into residue classes with taps of their own
 * (src/ops/conv/common/correlation.h). A launch is for one class of rows and all classes of columns: the copy serves
 * all of them, and each line of y is written once.
 *
 * Compiled in: T, VW, KV, PX. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "conv/cpu/direct.h"
#define ROWS PX
#include "conv/cpu/parts.clh"
#include "conv/cpu/sums.clh"

/* Adds the taps of one chunk to the sums of PX pixels. */
static inline void sum_tile(global T *restrict sums, const global T *restrict x, const global int *restrict starts,
                            const global T *restrict weight, const global int *restrict table, long taps)
{
    const global T *restrict from[PX];
    V sum[PX][KV];
#pragma unroll
    for (int i = 0; i < PX; i++) {
        from[i] = x + starts[i];
#pragma unroll
        for (int v = 0; v < KV; v++)
            sum[i][v] = VLOAD(v, sums + i * KB);
    }
    add_products(sum, from, table, weight, taps);
#pragma unroll
    for (int i = 0; i < PX; i++)
#pragma unroll
        for (int v = 0; v < KV; v++)
            VSTORE(sum[i][v], v, sums + i * KB);
}

/* to[k] = sums[0 .. 7][k], clamped, for 8 channels. */
static inline void transpose_sums(V8 *to, const global T *restrict sums, T low, T high)
{
#pragma unroll
    for (int j = 0; j < 8; j++) {
        const V8 value = vload8(0, sums + j * KB);
        to[j] = KN_CLAMP(value, (V8)low, (V8)high);
    }
    zip_transpose_8(to);
}

/* Stores the sums of n pixels of one row that are adjacent in y, 8 channels; n is at least 8. */
static inline void store_8_channels(global T *restrict y, long y_channel, const global T *restrict sums, long n, T low,
                                    T high)
{
    for (long j = 0; j < n; j += 8) {
        const long e = min(j, n - 8); /* the last 8 overlap those before */
        V8 value[8];
        transpose_sums(value, sums + e * KB, low, high);
#pragma unroll
        for (int k = 0; k < 8; k++)
            vstore8(value[k], 0, y + k * y_channel + e);
    }
}

/* The same for two classes that alternate in y, n pixels of each. */
static inline void store_pairs(global T *restrict y, long y_channel, const global T *restrict even,
                               const global T *restrict odd, long n, T low, T high)
{
    for (long j = 0; j < n; j += 8) {
        const long e = min(j, n - 8);
        V8 a[8], b[8];
        transpose_sums(a, even + e * KB, low, high);
        transpose_sums(b, odd + e * KB, low, high);
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const V8 p = a[k], q = b[k];
            vstore8((V8)(p.s0, q.s0, p.s1, q.s1, p.s2, q.s2, p.s3, q.s3), 0, y + k * y_channel + 2 * e);
            vstore8((V8)(p.s4, q.s4, p.s5, q.s5, p.s6, q.s6, p.s7, q.s7), 1, y + k * y_channel + 2 * e);
        }
    }
}

static inline long y_channel_of(const kn_conv_direct_layout *g) { return g->parts.y.depth * g->parts.y.plane; }

/* Stores the sums of pixels j .. n - 1 of one row: channels k .. channels - 1 of all classes, of which `wide` have
 * pixel n - 1. */
static inline void store_rest(global T *restrict y, const global T *restrict sums, const kn_conv_direct_layout *g,
                              long k, long channels, long j, long n, long wide, T low, T high)
{
    for (; k < channels; k++)
        for (long i = j; i < n; i++)
            for (long b = 0; b < (i < n - 1 ? g->classes : wide); b++)
                y[k * y_channel_of(g) + i * g->parts.columns.y_step + b] =
                    KN_CLAMP(sums[(b * g->sums + i) * KB + k], low, high);
}

/* Stores the sums of n pixels of one row. */
static inline void store_row(global T *restrict y, const global T *restrict sums, const kn_conv_direct_layout *g,
                             long n, long wide, long channels, T low, T high)
{
    const long y_channel = y_channel_of(g), y_column = g->parts.columns.y_step;
    const bool pairs = g->classes == 2 && y_column == 2;
    const long whole = wide == g->classes ? n : n - 1; /* pixels that all classes have */
    long k = 0;
    if ((pairs || y_column == 1) && whole >= 8)
        for (; k + 8 <= channels; k += 8) {
            global T *to = y + k * y_channel;
            if (pairs)
                store_pairs(to, y_channel, sums + k, sums + g->sums * KB + k, whole, low, high);
            else
                store_8_channels(to, y_channel, sums + k, whole, low, high);
        }
    store_rest(y, sums, g, 0, k, whole, n, wide, low, high);
    store_rest(y, sums, g, k, channels, 0, n, wide, low, high);
}

/* Stores one image's sums of a block, row by row; rows without a gap in y as one. */
KN_ONCE void store_image(global T *restrict y, const global T *restrict sums, const kn_conv_direct_layout *g,
                         const unit *u, long channels, T low, T high)
{
    const part rows = u->rows, columns = u->columns;
    const long y_row = g->parts.rows.y_step, y_column = g->parts.columns.y_step;
    long wide = 0; /* classes that have the part's last column */
    while (wide < g->classes && g->of[wide].out >= columns.first + columns.count)
        wide++;
    y += rows.first * y_row + columns.first * y_column;
    const bool joined = y_column == 1 && columns.count == y_row;
    const long runs = joined ? 1 : rows.count, length = joined ? u->image_pixels : columns.count;
    for (long i = 0; i < runs; i++)
        store_row(y + i * y_row, sums + i * length * KB, g, length, wide, channels, low, high);
}

/* Adds all taps to the sums, chunk by chunk. */
KN_ONCE void sum_unit(global T *restrict sums, global T *restrict copy, const global int *restrict starts,
                      const global T *restrict x, const global T *restrict packed, const global int *restrict table,
                      const kn_conv_direct_layout *g, const unit *u)
{
    const kn_conv_parts *p = &g->parts;
    for (long c = 0; c < p->inner; c += p->chunk) {
        const long channels = min(p->chunk, p->inner - c);
        const global T *from = chunk_of(copy, x, p, u, c, channels);
        for (long block = 0; block < u->blocks; block++)
            for (long b = 0; b < g->classes; b++) {
                const kn_conv_direct_class k = g->of[b];
                const global T *weight = packed + k.weights + ((u->block + block) * p->inner + c) * k.taps * KB;
                for (long i = 0; i < u->pixels; i += PX)
                    sum_tile(sums + ((block * g->classes + b) * g->sums + i) * KB, from, starts + i, weight,
                             table + k.table, channels * k.taps);
            }
    }
}

/* dim 0: g.units_per_item units each. A work-item's part of `scratch` holds the copy of the image, the sums of each
 * block and the starts. `packed` and `table` are conv_prepare's, class by class; only the first chunk's part of a table
 * is read. */
KN_KERNEL_ONCE(conv_direct,
               (KN_ARG(x), KN_ARG(packed), KN_ARG(table), KN_ARG(bias), KN_ARG(y), KN_ARG(scratch), layout, has_bias,
                low, high),
               KN_IN(x), KN_IN(packed), KN_IN(table), KN_IN(bias), KN_OUT(y), KN_OUT(scratch),
               kn_conv_direct_layout layout, int has_bias, T low, T high)
{
    const kn_conv_direct_layout g = layout;
    const kn_conv_parts *p = &g.parts;
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, packed);
    KN_BIND_IN(int, table);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    KN_BIND_OUT(T, scratch);
    const long last = min(p->units, (KN_ID(0) + 1) * g.units_per_item), block_sums = g.classes * g.sums;
    global T *copy = scratch + KN_ID(0) * g.scratch_size, *sums = copy + p->copy_size;
    global int *starts = (global int *)(sums + p->unit_blocks * block_sums * KB);

    for (long id = KN_ID(0) * g.units_per_item; id < last; id++) {
        const unit u = unit_of(p, id);
        const long channel = u.group * p->outer + u.first_block * KB; /* the first one that is written */
        write_starts(starts, p, &u, PX - 1);
        for (long block = 0; block < u.blocks; block++)
            for (long b = 0; b < g.classes; b++)
                start_sums(sums + (block * block_sums + b * g.sums) * KB, bias + channel + block * KB,
                           has_bias ? channels_of_block(p, &u, block) : 0, u.pixels + PX - 1);
        sum_unit(sums, copy, starts, x, packed, table, &g, &u);
        for (long block = 0; block < u.blocks; block++)
            for (long i = 0; i < u.images; i++)
                store_image(y + y_start(&p->y, u.first_image + i, channel + block * KB),
                            sums + (block * block_sums + i * u.image_pixels) * KB, &g, &u,
                            channels_of_block(p, &u, block), low, high);
    }
}
