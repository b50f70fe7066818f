/* conv/gpu/depthwise.cl - depthwise convolution on GPUs, forward and backward-data, for square kernels of compile-time
 * size, without dilation.
 *
 * A work-item computes C columns of ROWS rows (of dx, STRIDE times as many in each direction) with the kernel's weights
 * in registers, and moves down the input lines, each of which is read into registers once for all results that use it.
 * Horizontal neighbours share the edges of their lines, vertical ones KERNEL - STRIDE lines: those reads hit the L1
 * cache.
 *
 * Compiled in: T, C, KERNEL, STRIDE (1 or 2), LEFT: the padding, less than KERNEL; ROWS. */
#include "conv/gpu/depthwise.clh"

#define TAPS (KERNEL * KERNEL)

/* Forward: result (p, c) reads line p * STRIDE + u, column c * STRIDE + v for tap (u, v). */
#define LINES ((ROWS - 1) * STRIDE + KERNEL)
#define LINE ((C - 1) * STRIDE + KERNEL)

kernel void conv_depthwise(KN_IN(x), KN_IN(w), KN_IN(bias), KN_OUT(y), kn_depthwise_shape s, int has_bias, T low,
                           T high)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, w);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    if (get_global_id(0) >= s.items)
        return;
    const depthwise_place at = find_place((uint)get_global_id(0), &s);
    const int channel = (int)kn_remainder(at.plane, kn_quotient(at.plane, s.channels), s.channels);
    const int first = at.block * ROWS, row = first * STRIDE - s.top, column = at.strip * (C * STRIDE) - IN_FRONT(LEFT);
    const global T *from =
        x + (long)kn_quotient(at.plane, s.multiplier) * (s.height * s.width) + (row * s.width + column);
    T weight[TAPS], sum[ROWS][C];
    w += channel * TAPS;
#pragma unroll
    for (int t = 0; t < TAPS; t++)
        weight[t] = w[t];
    const T start = has_bias ? bias[channel] : (T)0;
#pragma unroll
    for (int p = 0; p < ROWS; p++)
#pragma unroll
        for (int c = 0; c < C; c++)
            sum[p][c] = start;
#pragma unroll
    for (int i = 0; i < LINES; i++, from += s.width) {
        T line[VECTORS(LEFT, LINE) * C];
        LOAD_LINE(line, from, column, is_within(row + i, s.height), s.width, LEFT, LINE);
#pragma unroll
        for (int u = i % STRIDE; u < KERNEL; u += STRIDE)
            if (i >= u && i - u < ROWS * STRIDE)
#pragma unroll
                for (int v = 0; v < KERNEL; v++)
#pragma unroll
                    for (int c = 0; c < C; c++)
                        sum[(i - u) / STRIDE][c] =
                            fma(line[FIRST(LEFT) + c * STRIDE + v], weight[u * KERNEL + v], sum[(i - u) / STRIDE][c]);
    }
    y += (long)at.plane * (s.out_height * s.out_width) + (first * s.out_width + at.strip * C);
#pragma unroll
    for (int p = 0; p < ROWS; p++, y += s.out_width) {
#pragma unroll
        for (int c = 0; c < C; c++)
            sum[p][c] = KN_CLAMP(sum[p][c], low, high);
        if (first + p < s.out_height)
            *(global V *)y = MERGE(sum[p]);
    }
}

/* Backward-data: dx at STRIDE * (c + SHIFT) + PHASE + e - LEFT, 0 <= e < STRIDE, reads dy at c + SHIFT + d for tap
 * PHASE + e - STRIDE * d. */
#define PHASE (LEFT % STRIDE)
#define SHIFT (LEFT / STRIDE)
#define D_LOW (-((KERNEL - 1 - PHASE) / STRIDE))
#define D_HIGH ((PHASE + STRIDE - 1) / STRIDE)
#define D_LEFT (-(SHIFT + D_LOW)) /* columns before the block */
#define D_LINES (ROWS + D_HIGH - D_LOW)
#define D_LINE (C + D_HIGH - D_LOW)

kernel void conv_depthwise_data(KN_IN(dy), KN_IN(w), KN_OUT(dx), kn_depthwise_shape s)
{
    KN_BIND_IN(T, dy);
    KN_BIND_IN(T, w);
    KN_BIND_OUT(T, dx);
    if (get_global_id(0) >= s.items)
        return;
    const depthwise_place at = find_place((uint)get_global_id(0), &s);
    const int channel = (int)kn_remainder(at.plane, kn_quotient(at.plane, s.channels), s.channels);
    const int row = at.block * ROWS - D_LEFT, column = at.strip * C - IN_FRONT(D_LEFT),
              multiplier = (int)s.multiplier.divisor;
    const int pixels = s.out_height * s.out_width;
    dy += (long)at.plane * multiplier * pixels + (row * s.out_width + column);
    w += (long)channel * multiplier * TAPS;
    T sum[ROWS * STRIDE][C * STRIDE];
#pragma unroll
    for (int p = 0; p < ROWS * STRIDE; p++)
#pragma unroll
        for (int c = 0; c < C * STRIDE; c++)
            sum[p][c] = 0;
    for (int m = 0; m < multiplier; m++, dy += pixels, w += TAPS) {
        const global T *from = dy;
        T weight[TAPS];
#pragma unroll
        for (int t = 0; t < TAPS; t++)
            weight[t] = w[t];
#pragma unroll
        for (int i = 0; i < D_LINES; i++, from += s.out_width) {
            T line[VECTORS(D_LEFT, D_LINE) * C];
            LOAD_LINE(line, from, column, is_within(row + i, s.out_height), s.out_width, D_LEFT, D_LINE);
#pragma unroll
            for (int p = 0; p < ROWS * STRIDE; p++) {
                const int u = PHASE + p % STRIDE - STRIDE * (i + D_LOW - p / STRIDE);
                if (u >= 0 && u < KERNEL)
#pragma unroll
                    for (int c = 0; c < C * STRIDE; c++)
#pragma unroll
                        for (int j = 0; j < D_LINE; j++) {
                            const int v = PHASE + c % STRIDE - STRIDE * (j + D_LOW - c / STRIDE);
                            if (v >= 0 && v < KERNEL)
                                sum[p][c] = fma(line[FIRST(D_LEFT) + j], weight[u * KERNEL + v], sum[p][c]);
                        }
            }
        }
    }
    const int first = at.block * (ROWS * STRIDE), start = at.strip * (C * STRIDE);
    dx += (long)at.plane * (s.height * s.width) + (first * s.width + start);
#pragma unroll
    for (int p = 0; p < ROWS * STRIDE; p++, dx += s.width)
#pragma unroll
        for (int c = 0; c < STRIDE; c++)
            if (first + p < s.height && start + c * C < s.width)
                ((global V *)dx)[c] = MERGE(sum[p] + c * C);
}
