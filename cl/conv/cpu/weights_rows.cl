/* conv/cpu/weights_rows.cl - the gradient of a convolution's weights (and bias) on CPU devices for few channels:
 * vectors along the rows of the image.
 *
 * The sums of conv/cpu/weights.cl, for problems on which packing dy costs more than summing: few taps, or few output
 * channels per group. A work-item keeps KX channels by TAPS taps of accumulators, each a vector over adjacent pixels;
 * dy is read in place, once, and the bias gradient is computed in the same pass. If a row is not a multiple of the
 * vector length, the last vector starts earlier, with the overlap masked in dy and in x: 0 times infinity would be NaN.
 * Hence a row must be at least one vector wide, and adjacent pixels must start at adjacent elements of x.
 *
 * Compiled in: T, VW, KX, TAPS. Local size 1, no local memory, no barrier. */
#include "common/koine.clh"
#include "conv/common/padding.clh"
#include "gemm/pack.clh"

KN_KERNEL_ONCE(conv_pad,
               (KN_ARG(x), KN_ARG(padded), p),
               KN_IN(x), KN_OUT(padded), kn_conv_padding p)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, padded);
    if (KN_ID(0) < (ulong)pad_items(p))
        pad_planes(padded, x, p, KN_ID(0));
}

/* A mask is all ones or all zeros, as wide as T. */
#ifdef KN_USE_F64
#define MASK long
#else
#define MASK int
#endif
#define MASKS KN_JOIN(MASK, VW)

/* Adds VW adjacent pixels to the sums: dy from `gradient` on, x from `from` + offset[tap] on. `masked` is a constant
 * after inlining, so that only the last vector of a row pays for the mask; a real call would keep the sums in
 * memory. */
KN_INLINE void add_pixels(V sum[KX][TAPS], V bias[KX], const global T *restrict gradient, long pixels, int channels,
                          const global T *restrict from, const long offset[TAPS], const bool masked, const MASKS keep)
{
    V d[KX];
#pragma unroll
    for (int k = 0; k < KX; k++) {
        d[k] = VLOAD(0, gradient + min(k, channels - 1) * pixels);
        d[k] = masked ? select((V)0, d[k], keep) : d[k];
        bias[k] += d[k];
    }
#pragma unroll
    for (int i = 0; i < TAPS; i++) {
        V value = VLOAD(0, from + offset[i]);
        value = masked ? select((V)0, value, keep) : value;
#pragma unroll
        for (int k = 0; k < KX; k++)
            sum[k][i] = fma(value, d[k], sum[k][i]);
    }
}

/* dim 0: tile of taps, dim 1: group and block of KX channels, dim 2: share of the images. sums is [shares][groups *
 * outer][taps], bias_part [shares][groups * outer]. */
KN_KERNEL_ONCE(conv_weights_rows,
               (KN_ARG(x), KN_ARG(dy), KN_ARG(sums), KN_ARG(bias_part), layout, list, images_per_share),
               KN_IN(x), KN_IN(dy), KN_OUT(sums), KN_OUT(bias_part), kn_conv_gradient_layout layout,
               kn_conv_tap_list list, long images_per_share)
{
    const kn_conv_gradient_layout g = layout;
    const kn_conv_tap_list t = list;
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, dy);
    KN_BIND_OUT(T, sums);
    KN_BIND_OUT(T, bias_part);
    const long blocks = (g.outer + KX - 1) / KX, pixels = g.rows * g.columns;
    const long block = KN_ID(1) % blocks, group = KN_ID(1) / blocks,
               first_tap = KN_ID(0) * TAPS;
    const long first_channel = group * g.outer + block * KX;
    const int channels = (int)min((long)KX, g.outer - block * KX), taps = (int)min((long)TAPS, g.taps - first_tap);
    const long last_image = min(g.images, (long)(KN_ID(2) + 1) * images_per_share);

    long offset[TAPS];
    V sum[KX][TAPS], bias[KX];
#pragma unroll
    for (int i = 0; i < TAPS; i++) {
        const long tap = min(first_tap + i, g.taps - 1); /* taps past the last repeat it and are not stored */
        const long v = tap % t.columns, u = tap / t.columns % t.rows, inner = tap / t.columns / t.rows;
        offset[i] = group * g.x_group + inner * t.plane + u * t.row_distance * t.pitch + v * t.column_distance;
#pragma unroll
        for (int k = 0; k < KX; k++)
            sum[k][i] = (V)0;
    }
#pragma unroll
    for (int k = 0; k < KX; k++)
        bias[k] = (V)0;
    MASK lanes[VW]; /* masks the overlap of the last vector with the one before */
    const int overlap = (int)((g.columns + VW - 1) / VW * VW - g.columns);
    for (int i = 0; i < VW; i++)
        lanes[i] = i < overlap ? 0 : -1;
    const MASKS keep = VLOAD(0, lanes);

    const long whole = g.columns / VW * VW;
    for (long image = KN_ID(2) * images_per_share; image < last_image; image++) {
        const global T *gradient = dy + (image * g.groups * g.outer + first_channel) * pixels;
        for (long row = 0; row < g.rows; row++) {
            const global T *from = x + image * g.x_image + row * g.x_row;
            for (long column = 0; column < whole; column += VW)
                add_pixels(sum, bias, gradient + row * g.columns + column, pixels, channels, from + column, offset,
                           false, keep);
            if (overlap > 0)
                add_pixels(sum, bias, gradient + (row + 1) * g.columns - VW, pixels, channels, from + g.columns - VW,
                           offset, true, keep);
        }
    }
    const long share = KN_ID(2) * g.groups * g.outer + first_channel;
#pragma unroll
    for (int k = 0; k < KX; k++) {
        if (k < channels && first_tap == 0)
            bias_part[share + k] = sum_lanes(bias[k]);
#pragma unroll
        for (int i = 0; i < TAPS; i++)
            if (k < channels && i < taps)
                sums[(share + k) * g.taps + first_tap + i] = sum_lanes(sum[k][i]);
    }
}
