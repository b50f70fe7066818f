/* conv/gpu/depthwise_any.cl - depthwise convolution on GPUs, forward and backward-data, for kernels of any size, stride
 * and dilation.
 *
 * A work-item computes ROWS rows of a column (one for dx), tap by tap; repeated reads by neighbours hit the L1 cache.
 *
 * Compiled in: T, C = 1, ROWS. */
#include "conv/gpu/depthwise.clh"

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
    const int down = (int)s.stride_height.divisor, first = at.block * ROWS, row = first * down - s.top;
    const int column = at.strip * (int)s.stride_width.divisor - s.left;
    const T start = has_bias ? bias[channel] : (T)0;
    T sum[ROWS];
    x += (long)kn_quotient(at.plane, s.multiplier) * (s.height * s.width);
    w += (long)channel * (s.kernel_height * s.kernel_width);
#pragma unroll
    for (int p = 0; p < ROWS; p++)
        sum[p] = start;
    for (int u = 0; u < s.kernel_height; u++)
        for (int v = 0; v < s.kernel_width; v++, w++) {
            const int right = column + v * s.dilation_width;
            const T weight = *w;
            if (is_within(right, s.width))
#pragma unroll
                for (int p = 0; p < ROWS; p++) {
                    const int line = row + p * down + u * s.dilation_height;
                    if (is_within(line, s.height))
                        sum[p] = fma(x[line * s.width + right], weight, sum[p]);
                }
        }
    y += (long)at.plane * (s.out_height * s.out_width) + (first * s.out_width + at.strip);
#pragma unroll
    for (int p = 0; p < ROWS; p++)
        if (first + p < s.out_height)
            y[p * s.out_width] = KN_CLAMP(sum[p], low, high);
}

/* dx at `down` reads dy at p with p * stride = down + top - u * dilation, if it exists. */
static inline int find_source(int at, int n, kn_divisor stride)
{
    const int p = (int)kn_quotient((uint)max(at, 0), stride);
    return at >= 0 && p * (int)stride.divisor == at && p < n ? p : -1;
}

kernel void conv_depthwise_data(KN_IN(dy), KN_IN(w), KN_OUT(dx), kn_depthwise_shape s)
{
    KN_BIND_IN(T, dy);
    KN_BIND_IN(T, w);
    KN_BIND_OUT(T, dx);
    if (get_global_id(0) >= s.items)
        return;
    const depthwise_place at = find_place((uint)get_global_id(0), &s);
    const int channel = (int)kn_remainder(at.plane, kn_quotient(at.plane, s.channels), s.channels);
    const int taps = s.kernel_height * s.kernel_width, pixels = s.out_height * s.out_width,
              multiplier = (int)s.multiplier.divisor;
    T sum = 0;
    dy += (long)at.plane * multiplier * pixels;
    w += (long)channel * multiplier * taps;
    for (int u = 0; u < s.kernel_height; u++) {
        const int p = find_source(at.block + s.top - u * s.dilation_height, s.out_height, s.stride_height);
        if (p < 0)
            continue;
        for (int v = 0; v < s.kernel_width; v++) {
            const int q = find_source(at.strip + s.left - v * s.dilation_width, s.out_width, s.stride_width);
            if (q >= 0)
                for (int m = 0; m < multiplier; m++)
                    sum = fma(dy[(long)m * pixels + (p * s.out_width + q)], w[m * taps + u * s.kernel_width + v], sum);
        }
    }
    dx[(long)at.plane * (s.height * s.width) + (at.block * s.width + at.strip)] = sum;
}
