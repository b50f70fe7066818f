/* conv/cpu/rows.cl - convolution on CPU devices for few channels: vectors along the rows of the image.
 *
 * The same correlation as conv/cpu/direct.cl, for problems on which vectors along the output channels are inefficient:
 * fewer output channels than a vector has elements (backward-data of a first layer, depthwise convolution), or so few
 * taps that storing the transposed tile costs more than summing it (a first layer). A tile is KX channels by RX rows by
 * VX vectors of adjacent pixels; x is loaded in unaligned vectors, weights are broadcast. If a row is not a multiple of
 * the vector length, the last vector overlaps the one before: the same sums are stored twice. Hence a row must be at
 * least one vector wide, and adjacent pixels must start at adjacent elements of x (g.x_column is 1).
 *
 * Weights are packed as [groups][blocks of KX channels][taps][KX] (conv_prepare).
 *
 * Compiled in: T, VW, KX, RX, VX. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "conv/common/correlation.h"
#include "gemm/pack.clh"

static inline void store_pixels(global T *to, V value, long step)
{
    if (step == 1) {
        VSTORE(value, 0, to);
        return;
    }
    T part[VW];
    VSTORE(value, 0, part);
    for (int i = 0; i < VW; i++)
        to[i * step] = part[i];
}

/* Counts up a number whose digits have the given base: is there a carry? */
static inline bool next_digit(long *digit, long base)
{
    *digit = *digit + 1 < base ? *digit + 1 : 0;
    return *digit == 0;
}

/* dim 0: g.tiles_per_item tiles each; tiles are numbered column strip fastest, then rows, block, group, image. Their
 * numbers are counted, since dividing takes longer than the sums of few taps. */
KN_KERNEL_ONCE(conv_rows,
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
    const long blocks = (g.outer + KX - 1) / KX;
    const long strips = (g.columns + VX * VW - 1) / (VX * VW), row_tiles = (g.rows + RX - 1) / RX;
    const long tiles = strips * row_tiles * blocks * g.groups * g.images;
    const long first = KN_ID(0) * g.tiles_per_item, last = min(tiles, first + g.tiles_per_item);
    long strip = first % strips, row_tile = first / strips % row_tiles, block = first / strips / row_tiles % blocks,
         group = first / strips / row_tiles / blocks % g.groups, image = first / strips / row_tiles / blocks / g.groups;

    for (long id = first; id < last; id++) {
        const long panel = group * blocks + block;
        const long first_channel = group * g.outer + block * KX;
        const int channels = (int)min((long)KX, g.outer - block * KX);
        const global T *weight = packed + panel * g.taps * KX;
        const global T *from[RX][VX];
        V sum[KX][RX][VX];
#pragma unroll
        for (int i = 0; i < RX; i++)
#pragma unroll
            for (int v = 0; v < VX; v++) {
                const long row = min(row_tile * RX + i, g.rows - 1),
                           column = min(strip * VX * VW + v * VW, g.columns - VW);
                from[i][v] = x + image * g.x_image + group * g.x_group + row * g.x_row + column;
            }
#pragma unroll
        for (int k = 0; k < KX; k++) {
            const V value = (V)(has_bias && k < channels ? bias[first_channel + k] : (T)0);
#pragma unroll
            for (int i = 0; i < RX; i++)
#pragma unroll
                for (int v = 0; v < VX; v++)
                    sum[k][i][v] = value;
        }
        for (long t = 0; t < g.taps; t++) {
            const long offset = table[t];
            V value[RX][VX];
#pragma unroll
            for (int i = 0; i < RX; i++)
#pragma unroll
                for (int v = 0; v < VX; v++)
                    value[i][v] = VLOAD(0, from[i][v] + offset);
#pragma unroll
            for (int k = 0; k < KX; k++) {
                const V w = (V)weight[t * KX + k];
#pragma unroll
                for (int i = 0; i < RX; i++)
#pragma unroll
                    for (int v = 0; v < VX; v++)
                        sum[k][i][v] = fma(w, value[i][v], sum[k][i][v]);
            }
        }
#pragma unroll
        for (int k = 0; k < KX; k++)
            if (k < channels) {
#pragma unroll
                for (int i = 0; i < RX; i++)
#pragma unroll
                    for (int v = 0; v < VX; v++) {
                        const long row = min(row_tile * RX + i, g.rows - 1),
                                   column = min(strip * VX * VW + v * VW, g.columns - VW);
                        store_pixels(y + image * g.y_image + (first_channel + k) * g.y_channel + row * g.y_row +
                                         column * g.y_column,
                                     KN_CLAMP(sum[k][i][v], (V)low, (V)high), g.y_column);
                    }
            }
        if (next_digit(&strip, strips) && next_digit(&row_tile, row_tiles) && next_digit(&block, blocks) &&
            next_digit(&group, g.groups))
            image++;
    }
}
