/* conv/any/reference.cl - convolution on any device, forward and backward, one sum per element of the result.
 *
 * Compiled in: T, VOLUME. */
#include "common/koine.clh"
#include "conv/common/shape.clh"

/* Adds the product of every element (i, j) of `by`, [rows][columns], and the pixel of x's plane in row
 * `row` + i row_step and column `column` + j column_step, if there is one. */
KN_INLINE T add_products(T sum, const global T *x, const kn_conv_shape *s, long row, long row_step, long column,
                         long column_step, const global T *by, long rows, long columns)
{
    for (long i = 0; i < rows; i++, row += row_step)
        if (is_within(row, s->in_size[1]))
            for (long j = 0; j < columns; j++) {
                const long at = column + j * column_step;
                if (is_within(at, s->in_size[2]))
                    sum = fma(x[row * s->in_size[2] + at], by[i * columns + j], sum);
            }
    return sum;
}

kernel void conv_reference_forward(KN_IN(x), KN_IN(w), KN_IN(bias), KN_OUT(y), kn_conv_shape s, int has_bias,
                                   T low, T high)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, w);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    const long inner = s.in_channels / s.groups, outer = s.out_channels / s.groups;
    const long plane = s.in_size[1] * s.in_size[2], kernel_plane = s.kernel_size[1] * s.kernel_size[2];
    KN_FOR (i, s.images * s.out_channels * DEPTH(s.out_size[0]) * s.out_size[1] * s.out_size[2]) {
        const long q = i % s.out_size[2], p = i / s.out_size[2] % s.out_size[1];
        const long o = SLICE(i / s.out_size[2] / s.out_size[1] % s.out_size[0]);
        const long line = i / s.out_size[2] / s.out_size[1] / DEPTH(s.out_size[0]);
        const long k = line % s.out_channels, n = line / s.out_channels;
        T sum = has_bias ? bias[k] : (T)0;
        for (long c = 0; c < inner; c++)
            for (long u = 0; u < DEPTH(s.kernel_size[0]); u++) {
                const long slice = SLICE(find_read(&s, 0, o, u));
                if (!is_within(slice, DEPTH(s.in_size[0])))
                    continue;
                const long channel = n * s.in_channels + k / outer * inner + c;
                const global T *from = x + (channel * DEPTH(s.in_size[0]) + slice) * plane;
                const global T *taps = w + ((k * inner + c) * DEPTH(s.kernel_size[0]) + u) * kernel_plane;
                sum = add_products(sum, from, &s, p * s.stride[1] - s.padding[1], s.dilation[1],
                                   q * s.stride[2] - s.padding[2], s.dilation[2], taps, s.kernel_size[1],
                                   s.kernel_size[2]);
            }
        y[i] = KN_CLAMP(sum, low, high);
    }
}

/* dx gathers from all dy that it contributed to. */
kernel void conv_reference_data(KN_IN(dy), KN_IN(w), KN_OUT(dx), kn_conv_shape s)
{
    KN_BIND_IN(T, dy);
    KN_BIND_IN(T, w);
    KN_BIND_OUT(T, dx);
    const long inner = s.in_channels / s.groups, outer = s.out_channels / s.groups;
    const long taps = DEPTH(s.kernel_size[0]) * s.kernel_size[1] * s.kernel_size[2];
    const long pixels = DEPTH(s.out_size[0]) * s.out_size[1] * s.out_size[2];
    KN_FOR (i, s.images * s.in_channels * DEPTH(s.in_size[0]) * s.in_size[1] * s.in_size[2]) {
        const long column = i % s.in_size[2], row = i / s.in_size[2] % s.in_size[1];
        const long slice = SLICE(i / s.in_size[2] / s.in_size[1] % s.in_size[0]);
        const long line = i / s.in_size[2] / s.in_size[1] / DEPTH(s.in_size[0]);
        const long channel = line % s.in_channels, n = line / s.in_channels;
        const long first = channel / inner * outer, c = channel % inner;
        T sum = 0;
        for (long tap = 0; tap < taps; tap++) {
            const long t = tap % s.kernel_size[2], r = tap / s.kernel_size[2] % s.kernel_size[1];
            const long u = SLICE(tap / s.kernel_size[2] / s.kernel_size[1]);
            const long o = SLICE(find_reader(&s, 0, slice, u));
            const long p = find_reader(&s, 1, row, r);
            const long q = find_reader(&s, 2, column, t);
            if (o < 0 || p < 0 || q < 0)
                continue;
            const global T *g = dy + (n * s.out_channels + first) * pixels;
            g += (o * s.out_size[1] + p) * s.out_size[2] + q;
            const global T *factor = w + (first * inner + c) * taps + tap;
            for (long k = 0; k < outer; k++, g += pixels, factor += inner * taps)
                sum = fma(*g, *factor, sum);
        }
        dx[i] = sum;
    }
}

kernel void conv_reference_weights(KN_IN(x), KN_IN(dy), KN_OUT(dw), kn_conv_shape s)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, dy);
    KN_BIND_OUT(T, dw);
    const long inner = s.in_channels / s.groups, outer = s.out_channels / s.groups;
    const long plane = s.in_size[1] * s.in_size[2], out_plane = s.out_size[1] * s.out_size[2];
    KN_FOR (i, s.out_channels * inner * DEPTH(s.kernel_size[0]) * s.kernel_size[1] * s.kernel_size[2]) {
        const long t = i % s.kernel_size[2], r = i / s.kernel_size[2] % s.kernel_size[1];
        const long u = SLICE(i / s.kernel_size[2] / s.kernel_size[1] % s.kernel_size[0]);
        const long line = i / s.kernel_size[2] / s.kernel_size[1] / DEPTH(s.kernel_size[0]);
        const long c = line % inner, k = line / inner;
        T total = 0;
        for (long n = 0; n < s.images; n++) {
            /* per image: the rounding error grows with the image size plus the number of images, not with their
             * product */
            T sum = 0;
            for (long o = 0; o < DEPTH(s.out_size[0]); o++) {
                const long slice = SLICE(find_read(&s, 0, o, u));
                if (!is_within(slice, DEPTH(s.in_size[0])))
                    continue;
                const long channel = n * s.in_channels + k / outer * inner + c;
                const global T *from = x + (channel * DEPTH(s.in_size[0]) + slice) * plane;
                const global T *g = dy + ((n * s.out_channels + k) * DEPTH(s.out_size[0]) + o) * out_plane;
                sum = add_products(sum, from, &s, r * s.dilation[1] - s.padding[1], s.stride[1],
                                   t * s.dilation[2] - s.padding[2], s.stride[2], g, s.out_size[1], s.out_size[2]);
            }
            total += sum;
        }
        dw[i] = total;
    }
}
