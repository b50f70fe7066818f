/* data/transforms/tone.c - changes of each channel by itself: invert, posterize, solarize, autocontrast, equalize; and
 * filters of neighbours: sharpness, blur. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "data/transforms/picture.h"

/* A function of one value: floats, or bytes through a table of 256. */
typedef float (*tone)(float value, float bound, double parameter);

static kn_status map(kn_picture *picture, tone function, double parameter)
{
    const int64_t size = picture->channels * kn_picture_size(picture);
    if (picture->dtype == KN_F32) {
        float *values = picture->data;
        for (int64_t i = 0; i < size; i++)
            values[i] = function(values[i], 1, parameter);
        return KN_OK;
    }
    uint8_t table[256], *bytes = picture->data;
    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)function((float)i, 255, parameter);
    for (int64_t i = 0; i < size; i++)
        bytes[i] = table[bytes[i]];
    return KN_OK;
}

static float inverse(float value, float bound, double parameter)
{
    (void)parameter;
    return bound - value;
}

static float posterized(float value, float bound, double bits)
{
    const float levels = ldexpf(1, (int)bits);
    if (bound > 1)
        return floorf(value * levels / 256) * 256 / levels;
    return fminf(fmaxf(floorf(value * levels), 0), levels - 1) / levels;
}

static float solarized(float value, float bound, double threshold)
{
    return (double)value >= threshold ? bound - value : value;
}

kn_status kn_picture_invert(kn_picture *picture) { return map(picture, inverse, 0); }
kn_status kn_picture_posterize(kn_picture *picture, int bits) { return map(picture, posterized, bits); }
kn_status kn_picture_solarize(kn_picture *picture, double threshold) { return map(picture, solarized, threshold); }

/* --- by the channel's own values ---------------------------------------------------------------------------------- */

static void stretch(float *values, int64_t count, float bound)
{
    float least = values[0], most = values[0];
    for (int64_t i = 1; i < count; i++) {
        least = fminf(least, values[i]);
        most = fmaxf(most, values[i]);
    }
    if (least == most)
        return;
    const float scale = (most - least) * (1 / bound);
    for (int64_t i = 0; i < count; i++)
        values[i] = fminf(fmaxf((values[i] - least) / scale, 0), bound);
}

/* Each level gets the rank of its pixels, as in PIL. */
static void equalize(float *values, int64_t count, float bound)
{
    int64_t histogram[256] = {0}, before = 0;
    float table[256];
    int last = 0;
    const float scale = bound > 1 ? 1 : 255 + 1 - 1e-3f; /* floats are equalized as bytes */
    for (int64_t i = 0; i < count; i++) {
        values[i] = floorf(fminf(fmaxf(values[i] * scale, 0), 255));
        histogram[(int)values[i]]++;
    }
    for (int level = 0; level < 256; level++)
        last = histogram[level] > 0 ? level : last;
    const int64_t step = (count - histogram[last]) / 255;
    for (int level = 0; level < 256; level++) {
        table[level] = step == 0 ? (float)level : fminf((float)((before + step / 2) / step), 255);
        before += histogram[level];
    }
    for (int64_t i = 0; i < count; i++)
        values[i] = table[(int)values[i]] * (bound / 255);
}

static kn_status for_channels(kn_picture *picture, void (*change)(float *values, int64_t count, float bound))
{
    const int64_t size = kn_picture_size(picture);
    float *values = kn_malloc((size_t)size * sizeof *values);
    if (!values)
        return KN_ERR_MEMORY;
    for (int64_t c = 0; c < picture->channels; c++) {
        kn_picture_load(picture, c * size, size, values);
        change(values, size, kn_picture_bound(picture));
        kn_picture_store_cut(picture, c * size, size, values);
    }
    kn_free(values);
    return KN_OK;
}

kn_status kn_picture_autocontrast(kn_picture *picture) { return for_channels(picture, stretch); }
kn_status kn_picture_equalize(kn_picture *picture) { return for_channels(picture, equalize); }

/* --- by neighbours ------------------------------------------------------------------------------------------------ */

/* Away from the mean of the 3 x 3 pixels around, the one in the middle counted five times. The border stays. */
static void sharpen(const kn_picture *to, const float *values, int64_t plane, float factor)
{
    kn_picture made = *to;
    const int64_t width = to->width;
    for (int64_t y = 1; y < to->height - 1; y++)
        for (int64_t x = 1; x < width - 1; x++) {
            const float *at = values + y * width + x;
            float blurred = 4 * at[0];
            for (int64_t i = -1; i <= 1; i++)
                blurred += at[i * width - 1] + at[i * width] + at[i * width + 1];
            blurred /= 13;
            blurred = to->dtype == KN_U8 ? rintf(blurred) : blurred;
            const float changed = at[0] + (1 - factor) * (blurred - at[0]);
            const float value = fminf(fmaxf(changed, 0), kn_picture_bound(to));
            kn_picture_store_cut(&made, plane + y * width + x, 1, &value);
        }
}

kn_status kn_picture_sharpness(kn_picture *picture, double factor)
{
    const int64_t size = kn_picture_size(picture);
    if (picture->height <= 2 || picture->width <= 2)
        return KN_OK;
    float *values = kn_malloc((size_t)size * sizeof *values);
    if (!values)
        return KN_ERR_MEMORY;
    for (int64_t c = 0; c < picture->channels; c++) {
        kn_picture_load(picture, c * size, size, values);
        sharpen(picture, values, c * size, (float)factor);
    }
    kn_free(values);
    return KN_OK;
}

/* torchvision spreads the kernel's places from -lim to lim, lim = (size - 1) / sqrt(8). */
static void gaussian(float *kernel, int size, double sigma)
{
    double total = 0, weights[KN_BLUR_LARGEST];
    for (int i = 0; i < size; i++) {
        const double place = (2.0 * i - (size - 1)) / (2 * sqrt(2)) / sigma;
        total += weights[i] = exp(-place * place);
    }
    for (int i = 0; i < size; i++)
        kernel[i] = (float)(weights[i] / total);
}

static int64_t reflected(int64_t at, int64_t size) { return at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at; }

/* One direction: `count` elements `step` apart. */
static void filter(float *to, const float *from, int64_t count, int64_t step, const float *kernel, int size)
{
    for (int64_t i = 0; i < count; i++) {
        float sum = 0;
        for (int k = 0; k < size; k++)
            sum += kernel[k] * from[reflected(i + k - size / 2, count) * step];
        to[i * step] = sum;
    }
}

kn_status kn_picture_blur(kn_picture *picture, int kernel_size, double sigma)
{
    const int64_t size = kn_picture_size(picture), height = picture->height, width = picture->width;
    float kernel[KN_BLUR_LARGEST], *values = kn_malloc(2 * (size_t)size * sizeof *values);
    if (!values)
        return KN_ERR_MEMORY;
    gaussian(kernel, kernel_size, sigma);
    for (int64_t c = 0; c < picture->channels; c++) {
        kn_picture_load(picture, c * size, size, values);
        for (int64_t y = 0; y < height; y++)
            filter(values + size + y * width, values + y * width, width, 1, kernel, kernel_size);
        for (int64_t x = 0; x < width; x++)
            filter(values + x, values + size + x, height, width, kernel, kernel_size);
        kn_picture_store(picture, c * size, size, values);
    }
    kn_free(values);
    return KN_OK;
}
