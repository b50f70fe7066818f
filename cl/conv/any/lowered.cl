/* conv/any/lowered.cl - im2col and col2im, for convolution by GEMM on any device.
 *
 * im2col writes, per image and group, the matrix [taps][pixels] of the elements of x that each tap reads at each pixel;
 * its product with the weights [outer][taps] is the convolution. col2im is the adjoint: it sums, for each element of
 * dx, over the taps in a fixed order.
 *
 * Compiled in: T, VOLUME. */
#include "common/koine.clh"
#include "conv/common/shape.clh"

/* The element that tap `tap` of an image reads for the output's slice o, row p, column q. */
static inline T read_tap(const global T *restrict x, const kn_conv_shape s, long image, long tap, long o, long p,
                         long q)
{
    const long t = tap % s.kernel_size[2], r = tap / s.kernel_size[2] % s.kernel_size[1];
    const long u = SLICE(tap / s.kernel_size[2] / s.kernel_size[1] % s.kernel_size[0]);
    const long channel = tap / s.kernel_size[2] / s.kernel_size[1] / DEPTH(s.kernel_size[0]);
    const long slice = SLICE(find_read(&s, 0, o, u));
    const long row = find_read(&s, 1, p, r), column = find_read(&s, 2, q, t);
    const bool inside =
        is_within(slice, DEPTH(s.in_size[0])) && is_within(row, s.in_size[1]) && is_within(column, s.in_size[2]);
    const long volume = (image * s.in_channels + channel) * DEPTH(s.in_size[0]);
    return inside ? x[((volume + slice) * s.in_size[1] + row) * s.in_size[2] + column] : (T)0;
}

/* columns [images][in_channels * U * R * S][O * P * Q], of `images` images from `first` on: one row of pixels at a time
 * on CPU devices, elsewhere one pixel. */
kernel void conv_im2col(KN_IN(x), KN_OUT(columns), kn_conv_shape s, long first, long images KN_NUMBERED)
{
    KN_NOTE_START;
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, columns);
    const long taps = s.in_channels * DEPTH(s.kernel_size[0]) * s.kernel_size[1] * s.kernel_size[2];
    const long lines = images * taps * DEPTH(s.out_size[0]) * s.out_size[1];
#ifdef KN_CPU
    KN_FOR (line, lines) {
        const long p = line % s.out_size[1], o = SLICE(line / s.out_size[1] % s.out_size[0]);
        const long at = line / s.out_size[1] / DEPTH(s.out_size[0]), tap = at % taps, image = at / taps;
        for (long q = 0; q < s.out_size[2]; q++)
            columns[line * s.out_size[2] + q] = read_tap(x, s, first + image, tap, o, p, q);
    }
#else
    KN_FOR (i, lines * s.out_size[2]) {
        const long q = i % s.out_size[2], line = i / s.out_size[2];
        const long at = line / s.out_size[1] / DEPTH(s.out_size[0]);
        columns[i] = read_tap(x, s, first + at / taps, at % taps, SLICE(line / s.out_size[1] % s.out_size[0]),
                              line % s.out_size[1], q);
    }
#endif
}

/* The taps of one slice of the kernel, whose columns `from` points to, for a row and column of dx. */
static inline T gather_slice(const global T *from, const kn_conv_shape s, long pixels, long row, long column, T sum)
{
    for (long r = 0; r < s.kernel_size[1]; r++) {
        const long p = find_reader(&s, 1, row, r);
        if (p < 0)
            continue;
        for (long t = 0; t < s.kernel_size[2]; t++) {
            const long q = find_reader(&s, 2, column, t);
            if (q >= 0)
                sum += from[(r * s.kernel_size[2] + t) * pixels + p * s.out_size[2] + q];
        }
    }
    return sum;
}

kernel void conv_col2im(KN_IN(columns), KN_OUT(dx), kn_conv_shape s, long first, long images KN_NUMBERED)
{
    KN_NOTE_START;
    KN_BIND_IN(T, columns);
    KN_BIND_OUT(T, dx);
    const long plane = s.out_size[1] * s.out_size[2], pixels = DEPTH(s.out_size[0]) * plane;
    const long image_size = s.in_channels * DEPTH(s.in_size[0]) * s.in_size[1] * s.in_size[2];
    KN_FOR (i, images * image_size) {
        const long column = i % s.in_size[2], row = i / s.in_size[2] % s.in_size[1];
        const long slice = SLICE(i / s.in_size[2] / s.in_size[1] % s.in_size[0]);
        const long channel = i / s.in_size[2] / s.in_size[1] / DEPTH(s.in_size[0]); /* counted over all images */
        T sum = 0;
        for (long u = 0; u < DEPTH(s.kernel_size[0]); u++) {
            const long o = SLICE(find_reader(&s, 0, slice, u));
            if (o < 0)
                continue;
            const long tap = (channel * DEPTH(s.kernel_size[0]) + u) * s.kernel_size[1] * s.kernel_size[2];
            sum = gather_slice(columns + tap * pixels + o * plane, s, pixels, row, column, sum);
        }
        dx[first * image_size + i] = sum;
    }
}

/* y += bias per channel, clamped to [low, high]. */
kernel void conv_finish(KN_IN(bias), KN_INOUT(y), long images, long channels, long pixels, int has_bias, T low,
                        T high KN_NUMBERED)
{
    KN_NOTE_START;
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
#ifdef KN_CPU
    KN_FOR (plane, images * channels) {
        const T value = has_bias ? bias[plane % channels] : (T)0;
        for (long i = 0; i < pixels; i++)
            y[plane * pixels + i] = KN_CLAMP(y[plane * pixels + i] + value, low, high);
    }
#else
    KN_FOR (i, images * channels * pixels) {
        const T value = has_bias ? y[i] + bias[i / pixels % channels] : y[i];
        y[i] = KN_CLAMP(value, low, high);
    }
#endif
}

/* dw (+)= the products of `images` images, in order. */
kernel void conv_sum_products(KN_IN(products), KN_INOUT(dw), long weights, long images, int accumulate KN_NUMBERED)
{
    KN_NOTE_START;
    KN_BIND_IN(T, products);
    KN_BIND_OUT(T, dw);
    KN_FOR (i, weights) {
        T sum = accumulate ? dw[i] : (T)0;
        for (long image = 0; image < images; image++)
            sum += products[image * weights + i];
        dw[i] = sum;
    }
}
