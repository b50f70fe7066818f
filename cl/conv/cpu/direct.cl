/* conv/cpu/direct.cl - direct convolution on CPU devices from NCHW: no im2col, no blocked layout.
 *
 * Forward and backward-data are both correlations of an image with a list of taps:
 *
 *     y[n, k, pixel] = bias[k] + sum over t of x[n, start(pixel) + tap[t]] * w[k, t],    clamped to [low, high]
 *
 * A tap is one (channel, row, column) of the kernel, and tap[t] the offset in elements from a pixel's start to the
 * element that the tap reads. Taps encode channels, kernel size and dilation, and start(pixel) the stride, so there is
 * a single flat loop over taps. A work-item sums tiles of PX pixels by KB = KV * VW output channels: accumulators are
 * vectors along the channels, each value of x is a scalar broadcast from any address, so that partial rows cost
 * nothing. PX * KV + KV + 1 vectors must fit in registers.
 *
 * x is zero-padded beforehand (conv_prepare), so that the loop has no branches.
 *
 * Compiled in: T, VW, KV, PX. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "conv/common/correlation.h"
#include "common/prefetch.clh"
#include "gemm/pack.clh"

#define KB (KV * VW)
#define AHEAD 18 /* taps: the next rows of an image are planes away, where the hardware does not foresee them */

/* A pixel's input and output offsets, advanced from pixel to pixel: divisions took 2 % of a first layer's time. */
typedef struct conv_place {
    long column, row;
    const global T *x;
    global T *y;
} conv_place;
static inline conv_place place_of(const global T *x, global T *y, const kn_conv_grid *g, long pixel)
{
    const long column = pixel % g->columns, row = pixel / g->columns % g->rows, image = pixel / g->columns / g->rows;
    return (conv_place){column, row, x + image * g->x_image + row * g->x_row + column * g->x_column,
                        y + image * g->y_image + row * g->y_row + column * g->y_column};
}
static inline void step_place(conv_place *p, const kn_conv_grid *g)
{
    p->column++;
    p->x += g->x_column;
    p->y += g->y_column;
    if (p->column < g->columns)
        return;
    p->column = 0;
    p->row++;
    p->x += g->x_row - g->columns * g->x_column;
    p->y += g->y_row - g->columns * g->y_column;
    if (p->row < g->rows)
        return;
    p->row = 0;
    p->x += g->x_image - g->rows * g->x_row;
    p->y += g->y_image - g->rows * g->y_row;
}

KN_KERNEL_ONCE(conv_direct,
               (KN_ARG(x), KN_ARG(packed), KN_ARG(table), KN_ARG(bias), KN_ARG(y), grid, has_bias, low, high),
               KN_IN(x), KN_IN(packed), KN_IN(table), KN_IN(bias), KN_OUT(y), kn_conv_grid grid, int has_bias, T low,
               T high)
{
    const kn_conv_grid g = grid;
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, packed);
    KN_BIND_IN(int, table);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    const long blocks = (g.outer + KB - 1) / KB;
    const long block = KN_ID(1) % blocks, group = KN_ID(1) / blocks;
    const int channels = (int)min((long)KB, g.outer - block * KB);
    const long first_channel = group * g.outer + block * KB;
    const long pixels = g.images * g.rows * g.columns;
    const long first = KN_ID(0) * g.tiles_per_item * PX, last = min(pixels, first + g.tiles_per_item * PX);
    x += group * g.x_group;
    y += first_channel * g.y_channel;
    packed += KN_ID(1) * g.taps * KB;

    T start_value[KB];
    for (int k = 0; k < KB; k++)
        start_value[k] = has_bias && k < channels ? bias[first_channel + k] : (T)0;

    conv_place place = place_of(x, y, &g, first);
    for (long pixel = first; pixel < last; pixel += PX) {
        const global T *from[PX];
        global T *to[PX];
        V sum[PX][KV];
#pragma unroll
        for (int i = 0; i < PX; i++) { /* pixels past the end repeat the last one, and store it again */
            from[i] = place.x;
            to[i] = place.y;
            if (pixel + i + 1 < last)
                step_place(&place, &g);
#pragma unroll
            for (int v = 0; v < KV; v++)
                sum[i][v] = VLOAD(v, start_value);
        }
        const global T *weight = packed;
        for (long t = 0; t < g.taps; t++) {
            const long offset = table[t], ahead = table[min(t + AHEAD, g.taps - 1)];
            PREFETCH(from[0] + ahead);
            PREFETCH(from[PX - 1] + ahead);
            V w[KV];
#pragma unroll
            for (int v = 0; v < KV; v++)
                w[v] = VLOAD(v, weight);
            weight += KB;
#pragma unroll
            for (int i = 0; i < PX; i++) {
                const V value = (V)from[i][offset];
#pragma unroll
                for (int v = 0; v < KV; v++)
                    sum[i][v] = fma(value, w[v], sum[i][v]);
            }
        }
        T result[PX][KB];
#pragma unroll
        for (int i = 0; i < PX; i++)
#pragma unroll
            for (int v = 0; v < KV; v++)
                VSTORE(KN_CLAMP(sum[i][v], (V)low, (V)high), v, result[i]);
        for (int k = 0; k < channels; k++)
#pragma unroll
            for (int i = 0; i < PX; i++)
                to[i][k * g.y_channel] = result[i][k];
    }
}
