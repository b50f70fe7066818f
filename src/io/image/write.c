/* io/image/write.c - tensors [C, H, W] as PNG and JPEG files. */
#include "io/image/write.h"
#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "io/image/pixels.h"
#include "tensor/tensor.h"

kn_write_image_params kn_write_image_params_init(void) { return (kn_write_image_params){KN_WRITE_IMAGE_DEFAULTS}; }

static kn_status check(const char *function, const kn_tensor *image, const kn_image_format *format)
{
    char found[KN_DESCRIBE];
    if (kn_dtype_of(image) != KN_U8 || kn_ndim(image) != 3)
        return kn_fail(kn_ndim(image) != 3 ? KN_ERR_SHAPE : KN_ERR_DTYPE,
                       "%s: expected an image, uint8 [C, H, W], found %s (kn_save_image takes floating values)",
                       function, kn_tensor_describe(found, sizeof found, image));
    const int64_t channels = kn_size(image, 0), height = kn_size(image, 1), width = kn_size(image, 2);
    if (channels < 1 || channels > 4 || (format->is_jpeg && channels % 2 == 0))
        return kn_fail(KN_ERR_SHAPE, "%s: the image has %lld channels; a %s file has %s", function, (long long)channels,
                       format->is_jpeg ? "JPEG" : "PNG", format->is_jpeg ? "1 or 3" : "1 to 4");
    const int64_t most = format->is_jpeg ? 65500 : 1000000; /* the libraries' own limits */
    if (height < 1 || width < 1 || height > most || width > most)
        return kn_fail(KN_ERR_SHAPE, "%s: the image has %lld x %lld pixels; each side must be 1 to %lld", function,
                       (long long)width, (long long)height, (long long)most);
    return KN_OK;
}

/* The planes as interleaved bytes. */
static kn_status interleave(kn_pixels *pixels, kn_tensor *image)
{
    kn_tensor *planes = NULL;
    KN_TRY(kn_tensor_cast(&planes, image, KN_U8, kn_device_host()));
    const int64_t size = planes->shape[1] * planes->shape[2];
    *pixels = (kn_pixels){.channels = (int)planes->shape[0], .height = planes->shape[1], .width = planes->shape[2]};
    pixels->bytes = kn_malloc((size_t)(size * pixels->channels));
    const unsigned char *from = kn_data(planes);
    for (int c = 0; c < pixels->channels && pixels->bytes && from; c++)
        for (int64_t i = 0; i < size; i++)
            pixels->bytes[i * pixels->channels + c] = *from++;
    kn_release(planes);
    return pixels->bytes && from ? KN_OK : kn_error_status();
}

static kn_status save_bytes(const char *path, const unsigned char *data, size_t size)
{
    kn_atomic_file file = {0};
    KN_TRY(kn_file_begin(&file, path));
    return kn_file_end(&file, kn_file_write(&file, data, size));
}

kn_status kn_image_write(const char *function, kn_tensor *image, const char *path, const kn_image_format *format)
{
    KN_TRY(check(function, image, format));
    kn_pixels pixels = {0};
    unsigned char *data = NULL;
    size_t size = 0;
    kn_status status = interleave(&pixels, image);
    if (status == KN_OK)
        status = format->is_jpeg ? kn_jpeg_encode(&data, &size, &pixels, format->level)
                                 : kn_png_encode(&data, &size, &pixels, format->level);
    if (status == KN_OK)
        status = save_bytes(path, data, size);
    kn_free(data);
    kn_free(pixels.bytes);
    return status;
}

static kn_status write_as(const char *function, kn_tensor *image, const char *path, const char *option, int least,
                          int most, kn_image_format format)
{
    if (!image || !path)
        return kn_fail_argument_null(function, image ? "path" : "image");
    if (format.level < least || format.level > most)
        return kn_fail(KN_ERR_ARGUMENT, "%s: %s is %d; it must be from %d to %d", function, option, format.level, least,
                       most);
    return kn_image_write(function, image, path, &format);
}

kn_status kn_write_png_with(kn_tensor *image, const char *path, const kn_write_image_params *params)
{
    const int level = params ? params->compression_level : kn_write_image_params_init().compression_level;
    return write_as("kn_write_png", image, path, "compression_level", 0, 9, (kn_image_format){.level = level});
}

kn_status kn_write_jpeg_with(kn_tensor *image, const char *path, const kn_write_image_params *params)
{
    const int quality = params ? params->quality : kn_write_image_params_init().quality;
    return write_as("kn_write_jpeg", image, path, "quality", 1, 100,
                    (kn_image_format){.is_jpeg = true, .level = quality});
}
