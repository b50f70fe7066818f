/* conv/any/lowered.cl - what convolution by GEMM needs besides patches as columns (vision/fold.cl) and products.
 *
 * Compiled in: T. */
#include "common/koine.clh"

/* y += bias per channel, clamped to [low, high]. */
KN_KERNEL_ONCE(conv_finish, (KN_ARG(bias), KN_ARG(y), images, channels, pixels, has_bias, low, high),
               KN_IN(bias), KN_INOUT(y), long images, long channels, long pixels, int has_bias, T low, T high)
{
    KN_BIND_IN(T, bias);
    KN_BIND_OUT(T, y);
#ifdef KN_CPU
    KN_FOR_ONCE (plane, images * channels) {
        const T value = has_bias ? bias[plane % channels] : (T)0;
        for (long i = 0; i < pixels; i++)
            y[plane * pixels + i] = KN_CLAMP(y[plane * pixels + i] + value, low, high);
    }
#else
    KN_FOR_ONCE (i, images * channels * pixels) {
        const T value = has_bias ? y[i] + bias[i / pixels % channels] : y[i];
        y[i] = KN_CLAMP(value, low, high);
    }
#endif
}

/* dw (+)= the products of `images` images, in order. */
KN_KERNEL_ONCE(conv_sum_products, (KN_ARG(products), KN_ARG(dw), weights, images, accumulate),
               KN_IN(products), KN_INOUT(dw), long weights, long images, int accumulate)
{
    KN_BIND_IN(T, products);
    KN_BIND_OUT(T, dw);
    KN_FOR_ONCE (i, weights) {
        T sum = accumulate ? dw[i] : (T)0;
        for (long image = 0; image < images; image++)
            sum += products[image * weights + i];
        dw[i] = sum;
    }
}
