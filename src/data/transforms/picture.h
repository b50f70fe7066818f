/* data/transforms/picture.h - the image that passes through a pipeline. */
#pragma once

#include <koine/dtype.h>
#include <koine/pad.h>
#include <koine/status.h>
#include <stddef.h>
#include <stdint.h>

typedef struct kn_picture {
    kn_dtype dtype; /* KN_U8 (0 to 255) or KN_F32 (0 to 1) */
    int64_t channels, height, width;
    void *data; /* contiguous planes */
    bool owned; /* `data` is freed with the picture */
} kn_picture;

/* A rectangle of a picture; it may reach beyond the picture's edges. */
typedef struct kn_box {
    int64_t top, left, height, width;
} kn_box;

void kn_picture_free(kn_picture *picture);
/* Uninitialised, like `picture` but of this size. */
kn_status kn_picture_new(kn_picture *made, const kn_picture *picture, int64_t height, int64_t width);
/* Frees `picture` and puts `by` in its place. */
void kn_picture_replace(kn_picture *picture, const kn_picture *by);

/* White: 255 or 1. */
static inline float kn_picture_bound(const kn_picture *picture) { return picture->dtype == KN_U8 ? 255.0f : 1.0f; }
static inline size_t kn_picture_element(const kn_picture *picture) { return picture->dtype == KN_U8 ? 1 : 4; }
static inline int64_t kn_picture_size(const kn_picture *picture) { return picture->height * picture->width; }

/* `count` elements from number `at` on, as floats / back: uint8 is limited to 0 .. 255 and rounded (to even), or cut
 * off to the whole number below, as torchvision does for colours. */
void kn_picture_load(const kn_picture *picture, int64_t at, int64_t count, float *values);
void kn_picture_store(kn_picture *picture, int64_t at, int64_t count, const float *values);
void kn_picture_store_cut(kn_picture *picture, int64_t at, int64_t count, const float *values);

/* The picture's part in the box; what lies outside of the picture is filled as `mode` says. */
kn_status kn_picture_crop(kn_picture *picture, kn_box box, kn_padding_mode mode, double fill);

/* The part in the box, which is inside of the picture, resized: nearest, bilinear or bicubic. */
kn_status kn_picture_resize(kn_picture *picture, kn_box box, int64_t height, int64_t width, int interpolation);

/* Each pixel of the result is the one at (matrix [x, y, 1]) of the source, both counted from the centre, in units of
 * pixels; outside of the source `fill`. Nearest or bilinear. */
kn_status kn_picture_affine(kn_picture *picture, const double matrix[6], int interpolation, double fill);
/* The matrix of torchvision's affine: degrees, pixels, a factor, degrees. */
void kn_affine_matrix(double matrix[6], double angle, const double translate[2], double scale, const double shear[2]);
/* torchvision's rotate: counter-clockwise; quarter turns of squares move pixels only. */
kn_status kn_picture_rotate(kn_picture *picture, double angle, int interpolation, double fill);

/* torchvision's functions of these names, for 1 or 3 channels. */
kn_status kn_picture_brightness(kn_picture *picture, double factor);
kn_status kn_picture_contrast(kn_picture *picture, double factor);
kn_status kn_picture_saturation(kn_picture *picture, double factor);
kn_status kn_picture_hue(kn_picture *picture, double factor);
kn_status kn_picture_grayscale(kn_picture *picture);
kn_status kn_picture_invert(kn_picture *picture);
kn_status kn_picture_posterize(kn_picture *picture, int bits);
kn_status kn_picture_solarize(kn_picture *picture, double threshold);
kn_status kn_picture_autocontrast(kn_picture *picture);
kn_status kn_picture_equalize(kn_picture *picture);
kn_status kn_picture_sharpness(kn_picture *picture, double factor);
#define KN_BLUR_LARGEST 255
kn_status kn_picture_blur(kn_picture *picture, int kernel_size, double sigma);
