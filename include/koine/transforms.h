/* koine/transforms.h - transforms of images on the host: torchvision.transforms.v2, with its names, defaults and
 * formulas.
 *
 *     kn_transforms *train = kn_transforms_new();
 *     kn_transforms_random_resized_crop(train, 224, 224);
 *     kn_transforms_random_horizontal_flip(train, 0.5);
 *     kn_transforms_color_jitter(train, .brightness = {0.6, 1.4}, .hue = {-0.1, 0.1});
 *     kn_transforms_to_tensor(train);
 *     kn_transforms_normalize(train, 3, mean, std);
 *     kn_dataset *images = kn_image_folder("photos/train", train);        // or kn_transforms_dataset(base, train)
 *     kn_transforms_free(train);
 *
 * A pipeline is a list of steps (Compose). Images are [C, H, W], uint8 from 0 to 255 or float32 from 0 to 1; each step
 * works on both unless it says otherwise. A step whose parameters are refused is KN_ERR_ARGUMENT; the pipeline
 * remembers the first such error, and whatever uses the pipeline later fails with it. So checking each call is
 * optional.
 *
 * Random steps draw from the sample's random number, which a loader derives from its seed, the epoch and the sample:
 * the results do not depend on the number of workers. Each step has its own stream of numbers, so that adding one does
 * not change the others' choices. A pipeline may be used by several threads at once, but not changed meanwhile. */
#ifndef KOINE_TRANSFORMS_H
#define KOINE_TRANSFORMS_H

#include <koine/common.h>
#include <koine/data.h>
#include <koine/pad.h>
#include <koine/vision.h>

KN_BEGIN_DECLS

typedef struct kn_transforms kn_transforms;

KN_API kn_transforms *kn_transforms_new(void);
KN_API void kn_transforms_free(kn_transforms *transforms); /* NULL allowed; datasets made with it are not affected */

/* The pipeline applied to a host tensor: a new tensor. `random`: any number, of which the random steps are a
 * function. */
KN_API kn_tensor *kn_transforms_apply(const kn_transforms *transforms, kn_tensor *image, uint64_t random);

typedef struct kn_transforms_dataset_params {
    const char *field; /* default NULL: the first field */
} kn_transforms_dataset_params;
#define KN_TRANSFORMS_DATASET_DEFAULTS .field = NULL
KN_API kn_transforms_dataset_params kn_transforms_dataset_params_init(void);
/* `base` with the pipeline (copied) applied to one field, which gets the dtype and the shape that result. An image that
 * the pipeline cannot take, or a result without a fixed size, is an error. Takes ownership of `base`, also on
 * failure. */
KN_API kn_dataset *kn_transforms_dataset_with(kn_dataset *base, const kn_transforms *transforms,
                                              const kn_transforms_dataset_params *params);
#define kn_transforms_dataset(base, transforms, ...)                                                                   \
    KN_CALL(kn_transforms_dataset_with(base, transforms,                                                               \
                                       &(kn_transforms_dataset_params){KN_TRANSFORMS_DATASET_DEFAULTS, __VA_ARGS__}))

/* A transform of your own (koine/data.h), in place, of an image of the dtype and shape that `field` describes. */
KN_API kn_status kn_transforms_lambda(kn_transforms *transforms, kn_transform function, void *user);

/* --- values ------------------------------------------------------------------------------------------------------- */

/* ToDtype(float32, scale=True): uint8 becomes float32 divided by 255; float32 stays as it is. */
KN_API kn_status kn_transforms_to_tensor(kn_transforms *transforms);

/* (x - mean) / std of each of `channels` channels (1 to 4; copied), which the images must have; float32 only. */
KN_API kn_status kn_transforms_normalize(kn_transforms *transforms, int channels, const float *mean, const float *std);

typedef struct kn_transforms_random_erasing_params {
    double p; /* default 0.5 */
    double scale[2],
        ratio[2]; /* of the rectangle's area to the image's; of height to width. {0.02, 0.33}, {0.3, 3.3} */
    double value; /* default 0 */
    bool random;  /* default false; true: standard normal values instead of `value` (float32 only) */
} kn_transforms_random_erasing_params;
#define KN_TRANSFORMS_RANDOM_ERASING_DEFAULTS .p = 0.5, .scale = {0.02, 0.33}, .ratio = {0.3, 3.3}
KN_API kn_transforms_random_erasing_params kn_transforms_random_erasing_params_init(void);
/* Overwrites a random rectangle. */
KN_API kn_status kn_transforms_random_erasing_with(kn_transforms *transforms,
                                                   const kn_transforms_random_erasing_params *params);
#define kn_transforms_random_erasing(transforms, ...)                                                                  \
    KN_CALL(kn_transforms_random_erasing_with(                                                                         \
        transforms, &(kn_transforms_random_erasing_params){KN_TRANSFORMS_RANDOM_ERASING_DEFAULTS, __VA_ARGS__}))

/* --- sizes -------------------------------------------------------------------------------------------------------- */

typedef struct kn_transforms_resize_params {
    int64_t width;                     /* default 0: see below */
    kn_interpolate_mode interpolation; /* default bilinear; or nearest, bicubic. The last two are antialiased */
} kn_transforms_resize_params;
#define KN_TRANSFORMS_RESIZE_DEFAULTS .interpolation = KN_INTERPOLATE_BILINEAR
KN_API kn_transforms_resize_params kn_transforms_resize_params_init(void);
/* Without `width`, `size` is that of the shorter side, and the other follows (int(size * long / short)); with it,
 * `size` is the height. */
KN_API kn_status kn_transforms_resize_with(kn_transforms *transforms, int64_t size,
                                           const kn_transforms_resize_params *params);
#define kn_transforms_resize(transforms, size, ...)                                                                    \
    KN_CALL(kn_transforms_resize_with(transforms, size,                                                                \
                                      &(kn_transforms_resize_params){KN_TRANSFORMS_RESIZE_DEFAULTS, __VA_ARGS__}))

/* Smaller images are padded with zeros. */
KN_API kn_status kn_transforms_center_crop(kn_transforms *transforms, int64_t height, int64_t width);

typedef struct kn_transforms_crop_params {
    int64_t padding;              /* default 0: pixels added on all four sides first */
    bool pad_if_needed;           /* default false: a smaller image is an error */
    double fill;                  /* default 0 */
    kn_padding_mode padding_mode; /* default constant: `fill` */
} kn_transforms_crop_params;
#define KN_TRANSFORMS_CROP_DEFAULTS .padding = 0
KN_API kn_transforms_crop_params kn_transforms_crop_params_init(void);
KN_API kn_status kn_transforms_random_crop_with(kn_transforms *transforms, int64_t height, int64_t width,
                                                const kn_transforms_crop_params *params);
#define kn_transforms_random_crop(transforms, height, width, ...)                                                      \
    KN_CALL(kn_transforms_random_crop_with(transforms, height, width,                                                  \
                                           &(kn_transforms_crop_params){KN_TRANSFORMS_CROP_DEFAULTS, __VA_ARGS__}))

typedef struct kn_transforms_resized_crop_params {
    double scale[2];                   /* default {0.08, 1}: of the crop's area to the image's */
    double ratio[2];                   /* default {3/4, 4/3}: of width to height */
    kn_interpolate_mode interpolation; /* default bilinear; or nearest, bicubic */
} kn_transforms_resized_crop_params;
#define KN_TRANSFORMS_RESIZED_CROP_DEFAULTS                                                                            \
    .scale = {0.08, 1}, .ratio = {3.0 / 4, 4.0 / 3}, .interpolation = KN_INTERPOLATE_BILINEAR
KN_API kn_transforms_resized_crop_params kn_transforms_resized_crop_params_init(void);
/* A random part of the image, resized. */
KN_API kn_status kn_transforms_random_resized_crop_with(kn_transforms *transforms, int64_t height, int64_t width,
                                                        const kn_transforms_resized_crop_params *params);
#define kn_transforms_random_resized_crop(transforms, height, width, ...)                                              \
    KN_CALL(kn_transforms_random_resized_crop_with(                                                                    \
        transforms, height, width,                                                                                     \
        &(kn_transforms_resized_crop_params){KN_TRANSFORMS_RESIZED_CROP_DEFAULTS, __VA_ARGS__}))

/* --- places; p is a probability ----------------------------------------------------------------------------------- */

KN_API kn_status kn_transforms_random_horizontal_flip(kn_transforms *transforms, double p);
KN_API kn_status kn_transforms_random_vertical_flip(kn_transforms *transforms, double p);

typedef struct kn_transforms_affine_params {
    double translate[2]; /* default {0, 0}: at most these parts of the width and the height, from 0 to 1 */
    double scale[2];     /* default {1, 1} */
    double shear[4];     /* default 0: degrees, of x from [0] to [1], of y from [2] to [3] */
    kn_interpolate_mode interpolation; /* default nearest; or bilinear */
    double fill;                       /* default 0: outside of the image */
} kn_transforms_affine_params;
#define KN_TRANSFORMS_AFFINE_DEFAULTS .scale = {1, 1}, .interpolation = KN_INTERPOLATE_NEAREST
KN_API kn_transforms_affine_params kn_transforms_affine_params_init(void);
/* RandomAffine: turns by `low` to `high` degrees, clockwise, scales, shears and moves, around the centre. */
KN_API kn_status kn_transforms_random_affine_with(kn_transforms *transforms, double low, double high,
                                                  const kn_transforms_affine_params *params);
#define kn_transforms_random_affine(transforms, low, high, ...)                                                        \
    KN_CALL(kn_transforms_random_affine_with(                                                                          \
        transforms, low, high, &(kn_transforms_affine_params){KN_TRANSFORMS_AFFINE_DEFAULTS, __VA_ARGS__}))

typedef struct kn_transforms_rotation_params {
    kn_interpolate_mode interpolation; /* default nearest; or bilinear */
    double fill;                       /* default 0: outside of the image */
} kn_transforms_rotation_params;
#define KN_TRANSFORMS_ROTATION_DEFAULTS .interpolation = KN_INTERPOLATE_NEAREST
KN_API kn_transforms_rotation_params kn_transforms_rotation_params_init(void);
/* RandomRotation: by `low` to `high` degrees, counter-clockwise, around the centre; the size stays. */
KN_API kn_status kn_transforms_random_rotation_with(kn_transforms *transforms, double low, double high,
                                                    const kn_transforms_rotation_params *params);
#define kn_transforms_random_rotation(transforms, low, high, ...)                                                      \
    KN_CALL(kn_transforms_random_rotation_with(                                                                        \
        transforms, low, high, &(kn_transforms_rotation_params){KN_TRANSFORMS_ROTATION_DEFAULTS, __VA_ARGS__}))

/* --- colours; of images with 1 or 3 channels ---------------------------------------------------------------------- */

/* Each factor is drawn from [0] to [1]; {0, 0}, the default, leaves its property alone. torchvision's 0.4 is
 * {0.6, 1.4}, for hue {-0.4, 0.4}. */
typedef struct kn_transforms_color_jitter_params {
    double brightness[2], contrast[2], saturation[2]; /* 1: unchanged; 0: black, one gray, gray */
    double hue[2];                                    /* 0: unchanged; from -0.5 to 0.5, once around */
} kn_transforms_color_jitter_params;
#define KN_TRANSFORMS_COLOR_JITTER_DEFAULTS .brightness = {0, 0}
KN_API kn_transforms_color_jitter_params kn_transforms_color_jitter_params_init(void);
/* In a random order. */
KN_API kn_status kn_transforms_color_jitter_with(kn_transforms *transforms,
                                                 const kn_transforms_color_jitter_params *params);
#define kn_transforms_color_jitter(transforms, ...)                                                                    \
    KN_CALL(kn_transforms_color_jitter_with(                                                                           \
        transforms, &(kn_transforms_color_jitter_params){KN_TRANSFORMS_COLOR_JITTER_DEFAULTS, __VA_ARGS__}))

KN_API kn_status kn_transforms_random_grayscale(kn_transforms *transforms, double p); /* keeps three channels */
KN_API kn_status kn_transforms_random_invert(kn_transforms *transforms, double p);
KN_API kn_status kn_transforms_random_autocontrast(kn_transforms *transforms, double p);
KN_API kn_status kn_transforms_random_equalize(kn_transforms *transforms, double p); /* also of 2 and 4 channels */
KN_API kn_status kn_transforms_random_posterize(kn_transforms *transforms, int bits, double p);
KN_API kn_status kn_transforms_random_solarize(kn_transforms *transforms, double threshold, double p);
/* 0: blurred; 1: unchanged; above: sharper. */
KN_API kn_status kn_transforms_random_adjust_sharpness(kn_transforms *transforms, double factor, double p);

typedef struct kn_transforms_gaussian_blur_params {
    double sigma[2]; /* default {0.1, 2}: drawn from [0] to [1] */
} kn_transforms_gaussian_blur_params;
#define KN_TRANSFORMS_GAUSSIAN_BLUR_DEFAULTS .sigma = {0.1, 2}
KN_API kn_transforms_gaussian_blur_params kn_transforms_gaussian_blur_params_init(void);
/* An odd kernel size; the border is reflected, so images must be larger than half of it. */
KN_API kn_status kn_transforms_gaussian_blur_with(kn_transforms *transforms, int kernel_size,
                                                  const kn_transforms_gaussian_blur_params *params);
#define kn_transforms_gaussian_blur(transforms, kernel_size, ...)                                                      \
    KN_CALL(kn_transforms_gaussian_blur_with(                                                                          \
        transforms, kernel_size,                                                                                       \
        &(kn_transforms_gaussian_blur_params){KN_TRANSFORMS_GAUSSIAN_BLUR_DEFAULTS, __VA_ARGS__}))

/* --- policies ----------------------------------------------------------------------------------------------------- */

typedef struct kn_transforms_trivial_augment_params {
    int num_magnitude_bins;            /* default 31 */
    kn_interpolate_mode interpolation; /* default nearest; or bilinear */
    double fill;                       /* default 0 */
} kn_transforms_trivial_augment_params;
#define KN_TRANSFORMS_TRIVIAL_AUGMENT_DEFAULTS .num_magnitude_bins = 31, .interpolation = KN_INTERPOLATE_NEAREST
KN_API kn_transforms_trivial_augment_params kn_transforms_trivial_augment_params_init(void);
/* TrivialAugmentWide (Mueller and Hutter 2021): one random change of random strength, of fourteen. */
KN_API kn_status kn_transforms_trivial_augment_wide_with(kn_transforms *transforms,
                                                         const kn_transforms_trivial_augment_params *params);
#define kn_transforms_trivial_augment_wide(transforms, ...)                                                            \
    KN_CALL(kn_transforms_trivial_augment_wide_with(                                                                   \
        transforms, &(kn_transforms_trivial_augment_params){KN_TRANSFORMS_TRIVIAL_AUGMENT_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
