/* conv/gpu/winograd.cl - Winograd's convolution on GPUs: the transforms (conv/common/winograd.clh has the formulas) on
 * either side of a batch of WP = 36 matrix products (src/ops/conv/gpu/winograd.c).
 *
 * A tile is WM x WM pixels of the result, or, in the gradient of the weights, of dy; tiles are numbered along the rows
 * of an image, its rows, the images. A work-item transforms one tile of one channel in registers, and neighbours have
 * adjacent tiles, so the transformed
 *
 *     [share][p][channel][tile]
 *
 * (the products' matrices, `width` tiles apart per channel) are accessed coalesced, with 36 independent accesses per
 * work-item (48 to 56 registers in f32, up to 100 in f64); whole cache lines of the image are used, via the L1 cache.
 * Tiles are divided into shares, whose products are summed separately in backward-weights.
 *
 * All kernels are bound by memory: a work-item that transforms a window moves 208 bytes (16 pixels of x, 36 values) in
 * about 480 instructions, while a device with 60 TFLOP/s and 4.8 TB/s has time for 1300; winograd_gpu_output likewise.
 * Functions are always_inline, because a call would copy the kernel's struct to memory.
 *
 * Compiled in: T, WR; XN and XPHASE: columns of x are read in vectors of XN that start at columns of the window which
 * are -XPHASE modulo XN; YN: columns of y alike. */
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

static inline __attribute__((always_inline)) void
winograd_find(winograd_place *place, const kn_winograd_image *s, uint tile, uint channel)
{
    const uint line = kn_quotient(tile, s->columns), image = kn_quotient(line, s->rows);
    place->plane = ((long)image * s->channels + channel) * s->plane;
    place->row = s->top + (int)kn_remainder(line, image, s->rows) * WM;
    place->column = s->left + (int)kn_remainder(tile, line, s->columns) * WM;
}

/* The offset of the WP values of a tile and channel, `channels * share` apart. */
static inline __attribute__((always_inline)) long winograd_start(const kn_winograd_image *s, uint tile, uint channel)
{
    const uint share = kn_quotient(tile, s->share);
    return ((long)share * WP * s->channels + channel) * s->share.divisor + kn_remainder(tile, share, s->share);
}

/* A row of the window: to[j] = x[column + j], zeros outside the image. A vector is either entirely inside or entirely
 * outside: it starts at a multiple of its width, and so does a row's end. */
static inline __attribute__((always_inline)) void
winograd_load_row(T *to, const global T *x, int column, int width, bool inside)
{
#pragma unroll
    for (int j = 0; j < 6; j++) {
        const int within = (j + XPHASE) % XN, start = j - within; /* start of the vector that holds column j */
        if (XN == 1 || start < 0 || start + XN > 6) {
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

/* --- before the products ------------------------------------------------------------------------------------------ */

/* v = B^T x B for a window of x. */
static inline __attribute__((always_inline)) void
winograd_transform_window(global T *v, const global T *x, const kn_winograd_image *s, uint tile, uint channel)
{
    winograd_place place;
    winograd_find(&place, s, tile, channel);
    T window[WP], half_done[WP];
    x += place.plane;
#pragma unroll
    for (int i = 0; i < 6; i++)
        winograd_load_row(window + i * 6, x + (long)(place.row + i) * s->width, place.column, s->width,
                          tile < s->tiles && (uint)(place.row + i) < (uint)s->height);
#pragma unroll
    for (int j = 0; j < 6; j++)
        winograd_input_line(half_done + j, 6, window + j, 6);
    const long step = (long)s->channels * s->share.divisor;
    v += winograd_start(s, tile, channel);
#pragma unroll
    for (int i = 0; i < 6; i++) {
        T line[6];
        winograd_input_line(line, 1, half_done + i * 6, 1);
#pragma unroll
        for (int j = 0; j < 6; j++)
            v[(i * 6 + j) * step] = line[j];
    }
}

/* d = A dy A^T for a tile of dy. */
static inline __attribute__((always_inline)) void
winograd_transform_tile(global T *d, const global T *dy, const kn_winograd_image *s, uint tile, uint channel)
{
    winograd_place place;
    winograd_find(&place, s, tile, channel);
    T pixels[WM * WM], half_done[6 * WM];
    dy += place.plane + (long)place.row * s->width + place.column;
#pragma unroll
    for (int i = 0; i < WM; i++, dy += s->width)
#pragma unroll
        for (int j = 0; j < WM; j += YN) {
            const bool inside = tile < s->tiles && place.row + i < s->height && place.column + j < s->width;
#if YN > 1
            VECTOR_JOIN(vstore, YN)(inside ? *(const global YVECTOR *)(dy + j) : (YVECTOR)0, 0, pixels + i * WM + j);
#else
            pixels[i * WM + j] = inside ? dy[j] : (T)0;
#endif
        }
#pragma unroll
    for (int j = 0; j < WM; j++)
        winograd_gradient_line(half_done + j, WM, pixels + j, WM);
    const long step = (long)s->channels * s->share.divisor;
    d += winograd_start(s, tile, channel);
#pragma unroll
    for (int i = 0; i < 6; i++) {
        T line[6];
        winograd_gradient_line(line, 1, half_done + i * WM, 1);
#pragma unroll
        for (int j = 0; j < 6; j++)
            d[(i * 6 + j) * step] = line[j];
    }
}

/* u[p][i] = (G w G^T)[p] for pair i of an output and an input channel. flipped: reads the kernel from its end. */
static inline __attribute__((always_inline)) void
winograd_transform_weights(global T *u, const global T *w, long pairs, long i, int flipped)
{
    T taps[WR * WR], half_done[6 * WR];
    w += i * (WR * WR) + (flipped ? WR * WR - 1 : 0);
    const int next = flipped ? -1 : 1;
#pragma unroll
    for (int r = 0; r < WR * WR; r++)
        taps[r] = w[r * next];
#pragma unroll
    for (int j = 0; j < WR; j++)
        winograd_weight_line(half_done + j, WR, taps + j, WR);
    u += i;
#pragma unroll
    for (int j = 0; j < 6; j++) {
        T line[6];
        winograd_weight_line(line, 1, half_done + j * WR, 1);
#pragma unroll
        for (int k = 0; k < 6; k++)
            u[(j * 6 + k) * pairs] = line[k];
    }
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
    T products[WP], half_done[WM * 6];
    m += winograd_start(&s, tile, channel);
#pragma unroll
    for (int i = 0; i < WP; i++)
        products[i] = m[i * step];
#pragma unroll
    for (int j = 0; j < 6; j++)
        winograd_output_line(half_done + j, 6, products + j, 6);
    y += place.plane + (long)place.row * s.width + place.column;
#pragma unroll
    for (int i = 0; i < WM; i++, y += s.width) {
        T line[WM];
        winograd_output_line(line, 1, half_done + i * 6, 1);
#pragma unroll
        for (int j = 0; j < WM; j++)
            line[j] = KN_CLAMP(line[j] + added, low, high);
#pragma unroll
        for (int j = 0; j < WM; j += YN)
            if (place.row + i < s.height && place.column + j < s.width)
#if YN > 1
                *(global YVECTOR *)(y + j) = VECTOR_JOIN(vload, YN)(0, line + j);
#else
                y[j] = line[j];
#endif
    }
}

/* dw of pair i = G^T (the sum, in order, of the shares' m[share][p][i]) G. */
kernel void winograd_gpu_finish(KN_IN(m), KN_OUT(dw), long pairs, int shares)
{
    const long i = get_global_id(0);
    if (i >= pairs)
        return;
    KN_BIND_IN(T, m);
    KN_BIND_OUT(T, dw);
    T sum[WP], half_done[WR * 6];
    m += i;
#pragma unroll
    for (int p = 0; p < WP; p++)
        sum[p] = m[p * pairs];
    for (int share = 1; share < shares; share++) {
        m += WP * pairs;
#pragma unroll
        for (int p = 0; p < WP; p++)
            sum[p] += m[p * pairs];
    }
#pragma unroll
    for (int j = 0; j < 6; j++)
        winograd_weight_gradient_line(half_done + j, 6, sum + j, 6);
    dw += i * (WR * WR);
#pragma unroll
    for (int r = 0; r < WR; r++) {
        T line[WR];
        winograd_weight_gradient_line(line, 1, half_done + r * 6, 1);
#pragma unroll
        for (int t = 0; t < WR; t++)
            dw[r * WR + t] = line[t];
    }
}
