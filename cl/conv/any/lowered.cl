/* conv/any/lowered.cl - what turns a convolution into matrix products, on any device.
 *
 * im2col writes, image by image and group by group, the matrix [taps][pixels] of the x that each tap reads at each
 * pixel; a product with the weights [outer][taps] then is the convolution. col2im adds such a matrix back up: for each
 * element of dx, over the taps in a fixed order.
 *
 * Compiled in: T. */
#include "common/koine.clh"

typedef struct conv_shape {
    long images, in_channels, height, width;
    long out_channels, kernel_height, kernel_width, out_height, out_width;
    long stride_height, stride_width, top, left, dilation_height, dilation_width, groups;
} conv_shape;

/* What tap `tap` of an image reads for output row p, column q. */
static inline T read_tap(const global T *restrict x, const conv_shape s, long image, long tap, long p, long q)
{
    const long t = tap % s.kernel_width, r = tap / s.kernel_width % s.kernel_height,
               channel = tap / s.kernel_width / s.kernel_height;
    const long row = p * s.stride_height - s.top + r * s.dilation_height,
               column = q * s.stride_width - s.left + t * s.dilation_width;
    const bool inside = row >= 0 && row < s.height && column >= 0 && column < s.width;
    return inside ? x[((image * s.in_channels + channel) * s.height + row) * s.width + column] : (T)0;
}

/* columns [images][in_channels * R * S][P * Q], of `images` images from `first` on: on CPU devices a row of pixels at a
 * time, elsewhere a pixel. */
kernel void conv_im2col(KN_IN(x), KN_OUT(columns), conv_shape s, long first, long images)
{
    KN_BIND_IN(T, x);
    KN_BIND_OUT(T, columns);
    const long taps = s.in_channels * s.kernel_height * s.kernel_width;
#ifdef KN_CPU
    KN_FOR (line, images * taps * s.out_height) {
        const long p = line % s.out_height, tap = line / s.out_height % taps, image = line / s.out_height / taps;
        for (long q = 0; q < s.out_width; q++)
            columns[line * s.out_width + q] = read_tap(x, s, first + image, tap, p, q);
    }
#else
    KN_FOR (i, images * taps * s.out_height * s.out_width) {
        const long q = i % s.out_width, line = i / s.out_width;
        columns[i] =
            read_tap(x, s, first + line / s.out_height / taps, line / s.out_height % taps, line % s.out_height, q);
    }
#endif
}

kernel void conv_col2im(KN_IN(columns), KN_OUT(dx), conv_shape s, long first, long images)
{
    KN_BIND_IN(T, columns);
    KN_BIND_OUT(T, dx);
    const long image_size = s.in_channels * s.height * s.width, pixels = s.out_height * s.out_width;
    KN_FOR (i, images * image_size) {
        const long column = i % s.width, row = i / s.width % s.height,
                   channel = i / s.width / s.height; /* channel of all images */
        const global T *from = columns + channel * s.kernel_height * s.kernel_width * pixels;
        T sum = 0;
        for (long r = 0; r < s.kernel_height; r++) {
            const long down = row + s.top - r * s.dilation_height, p = down / s.stride_height;
            if (down < 0 || down % s.stride_height != 0 || p >= s.out_height)
                continue;
            for (long t = 0; t < s.kernel_width; t++) {
                const long right = column + s.left - t * s.dilation_width, q = right / s.stride_width;
                if (right >= 0 && right % s.stride_width == 0 && q < s.out_width)
                    sum += from[((r * s.kernel_width + t) * s.out_height + p) * s.out_width + q];
            }
        }
        dx[first * image_size + i] = sum;
    }
}

/* y += bias, channel by channel, cut to [low, high]. */
kernel void conv_finish(KN_IN(bias), KN_INOUT(y), long images, long channels, long pixels, int has_bias, T low, T high)
{
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
#ifdef KN_CPU
    KN_FOR (plane, images * channels) {
        const T value = has_bias ? bias[plane % channels] : (T)0;
        for (long i = 0; i < pixels; i++)
            y[plane * pixels + i] = KN_CUT(y[plane * pixels + i] + value, low, high);
    }
#else
    KN_FOR (i, images * channels * pixels) {
        const T value = has_bias ? y[i] + bias[i / pixels % channels] : y[i];
        y[i] = KN_CUT(value, low, high);
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
