/* data/transforms/color.c - brightness, contrast, saturation, hue, gray: torchvision's formulas, in float32. */
#include <math.h>

#include "data/transforms/picture.h"

enum { AT_ONCE = 512 }; /* pixels */

static inline float clamp(float value, float bound) { return fminf(fmaxf(value, 0), bound); }

static inline float luma(float r, float g, float b) { return 0.2989f * r + 0.587f * g + 0.114f * b; }

/* Calls `change` with up to AT_ONCE pixels of all channels at a time. */
typedef void (*change_function)(float rgb[3][AT_ONCE], int64_t count, float bound, const void *user);
static kn_status for_pixels(kn_picture *picture, change_function change, const void *user)
{
    float rgb[3][AT_ONCE];
    const int64_t size = kn_picture_size(picture);
    for (int64_t at = 0; at < size; at += AT_ONCE) {
        const int64_t count = size - at < AT_ONCE ? size - at : AT_ONCE;
        for (int64_t c = 0; c < picture->channels; c++)
            kn_picture_load(picture, c * size + at, count, rgb[c]);
        change(rgb, count, kn_picture_bound(picture), user);
        for (int64_t c = 0; c < picture->channels; c++)
            kn_picture_store_cut(picture, c * size + at, count, rgb[c]);
    }
    return KN_OK;
}

/* --- brightness and contrast: towards one value ------------------------------------------------------------------- */

/* factor x + (1 - factor) other. */
static kn_status blend(kn_picture *picture, double factor, double other)
{
    float values[AT_ONCE];
    const float ratio = (float)factor, rest = (float)(1 - factor), bound = kn_picture_bound(picture);
    const int64_t size = picture->channels * kn_picture_size(picture);
    for (int64_t at = 0; at < size; at += AT_ONCE) {
        const int64_t count = size - at < AT_ONCE ? size - at : AT_ONCE;
        kn_picture_load(picture, at, count, values);
        for (int64_t i = 0; i < count; i++)
            values[i] = clamp(values[i] * ratio + (float)other * rest, bound);
        kn_picture_store_cut(picture, at, count, values);
    }
    return KN_OK;
}

kn_status kn_picture_brightness(kn_picture *picture, double factor) { return blend(picture, factor, 0); }

/* The mean of the gray picture; of bytes, of its whole numbers. */
static double mean_gray(const kn_picture *picture)
{
    float rgb[3][AT_ONCE];
    const int64_t size = kn_picture_size(picture);
    double sum = 0;
    for (int64_t at = 0; at < size; at += AT_ONCE) {
        const int64_t count = size - at < AT_ONCE ? size - at : AT_ONCE;
        for (int64_t c = 0; c < picture->channels; c++)
            kn_picture_load(picture, c * size + at, count, rgb[c]);
        for (int64_t i = 0; i < count; i++) {
            const float gray = picture->channels == 1 ? rgb[0][i] : luma(rgb[0][i], rgb[1][i], rgb[2][i]);
            sum += picture->dtype == KN_U8 ? floorf(gray) : gray;
        }
    }
    return sum / (double)size;
}

kn_status kn_picture_contrast(kn_picture *picture, double factor) { return blend(picture, factor, mean_gray(picture)); }

/* --- saturation --------------------------------------------------------------------------------------------------- */

static void saturate(float rgb[3][AT_ONCE], int64_t count, float bound, const void *user)
{
    const double factor = *(const double *)user;
    const float ratio = (float)factor, rest = (float)(1 - factor);
    for (int64_t i = 0; i < count; i++) {
        float gray = luma(rgb[0][i], rgb[1][i], rgb[2][i]);
        gray = bound > 1 ? floorf(gray) : gray;
        for (int c = 0; c < 3; c++)
            rgb[c][i] = clamp(rgb[c][i] * ratio + gray * rest, bound);
    }
}

kn_status kn_picture_saturation(kn_picture *picture, double factor)
{
    return picture->channels == 1 ? KN_OK : for_pixels(picture, saturate, &factor);
}

static void make_gray(float rgb[3][AT_ONCE], int64_t count, float bound, const void *user)
{
    (void)bound;
    (void)user;
    for (int64_t i = 0; i < count; i++)
        rgb[0][i] = rgb[1][i] = rgb[2][i] = luma(rgb[0][i], rgb[1][i], rgb[2][i]);
}

kn_status kn_picture_grayscale(kn_picture *picture)
{
    return picture->channels == 1 ? KN_OK : for_pixels(picture, make_gray, NULL);
}

/* --- hue ---------------------------------------------------------------------------------------------------------- */

typedef struct hsv {
    float h, s, v; /* all from 0 to 1 */
} hsv;

static hsv hsv_of(float r, float g, float b)
{
    const float most = fmaxf(r, fmaxf(g, b)), least = fminf(r, fminf(g, b)), range = most - least;
    if (range == 0)
        return (hsv){0, 0, most};
    const float from_r = (most - r) / range, from_g = (most - g) / range, from_b = (most - b) / range;
    const float h = most == r ? from_b - from_g : most == g ? from_r + 2 - from_b : from_g + 4 - from_r;
    return (hsv){fmodf(h / 6 + 1, 1), range / most, most};
}

static void rgb_of(hsv color, float rgb[3])
{
    const float h6 = color.h * 6, sector = floorf(h6), f = h6 - sector, s = color.s, v = color.v;
    const float p = clamp((1 - s) * v, 1), q = clamp((1 - s * f) * v, 1), t = clamp((1 - s * (1 - f)) * v, 1);
    const float choices[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
    const int which = sector >= 0 && sector < 6 ? (int)sector : 0; /* not a number in floating images may be */
    for (int c = 0; c < 3; c++)
        rgb[c] = choices[which][c];
}

/* Bytes become floats from 0 to 1 and back, all 256 equally wide. */
static void turn_hue(float rgb[3][AT_ONCE], int64_t count, float bound, const void *user)
{
    const float shift = (float)*(const double *)user;
    for (int64_t i = 0; i < count; i++) {
        hsv color = hsv_of(rgb[0][i] / bound, rgb[1][i] / bound, rgb[2][i] / bound);
        float changed[3];
        color.h = fmodf(color.h + shift + 1, 1);
        rgb_of(color, changed);
        for (int c = 0; c < 3; c++)
            rgb[c][i] = bound > 1 ? changed[c] * (255 + 1 - 1e-3f) : changed[c];
    }
}

kn_status kn_picture_hue(kn_picture *picture, double factor)
{
    return picture->channels == 1 ? KN_OK : for_pixels(picture, turn_hue, &factor);
}
