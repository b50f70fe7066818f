/* conv/any/reference.cl - convolution on any device, forward and backward, one sum per element of the result.
 *
 * Compiled in: T, VOLUME. */
#include "common/koine.clh"
#include "conv/common/shape.clh"

/* Adds the product of every element (i, j) of `by`, [rows][columns], and the pixel of x's plane in row
 * `row` + i row_step and column `column` + j column_step, if there is one. */
static inline T add_products(T sum, const global T *x, const kn_conv_kernel_shape *s, long row, long row_step,
                             long column, long column_step, const global T *by, long rows, long columns)
{
    for (long i = 0; i < rows; i++, row += row_step)
        if (is_within(row, s->height))
            for (long j = 0; j < columns; j++) {
                const long at = column + j * column_step;
                if (is_within(at, s->width))
                    sum = fma(x[row * s->width + at], by[i * columns + j], sum);
            }
    return sum;
}

kernel void conv_reference_forward(KN_IN(x), KN_IN(w), KN_IN(bias), KN_OUT(y), kn_conv_kernel_shape s, int has_bias,
                                   T low, T high)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, w);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    const long inner = s.in_channels / s.groups, outer = s.out_channels / s.groups;
    const long plane = s.height * s.width, kernel_plane = s.kernel_height * s.kernel_width;
    KN_FOR (i, s.images * s.out_channels * DEPTH(s.out_depth) * s.out_height * s.out_width) {
        const long q = i % s.out_width, p = i / s.out_width % s.out_height;
        const long o = SLICE(i / s.out_width / s.out_height % s.out_depth);
        const long line = i / s.out_width / s.out_height / DEPTH(s.out_depth);
        const long k = line % s.out_channels, n = line / s.out_channels;
        T sum = has_bias ? bias[k] : (T)0;
        for (long c = 0; c < inner; c++)
            for (long u = 0; u < DEPTH(s.kernel_depth); u++) {
                const long slice = SLICE(o * s.stride_depth - s.front + u * s.dilation_depth);
                if (!is_within(slice, DEPTH(s.depth)))
                    continue;
                const long channel = n * s.in_channels + k / outer * inner + c;
                const global T *from = x + (channel * DEPTH(s.depth) + slice) * plane;
                const global T *taps = w + ((k * inner + c) * DEPTH(s.kernel_depth) + u) * kernel_plane;
                sum = add_products(sum, from, &s, p * s.stride_height - s.top, s.dilation_height,
                                   q * s.stride_width - s.left, s.dilation_width, taps, s.kernel_height,
                                   s.kernel_width);
            }
        y[i] = KN_CLAMP(sum, low, high);
    }
}

/* dx gathers from all dy that it contributed to. */
kernel void conv_reference_data(KN_IN(dy), KN_IN(w), KN_OUT(dx), kn_conv_kernel_shape s)
{
    KN_BIND_IN(T, dy);
    KN_BIND_IN(T, w);
    KN_BIND_OUT(T, dx);
    const long inner = s.in_channels / s.groups, outer = s.out_channels / s.groups;
    const long taps = DEPTH(s.kernel_depth) * s.kernel_height * s.kernel_width;
    const long pixels = DEPTH(s.out_depth) * s.out_height * s.out_width;
    KN_FOR (i, s.images * s.in_channels * DEPTH(s.depth) * s.height * s.width) {
        const long column = i % s.width, row = i / s.width % s.height;
        const long slice = SLICE(i / s.width / s.height % s.depth), line = i / s.width / s.height / DEPTH(s.depth);
        const long channel = line % s.in_channels, n = line / s.in_channels;
        const long first = channel / inner * outer, c = channel % inner;
        T sum = 0;
        for (long tap = 0; tap < taps; tap++) {
            const long t = tap % s.kernel_width, r = tap / s.kernel_width % s.kernel_height;
            const long u = SLICE(tap / s.kernel_width / s.kernel_height);
            const long o = SLICE(find_reader(slice, s.front, u, s.dilation_depth, s.stride_depth, s.out_depth));
            const long p = find_reader(row, s.top, r, s.dilation_height, s.stride_height, s.out_height);
            const long q = find_reader(column, s.left, t, s.dilation_width, s.stride_width, s.out_width);
            if (o < 0 || p < 0 || q < 0)
                continue;
            const long pixel = (o * s.out_height + p) * s.out_width + q;
            for (long k = first; k < first + outer; k++)
                sum = fma(dy[(n * s.out_channels + k) * pixels + pixel], w[(k * inner + c) * taps + tap], sum);
        }
        dx[i] = sum;
    }
}

kernel void conv_reference_weights(KN_IN(x), KN_IN(dy), KN_OUT(dw), kn_conv_kernel_shape s)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, dy);
    KN_BIND_OUT(T, dw);
    const long inner = s.in_channels / s.groups, outer = s.out_channels / s.groups;
    const long plane = s.height * s.width, out_plane = s.out_height * s.out_width;
    KN_FOR (i, s.out_channels * inner * DEPTH(s.kernel_depth) * s.kernel_height * s.kernel_width) {
        const long t = i % s.kernel_width, r = i / s.kernel_width % s.kernel_height;
        const long u = SLICE(i / s.kernel_width / s.kernel_height % s.kernel_depth);
        const long line = i / s.kernel_width / s.kernel_height / DEPTH(s.kernel_depth);
        const long c = line % inner, k = line / inner;
        T total = 0;
        for (long n = 0; n < s.images; n++) {
            /* per image: the rounding error grows with the image size plus the number of images, not with their
             * product */
            T sum = 0;
            for (long o = 0; o < DEPTH(s.out_depth); o++) {
                const long slice = SLICE(o * s.stride_depth - s.front + u * s.dilation_depth);
                if (!is_within(slice, DEPTH(s.depth)))
                    continue;
                const long channel = n * s.in_channels + k / outer * inner + c;
                const global T *from = x + (channel * DEPTH(s.depth) + slice) * plane;
                const global T *g = dy + ((n * s.out_channels + k) * DEPTH(s.out_depth) + o) * out_plane;
                sum = add_products(sum, from, &s, r * s.dilation_height - s.top, s.stride_height,
                                   t * s.dilation_width - s.left, s.stride_width, g, s.out_height, s.out_width);
            }
            total += sum;
        }
        dw[i] = total;
    }
}
