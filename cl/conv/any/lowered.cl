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
static inline T read_tap(const global T *restrict x, const kn_conv_kernel_shape s, long image, long tap, long o, long p,
                         long q)
{
    const long t = tap % s.kernel_width, r = tap / s.kernel_width % s.kernel_height;
    const long u = SLICE(tap / s.kernel_width / s.kernel_height % s.kernel_depth);
    const long channel = tap / s.kernel_width / s.kernel_height / DEPTH(s.kernel_depth);
    const long slice = SLICE(o * s.stride_depth - s.front + u * s.dilation_depth);
    const long row = p * s.stride_height - s.top + r * s.dilation_height,
               column = q * s.stride_width - s.left + t * s.dilation_width;
    const bool inside = is_within(slice, DEPTH(s.depth)) && is_within(row, s.height) && is_within(column, s.width);
    const long volume = (image * s.in_channels + channel) * DEPTH(s.depth);
    return inside ? x[((volume + slice) * s.height + row) * s.width + column] : (T)0;
}

/* columns [images][in_channels * U * R * S][O * P * Q], of `images` images from `first` on: one row of pixels at a time
 * on CPU devices, elsewhere one pixel. */
kernel void conv_im2col(KN_IN(x), KN_OUT(columns), kn_conv_kernel_shape s, long first, long images)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, columns);
    const long taps = s.in_channels * DEPTH(s.kernel_depth) * s.kernel_height * s.kernel_width;
    const long lines = images * taps * DEPTH(s.out_depth) * s.out_height;
#ifdef KN_CPU
    KN_FOR (line, lines) {
        const long p = line % s.out_height, o = SLICE(line / s.out_height % s.out_depth);
        const long at = line / s.out_height / DEPTH(s.out_depth), tap = at % taps, image = at / taps;
        for (long q = 0; q < s.out_width; q++)
            columns[line * s.out_width + q] = read_tap(x, s, first + image, tap, o, p, q);
    }
#else
    KN_FOR (i, lines * s.out_width) {
        const long q = i % s.out_width, line = i / s.out_width;
        const long at = line / s.out_height / DEPTH(s.out_depth);
        columns[i] = read_tap(x, s, first + at / taps, at % taps, SLICE(line / s.out_height % s.out_depth),
                              line % s.out_height, q);
    }
#endif
}

/* The taps of one slice of the kernel, whose columns `from` points to, for a row and column of dx. */
static inline T gather_slice(const global T *from, const kn_conv_kernel_shape s, long pixels, long row, long column,
                             T sum)
{
    for (long r = 0; r < s.kernel_height; r++) {
        const long p = find_reader(row, s.top, r, s.dilation_height, s.stride_height, s.out_height);
        if (p < 0)
            continue;
        for (long t = 0; t < s.kernel_width; t++) {
            const long q = find_reader(column, s.left, t, s.dilation_width, s.stride_width, s.out_width);
            if (q >= 0)
                sum += from[(r * s.kernel_width + t) * pixels + p * s.out_width + q];
        }
    }
    return sum;
}

kernel void conv_col2im(KN_IN(columns), KN_OUT(dx), kn_conv_kernel_shape s, long first, long images)
{
    KN_BIND_IN(T, columns);
    KN_BIND_OUT(T, dx);
    const long plane = s.out_height * s.out_width, pixels = DEPTH(s.out_depth) * plane;
    const long image_size = s.in_channels * DEPTH(s.depth) * s.height * s.width;
    KN_FOR (i, images * image_size) {
        const long column = i % s.width, row = i / s.width % s.height, slice = SLICE(i / s.width / s.height % s.depth);
        const long channel = i / s.width / s.height / DEPTH(s.depth); /* counted over all images */
        T sum = 0;
        for (long u = 0; u < DEPTH(s.kernel_depth); u++) {
            const long o = SLICE(find_reader(slice, s.front, u, s.dilation_depth, s.stride_depth, s.out_depth));
            if (o < 0)
                continue;
            const long tap = (channel * DEPTH(s.kernel_depth) + u) * s.kernel_height * s.kernel_width;
            sum = gather_slice(columns + tap * pixels + o * plane, s, pixels, row, column, sum);
        }
        dx[first * image_size + i] = sum;
    }
}

/* y += bias per channel, clamped to [low, high]. */
kernel void conv_finish(KN_IN(bias), KN_INOUT(y), long images, long channels, long pixels, int has_bias, T low, T high)
{
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
kernel void conv_sum_products(KN_IN(products), KN_INOUT(dw), long weights, long images, int accumulate)
{
    KN_BIND_IN(T, products);
    KN_BIND_OUT(T, dw);
    KN_FOR (i, weights) {
        T sum = accumulate ? dw[i] : (T)0;
        for (long image = 0; image < images; image++)
            sum += products[image * weights + i];
        dw[i] = sum;
    }
}
