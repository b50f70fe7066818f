/* io/image/grid.c - many images side by side in one: torchvision.utils.make_grid and save_image. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "io/image/write.h"
#include "tensor/tensor.h"

kn_image_grid_params kn_image_grid_params_init(void) { return (kn_image_grid_params){KN_IMAGE_GRID_DEFAULTS}; }

static kn_status check(const char *function, const kn_tensor *images, const kn_image_grid_params *params)
{
    char found[KN_DESCRIBE];
    const int ndim = kn_ndim(images);
    const int64_t channels = ndim < 3 ? 1 : kn_size(images, ndim - 3);
    if (ndim < 2 || ndim > 4 || channels < 1 || channels > 4 || kn_numel(images) == 0)
        return kn_fail(KN_ERR_SHAPE,
                       "%s: expected images [N, C, H, W], [C, H, W] or [H, W] of 1 to 4 channels, found %s", function,
                       kn_tensor_describe(found, sizeof found, images));
    if (params->nrow < 1 || params->padding < 0)
        return kn_fail(KN_ERR_ARGUMENT, "%s: %s is %d; it must be %d or more", function,
                       params->nrow < 1 ? "nrow" : "padding", params->nrow < 1 ? params->nrow : params->padding,
                       params->nrow < 1 ? 1 : 0);
    if (!(params->value_range[0] <= params->value_range[1]))
        return kn_fail(KN_ERR_ARGUMENT, "%s: value_range is from %g to %g; it must rise", function,
                       params->value_range[0], params->value_range[1]);
    return KN_OK;
}

/* Maps [low, high] to [0, 1]; without a range, that of the values. */
static void rescale(float *values, int64_t count, const double range[2])
{
    float low = (float)range[0], high = (float)range[1];
    if (range[0] == range[1]) {
        low = high = values[0];
        for (int64_t i = 1; i < count; i++) {
            low = fminf(low, values[i]);
            high = fmaxf(high, values[i]);
        }
    }
    const float width = fmaxf(high - low, 1e-5f);
    for (int64_t i = 0; i < count; i++)
        values[i] = (fminf(fmaxf(values[i], low), high) - low) / width;
}

/* Writes one image at `to`, in a picture whose rows and planes have these numbers of bytes. */
static void place(char *to, size_t row, size_t plane, const char *image, int have, int channels, int64_t height,
                  size_t width)
{
    for (int c = 0; c < channels; c++)
        for (int64_t y = 0; y < height; y++)
            memcpy(to + (size_t)c * plane + (size_t)y * row,
                   image + ((size_t)(have == 1 ? 0 : c) * (size_t)height + (size_t)y) * width, width);
}

static void fill(kn_tensor *tensor, double value)
{
    const int64_t count = kn_shape_numel(tensor->ndim, tensor->shape);
    if (tensor->dtype == KN_U8)
        memset(tensor->storage->host, (unsigned char)fmin(fmax(value, 0), 255), (size_t)count);
    else
        for (int64_t i = 0; i < count; i++)
            ((float *)tensor->storage->host)[i] = (float)value;
}

/* Of contiguous host images [count, have, height, width]. */
static kn_status arrange(kn_tensor **grid, const kn_tensor *images, const kn_image_grid_params *params)
{
    const int ndim = images->ndim;
    const int64_t count = ndim == 4 ? images->shape[0] : 1, height = images->shape[ndim - 2];
    const int64_t width = images->shape[ndim - 1], have = ndim < 3 ? 1 : images->shape[ndim - 3];
    const int64_t channels = have == 1 ? 3 : have, padding = count == 1 ? 0 : params->padding;
    const int64_t columns = count < params->nrow ? count : params->nrow, rows = (count + columns - 1) / columns;
    const int64_t shape[] = {channels, rows * (height + padding) + padding, columns * (width + padding) + padding};
    KN_TRY(kn_tensor_new(grid, images->dtype, 3, shape, kn_device_host()));
    fill(*grid, params->pad_value);
    const size_t element = kn_dtype_size(images->dtype), row = (size_t)shape[2] * element;
    for (int64_t i = 0; i < count; i++) {
        const int64_t y = i / columns * (height + padding) + padding, x = i % columns * (width + padding) + padding;
        place((char *)(*grid)->storage->host + (size_t)y * row + (size_t)x * element, row, row * (size_t)shape[1],
              (const char *)images->storage->host + (size_t)(i * have * height * width) * element, (int)have,
              (int)channels, height, (size_t)width * element);
    }
    return KN_OK;
}

static kn_status make(kn_tensor **grid, const char *function, kn_tensor *images, const kn_image_grid_params *params)
{
    kn_tensor *host = NULL;
    KN_TRY(check(function, images, params));
    const bool bytes = kn_dtype_of(images) == KN_U8 && !params->normalize;
    KN_TRY(kn_tensor_cast(&host, images, bytes ? KN_U8 : KN_F32, kn_device_host()));
    if (params->normalize) {
        const int64_t parts = params->scale_each && host->ndim == 4 ? host->shape[0] : 1;
        const int64_t size = kn_shape_numel(host->ndim, host->shape) / parts;
        for (int64_t i = 0; i < parts; i++)
            rescale((float *)host->storage->host + i * size, size, params->value_range);
    }
    kn_status status = arrange(grid, host, params);
    kn_release(host);
    return status;
}

kn_tensor *kn_image_grid_with(kn_tensor *images, const kn_image_grid_params *params)
{
    params = params ? params : &(kn_image_grid_params){KN_IMAGE_GRID_DEFAULTS};
    kn_tensor *grid = NULL;
    if (!images)
        return kn_fail_argument_null("kn_image_grid", "images"), kn_error_make_sticky();
    return make(&grid, "kn_image_grid", images, params) == KN_OK ? kn_scope_adopt(grid) : kn_error_make_sticky();
}

/* --- saving ------------------------------------------------------------------------------------------------------- */

static kn_status find_format(kn_image_format *format, const char *path)
{
    const char *dot = strrchr(path, '.');
    if (dot && kn_text_equals_nocase(dot, ".png"))
        *format = (kn_image_format){.level = kn_write_image_params_init().compression_level};
    else if (dot && (kn_text_equals_nocase(dot, ".jpg") || kn_text_equals_nocase(dot, ".jpeg")))
        *format = (kn_image_format){.is_jpeg = true, .level = kn_write_image_params_init().quality};
    else
        return kn_fail(KN_ERR_ARGUMENT, "kn_save_image: '%s' must end in .png, .jpg or .jpeg", path);
    return KN_OK;
}

/* Rounded to 0 .. 255; NaN becomes black. */
static kn_status quantise(kn_tensor **bytes, const kn_tensor *image)
{
    if (image->dtype == KN_U8)
        return kn_tensor_contiguous(bytes, (kn_tensor *)(uintptr_t)image);
    KN_TRY(kn_tensor_new(bytes, KN_U8, image->ndim, image->shape, kn_device_host()));
    const int64_t count = kn_shape_numel(image->ndim, image->shape);
    const float *from = image->storage->host;
    unsigned char *to = (*bytes)->storage->host;
    for (int64_t i = 0; i < count; i++)
        to[i] = (unsigned char)fminf(fmaxf(from[i] * 255 + 0.5f, 0), 255);
    return KN_OK;
}

kn_status kn_save_image_with(kn_tensor *images, const char *path, const kn_image_grid_params *params)
{
    params = params ? params : &(kn_image_grid_params){KN_IMAGE_GRID_DEFAULTS};
    kn_tensor *grid = NULL, *bytes = NULL;
    kn_image_format format;
    if (!images || !path)
        return kn_fail_argument_null("kn_save_image", images ? "path" : "images");
    KN_TRY(find_format(&format, path));
    kn_status status = make(&grid, "kn_save_image", images, params);
    if (status == KN_OK)
        status = quantise(&bytes, grid);
    if (status == KN_OK)
        status = kn_image_write("kn_save_image", bytes, path, &format);
    kn_release(bytes);
    kn_release(grid);
    return status;
}
