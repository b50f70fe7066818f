/* conv/gpu/winograd.cl - Winograd's convolution on GPUs: the transforms (conv/common/winograd.clh has the formulas) on
 * either side of a batch of WP matrix products (src/ops/conv/gpu/winograd.c).
 *
 * A tile is WMI x WMJ pixels of the result, or, in the gradient of the weights, of dy; tiles are numbered along the
 * rows of an image, its rows, the images. A work-item transforms one tile of one channel in registers, and neighbours
 * have adjacent tiles, so the transformed
 *
 *     [share][p][channel][tile]
 *
 * (the products' matrices, `width` tiles apart per channel) are accessed coalesced, with WP independent accesses per
 * work-item (48 to 64 registers in f32, 80 to 110 with windows of 8 x 8; in f64 up to 96 and 200); whole cache lines of
 * the image are used, via the L1 cache. Tiles are divided into shares, whose products are summed separately in
 * backward-weights.
 *
 * All kernels are bound by memory: a work-item that transforms a window moves 208 bytes (16 pixels of x, 36 values) in
 * about 480 instructions, while a device with 60 TFLOP/s and 4.8 TB/s has time for 1300; winograd_gpu_output likewise.
 * Functions are KN_INLINE, because a call would copy the kernel's struct to memory.
 *
 * Compiled in: T, WRI, WRJ, WMI; XN and XPHASE: columns of x are read in vectors of XN that start at columns of the
 * window which are -XPHASE modulo XN; YN: columns of y alike. */
#include "common/koine.clh"
#include "common/divide.clh"
#define V T
#include "conv/common/winograd.clh"
#include "conv/gpu/winograd.h"

#define VECTOR_JOIN_(a, b) a##b
#define VECTOR_JOIN(a, b) VECTOR_JOIN_(a, b)
#define XVECTOR VECTOR_JOIN(T, XN)
#define YVECTOR VECTOR_JOIN(T, YN)

/* A work-item's tile: image, channel, row and column. */
typedef struct winograd_place {
    long plane;
    int row, column;
} winograd_place;

KN_INLINE void winograd_find(winograd_place *place, const kn_winograd_image *s, uint tile, uint channel)
{
    const uint line = kn_quotient(tile, s->columns), image = kn_quotient(line, s->rows);
    place->plane = ((long)image * s->channels + channel) * s->plane;
    place->row = s->top + (int)kn_remainder(line, image, s->rows) * WMI;
    place->column = s->left + (int)kn_remainder(tile, line, s->columns) * WMJ;
}

/* The offset of the WP values of a tile and channel, `channels * share` apart. */
KN_INLINE long winograd_start(const kn_winograd_image *s, uint tile, uint channel)
{
    const uint share = kn_quotient(tile, s->share);
    return ((long)share * WP * s->channels + channel) * s->share.divisor + kn_remainder(tile, share, s->share);
}

/* A row of the window: to[j] = x[column + j], zeros outside the image. A vector is either entirely inside or entirely
 * outside: it starts at a multiple of its width, and so does a row's end. */
KN_INLINE void winograd_load_row(T *to, const global T *x, int column, int width, bool inside)
{
#pragma unroll
    for (int j = 0; j < WTJ; j++) {
        const int within = (j + XPHASE) % XN, start = j - within; /* start of the vector that holds column j */
        if (XN == 1 || start < 0 || start + XN > WTJ) {
            to[j] = inside && (uint)(column + j) < (uint)width ? x[column + j] : (T)0;
            continue;
        }
#if XN > 1
        if (within == 0) {
            const XVECTOR vector =
                inside && (uint)(column + j) < (uint)width ? *(const global XVECTOR *)(x + column + j) : (XVECTOR)0;
            T part[XN];
            VECTOR_JOIN(vstore, XN)(vector, 0, part);
#pragma unroll
            for (int e = 0; e < XN; e++)
                to[j + e] = part[e];
        }
#endif
    }
}

/* A row of a transformed tile: values that are `step` apart. */
KN_INLINE void winograd_store_row(global T *to, const T *line, long step)
{
#pragma unroll
    for (int j = 0; j < WTJ; j++)
        to[j * step] = line[j];
}

/* --- before the products ------------------------------------------------------------------------------------------ */

/* v = B^T x B for a window of x. */
KN_INLINE void winograd_transform_window(global T *v, const global T *x, const kn_winograd_image *s, uint tile,
                                         uint channel)
{
    winograd_place place;
    winograd_find(&place, s, tile, channel);
    T window[WP];
    x += place.plane;
#pragma unroll
    for (int i = 0; i < WTI; i++)
        winograd_load_row(window + i * WTJ, x + (long)(place.row + i) * s->width, place.column, s->width,
                          tile < s->tiles && (uint)(place.row + i) < (uint)s->height);
    const long step = (long)s->channels * s->share.divisor;
    v += winograd_start(s, tile, channel);
    WINOGRAD_TRANSFORM(winograd_input, WT, WT, window[i * WTJ + j],
                       winograd_store_row(v + i * WTJ * step, line, step));
}

/* d = A dy A^T for a tile of dy. */
KN_INLINE void winograd_transform_tile(global T *d, const global T *dy, const kn_winograd_image *s, uint tile,
                                       uint channel)
{
    winograd_place place;
    winograd_find(&place, s, tile, channel);
    T pixels[WMI * WMJ];
    dy += place.plane + (long)place.row * s->width + place.column;
#pragma unroll
    for (int i = 0; i < WMI; i++, dy += s->width)
#pragma unroll
        for (int j = 0; j < WMJ; j += YN) {
            const bool inside = tile < s->tiles && place.row + i < s->height && place.column + j < s->width;
#if YN > 1
            VECTOR_JOIN(vstore, YN)(inside ? *(const global YVECTOR *)(dy + j) : (YVECTOR)0, 0, pixels + i * WMJ + j);
#else
            pixels[i * WMJ + j] = inside ? dy[j] : (T)0;
#endif
        }
    const long step = (long)s->channels * s->share.divisor;
    d += winograd_start(s, tile, channel);
    WINOGRAD_TRANSFORM(winograd_gradient, WM, WT, pixels[i * WMJ + j],
                       winograd_store_row(d + i * WTJ * step, line, step));
}

/* u[p][pair] = (G w G^T)[p] for a pair of an output and an input channel. flipped: reads the kernel from its end. */
KN_INLINE void winograd_transform_weights(global T *u, const global T *w, long pairs, long pair, int flipped)
{
    w += pair * WTAPS + (flipped ? WTAPS - 1 : 0);
    u += pair;
    const int next = flipped ? -1 : 1;
    WINOGRAD_TRANSFORM(winograd_weight, WR, WT, w[(i * WRJ + j) * next],
                       winograd_store_row(u + i * WTJ * pairs, line, pairs));
}

/* Both factors of the products in one launch, forward and backward-data. dim 0: tile, dim 1: channel, then rows of
 * channel pairs, if any. */
kernel void winograd_gpu_factors(KN_IN(x), KN_IN(w), KN_OUT(v), KN_OUT(u), kn_winograd_image s, long pairs, int flipped)
{
    const uint tile = get_global_id(0), channel = get_global_id(1);
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, w);
    KN_BIND_OUT(T, v);
    KN_BIND_OUT(T, u);
    if (channel >= s.channels) {
        const long rows = get_global_size(1) - s.channels, width = get_global_size(0);
        for (long i = (channel - s.channels) * width + tile; i < pairs; i += rows * width)
            winograd_transform_weights(u, w, pairs, i, flipped);
    } else if (tile < s.places) {
        winograd_transform_window(v, x, &s, tile, channel);
    }
}

/* Both factors, backward-weights. dim 0: tile, dim 1: channel of x, then of dy. */
kernel void winograd_gpu_gradient_factors(KN_IN(x), KN_IN(dy), KN_OUT(v), KN_OUT(d), kn_winograd_image s,
                                          kn_winograd_image t)
{
    const uint tile = get_global_id(0), channel = get_global_id(1);
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, dy);
    KN_BIND_OUT(T, v);
    KN_BIND_OUT(T, d);
    if (tile >= s.places)
        return;
    if (channel < s.channels)
        winograd_transform_window(v, x, &s, tile, channel);
    else if (channel - s.channels < t.channels)
        winograd_transform_tile(d, dy, &t, tile, channel - s.channels);
}

/* --- after the products ------------------------------------------------------------------------------------------- */

/* A row of a tile of pixels, from a column on. */
KN_INLINE void winograd_store_pixels(global T *y, T *line, T added, T low, T high, int column, int width)
{
#pragma unroll
    for (int j = 0; j < WMJ; j++) {
        const T sum = line[j] + added;
        line[j] = KN_CLAMP(sum, low, high);
    }
#pragma unroll
    for (int j = 0; j < WMJ; j += YN)
        if (column + j < width)
#if YN > 1
            *(global YVECTOR *)(y + j) = VECTOR_JOIN(vload, YN)(0, line + j);
#else
            y[j] = line[j];
#endif
}

/* y = clamp(A^T m A + bias). dim 0: tile, dim 1: channel. */
kernel void winograd_gpu_output(KN_IN(m), KN_IN(bias), KN_OUT(y), kn_winograd_image s, int has_bias, T low, T high)
{
    const uint tile = get_global_id(0), channel = get_global_id(1);
    if (tile >= s.tiles || channel >= s.channels)
        return;
    KN_BIND_IN(T, m);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    winograd_place place;
    winograd_find(&place, &s, tile, channel);
    const long step = (long)s.channels * s.share.divisor;
    const T added = has_bias ? bias[channel] : (T)0;
    T products[WP];
    m += winograd_start(&s, tile, channel);
#pragma unroll
    for (int i = 0; i < WP; i++)
        products[i] = m[i * step];
    y += place.plane + (long)place.row * s.width + place.column;
    WINOGRAD_TRANSFORM(winograd_output, WT, WM, products[i * WTJ + j], {
        if (place.row + i < s.height)
            winograd_store_pixels(y, line, added, low, high, place.column, s.width);
        y += s.width;
    });
}

/* dw of a pair = G^T (the sum, in order, of the shares' m[share][p][pair]) G. */
kernel void winograd_gpu_finish(KN_IN(m), KN_OUT(dw), long pairs, int shares)
{
    const long pair = get_global_id(0);
    if (pair >= pairs)
        return;
    KN_BIND_IN(T, m);
    KN_BIND_OUT(T, dw);
    T sum[WP];
    m += pair;
#pragma unroll
    for (int p = 0; p < WP; p++)
        sum[p] = m[p * pairs];
    for (int share = 1; share < shares; share++) {
        m += WP * pairs;
#pragma unroll
        for (int p = 0; p < WP; p++)
            sum[p] += m[p * pairs];
    }
    dw += pair * WTAPS;
    WINOGRAD_TRANSFORM(winograd_weight_gradient, WT, WR, sum[i * WTJ + j], {
        _Pragma("unroll") for (int t = 0; t < WRJ; t++) dw[i * WRJ + t] = line[t];
    });
}
