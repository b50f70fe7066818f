/* conv/any/reference.cl - convolution on any device, forward and backward, one sum per element of the result.
 *
 * Compiled in: T. */
#include "common/koine.clh"

typedef struct conv_shape {
    long images, in_channels, height, width;
    long out_channels, kernel_height, kernel_width, out_height, out_width;
    long stride_height, stride_width, top, left, dilation_height, dilation_width, groups;
} conv_shape;

kernel void conv_reference_forward(KN_IN(x), KN_IN(w), KN_IN(bias), KN_OUT(y), conv_shape s, int has_bias, T low,
                                   T high)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, w);
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
    const long inner = s.in_channels / s.groups, outer = s.out_channels / s.groups;
    KN_FOR (i, s.images * s.out_channels * s.out_height * s.out_width) {
        const long q = i % s.out_width, p = i / s.out_width % s.out_height;
        const long k = i / s.out_width / s.out_height % s.out_channels,
                   n = i / s.out_width / s.out_height / s.out_channels;
        T sum = has_bias ? bias[k] : (T)0;
        for (long c = 0; c < inner; c++)
            for (long r = 0; r < s.kernel_height; r++) {
                const long row = p * s.stride_height - s.top + r * s.dilation_height;
                if (row < 0 || row >= s.height)
                    continue;
                for (long t = 0; t < s.kernel_width; t++) {
                    const long column = q * s.stride_width - s.left + t * s.dilation_width;
                    if (column >= 0 && column < s.width)
                        sum = fma(x[((n * s.in_channels + k / outer * inner + c) * s.height + row) * s.width + column],
                                  w[((k * inner + c) * s.kernel_height + r) * s.kernel_width + t], sum);
                }
            }
        y[i] = KN_CUT(sum, low, high);
    }
}

/* dx gathers from the dy that it contributed to: p * stride = row + padding - r * dilation. */
kernel void conv_reference_data(KN_IN(dy), KN_IN(w), KN_OUT(dx), conv_shape s)
{
    KN_BIND_IN(T, dy);
    KN_BIND_IN(T, w);
    KN_BIND_OUT(T, dx);
    const long inner = s.in_channels / s.groups, outer = s.out_channels / s.groups;
    KN_FOR (i, s.images * s.in_channels * s.height * s.width) {
        const long column = i % s.width, row = i / s.width % s.height;
        const long channel = i / s.width / s.height % s.in_channels, n = i / s.width / s.height / s.in_channels;
        const long first = channel / inner * outer, c = channel % inner;
        T sum = 0;
        for (long r = 0; r < s.kernel_height; r++) {
            const long down = row + s.top - r * s.dilation_height, p = down / s.stride_height;
            if (down < 0 || down % s.stride_height != 0 || p >= s.out_height)
                continue;
            for (long t = 0; t < s.kernel_width; t++) {
                const long right = column + s.left - t * s.dilation_width, q = right / s.stride_width;
                if (right < 0 || right % s.stride_width != 0 || q >= s.out_width)
                    continue;
                for (long k = first; k < first + outer; k++)
                    sum = fma(dy[((n * s.out_channels + k) * s.out_height + p) * s.out_width + q],
                              w[((k * inner + c) * s.kernel_height + r) * s.kernel_width + t], sum);
            }
        }
        dx[i] = sum;
    }
}

kernel void conv_reference_weights(KN_IN(x), KN_IN(dy), KN_OUT(dw), conv_shape s)
{
    KN_BIND_IN(T, x);
    KN_BIND_IN(T, dy);
    KN_BIND_OUT(T, dw);
    const long inner = s.in_channels / s.groups, outer = s.out_channels / s.groups;
    KN_FOR (i, s.out_channels * inner * s.kernel_height * s.kernel_width) {
        const long t = i % s.kernel_width, r = i / s.kernel_width % s.kernel_height;
        const long c = i / s.kernel_width / s.kernel_height % inner, k = i / s.kernel_width / s.kernel_height / inner;
        T total = 0;
        for (long n = 0; n < s.images; n++) {
            T sum = 0; /* one image apart: the rounding error grows with the image plus the number of images, not with
                          their product */
            for (long p = 0; p < s.out_height; p++) {
                const long row = p * s.stride_height - s.top + r * s.dilation_height;
                if (row < 0 || row >= s.height)
                    continue;
                for (long q = 0; q < s.out_width; q++) {
                    const long column = q * s.stride_width - s.left + t * s.dilation_width;
                    if (column >= 0 && column < s.width)
                        sum = fma(x[((n * s.in_channels + k / outer * inner + c) * s.height + row) * s.width + column],
                                  dy[((n * s.out_channels + k) * s.out_height + p) * s.out_width + q], sum);
                }
            }
            total += sum;
        }
        dw[i] = total;
    }
}

/* db[k] = the sum of dy over images and pixels, image by image. */
kernel void conv_bias_gradient(KN_IN(dy), KN_OUT(db), long images, long channels, long pixels)
{
    KN_BIND_IN(T, dy);
    KN_BIND_OUT(T, db);
    KN_FOR (k, channels) {
        T total = 0;
        for (long n = 0; n < images; n++) {
            T sum = 0;
            for (long i = 0; i < pixels; i++)
                sum += dy[(n * channels + k) * pixels + i];
            total += sum;
        }
        db[k] = total;
    }
}
