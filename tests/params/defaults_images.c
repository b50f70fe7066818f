/* defaults_images.c - images, transforms, datasets of images. */
#include "defaults.h"

/* --- a small picture, and what a pipeline makes of it --- */

static kn_tensor *picture(void)
{
    kn_tensor *image = kn_empty(KN_SHAPE(3, 9, 8), .dtype = KN_U8, .device = kn_device_host());
    for (int i = 0; i < 216; i++)
        ((uint8_t *)kn_data(image))[i] = (uint8_t)(i * 7);
    return image;
}

static kn_transforms *pipeline(void)
{
    static kn_transforms *kept;
    kn_transforms_free(kept);
    return kept = kn_transforms_new();
}

/* Of the pipeline that was made last. */
static kn_transforms *steps;
static char *show_steps(kn_status status)
{
    KN_SCOPE;
    return status == KN_OK ? show_tensor(kn_transforms_apply(steps, picture(), 3)) : show_error();
}

/* clang-format off */
CALLS(kn_transforms_random_erasing, kn_transforms_random_erasing_params, show_steps,
      kn_transforms_random_erasing_with(steps = pipeline(), params), kn_transforms_random_erasing(steps = pipeline()))
CALLS(kn_transforms_resize, kn_transforms_resize_params, show_steps,
      kn_transforms_resize_with(steps = pipeline(), 5, params), kn_transforms_resize(steps = pipeline(), 5))
CALLS(kn_transforms_random_crop, kn_transforms_crop_params, show_steps,
      kn_transforms_random_crop_with(steps = pipeline(), 5, 4, params),
      kn_transforms_random_crop(steps = pipeline(), 5, 4))
CALLS(kn_transforms_random_resized_crop, kn_transforms_resized_crop_params, show_steps,
      kn_transforms_random_resized_crop_with(steps = pipeline(), 5, 4, params),
      kn_transforms_random_resized_crop(steps = pipeline(), 5, 4))
CALLS(kn_transforms_random_affine, kn_transforms_affine_params, show_steps,
      kn_transforms_random_affine_with(steps = pipeline(), -30, 30, params),
      kn_transforms_random_affine(steps = pipeline(), -30, 30))
CALLS(kn_transforms_random_rotation, kn_transforms_rotation_params, show_steps,
      kn_transforms_random_rotation_with(steps = pipeline(), -30, 30, params),
      kn_transforms_random_rotation(steps = pipeline(), -30, 30))
CALLS(kn_transforms_color_jitter, kn_transforms_color_jitter_params, show_steps,
      kn_transforms_color_jitter_with(steps = pipeline(), params), kn_transforms_color_jitter(steps = pipeline()))
CALLS(kn_transforms_gaussian_blur, kn_transforms_gaussian_blur_params, show_steps,
      kn_transforms_gaussian_blur_with(steps = pipeline(), 5, params),
      kn_transforms_gaussian_blur(steps = pipeline(), 5))
CALLS(kn_transforms_trivial_augment_wide, kn_transforms_trivial_augment_params, show_steps,
      kn_transforms_trivial_augment_wide_with(steps = pipeline(), params),
      kn_transforms_trivial_augment_wide(steps = pipeline()))
/* clang-format on */

/* --- datasets --- */

static char *show_first(kn_dataset *dataset)
{
    static float image[216];
    int64_t target;
    char text[64];
    if (!dataset || kn_dataset_get(dataset, 0, (void *[]){image, &target}) != KN_OK)
        return show_error();
    snprintf(text, sizeof text, "%d %g", (int)kn_dataset_field(dataset, 0)->dtype, (double)image[1]);
    kn_dataset_free(dataset);
    return strdup(text);
}

static kn_dataset *pictures(void)
{
    KN_SCOPE;
    kn_tensor *images = kn_ones(KN_SHAPE(1, 3, 4, 4), .device = kn_device_host());
    return kn_tensor_dataset(images, kn_zeros(KN_SHAPE(1), .dtype = KN_I64, .device = kn_device_host()));
}

static kn_transforms *to_floats(void)
{
    kn_transforms *made = pipeline();
    kn_transforms_center_crop(made, 2, 2);
    kn_transforms_to_tensor(made);
    return made;
}

CALLS(kn_transforms_dataset, kn_transforms_dataset_params, show_first,
      kn_transforms_dataset_with(pictures(), to_floats(), params), kn_transforms_dataset(pictures(), to_floats()))
CALLS(kn_image_folder, kn_image_folder_params, show_first, kn_image_folder_with("/nowhere", to_floats(), params),
      kn_image_folder("/nowhere", to_floats()))

/* --- files and grids --- */

static const char file[] = KOINE_BINARY_DIR "/tests/defaults.png";

/* The size of the file that was written. */
static char *show_file(kn_status status)
{
    FILE *written = status == KN_OK ? fopen(file, "rb") : NULL;
    char text[32];
    if (!written)
        return show_error();
    fseek(written, 0, SEEK_END);
    snprintf(text, sizeof text, "%ld", ftell(written));
    fclose(written);
    return strdup(text);
}

static const char *written(void)
{
    kn_write_png(picture(), file);
    return file;
}

static const void *encoded(size_t *size)
{
    static unsigned char data[4096];
    FILE *source = fopen(written(), "rb");
    *size = source ? fread(data, 1, sizeof data, source) : 0;
    if (source)
        fclose(source);
    return data;
}

static char *decoded(bool with, const kn_image_params *params)
{
    size_t size;
    const void *data = encoded(&size);
    return show_tensor(with ? kn_decode_image_with(data, size, params) : kn_decode_image(data, size));
}

CALLS(kn_write_png, kn_write_image_params, show_file, kn_write_png_with(picture(), file, params),
      kn_write_png(picture(), file))
CALLS(kn_write_jpeg, kn_write_image_params, show_file, kn_write_jpeg_with(picture(), file, params),
      kn_write_jpeg(picture(), file))
CALLS(kn_save_image, kn_image_grid_params, show_file, kn_save_image_with(picture(), file, params),
      kn_save_image(picture(), file))
CALLS(kn_read_image, kn_image_params, show_tensor, kn_read_image_with(written(), params), kn_read_image(written()))
CALLS(kn_decode_image, kn_image_params, , decoded(true, params), decoded(false, NULL))
CALLS(kn_image_grid, kn_image_grid_params, show_tensor, kn_image_grid_with(kn_ones(KN_SHAPE(9, 3, 2, 2)), params),
      kn_image_grid(kn_ones(KN_SHAPE(9, 3, 2, 2))))

/* clang-format off */
DEFAULTS(images_defaults,
         ROW(kn_transforms_random_erasing),
         ROW(kn_transforms_resize),
         ROW(kn_transforms_random_crop),
         ROW(kn_transforms_random_resized_crop),
         ROW(kn_transforms_random_affine),
         ROW(kn_transforms_random_rotation),
         ROW(kn_transforms_color_jitter),
         ROW(kn_transforms_gaussian_blur),
         ROW(kn_transforms_trivial_augment_wide),
         ROW(kn_transforms_dataset),
         NEEDS(kn_image_folder),
         ROW(kn_write_png),
         ROW(kn_write_jpeg),
         ROW(kn_save_image),
         ROW(kn_read_image),
         ROW(kn_decode_image),
         ROW(kn_image_grid))
/* clang-format on */
