/* io/image/read.c - images from files and memory as tensors [C, H, W]. */
#include "io/image/read.h"
#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "io/image/pixels.h"
#include "tensor/tensor.h"

#define LARGEST_FILE ((size_t)1 << 30)

kn_image_params kn_image_params_init(void) { return (kn_image_params){KN_IMAGE_DEFAULTS}; }

kn_status kn_pixels_allocate(kn_pixels *pixels, uint64_t width, uint64_t height, int channels)
{
    if (width == 0 || height == 0)
        return kn_fail(KN_ERR_FORMAT, "the image has no pixels");
    if (height > KN_IMAGE_MOST_PIXELS / width)
        return kn_fail(KN_ERR_FORMAT, "the image has %llu x %llu pixels; at most 2^27 are read",
                       (unsigned long long)width, (unsigned long long)height);
    pixels->width = (int64_t)width;
    pixels->height = (int64_t)height;
    pixels->channels = channels;
    pixels->bytes = kn_calloc((size_t)(width * height), (size_t)channels); /* zeroed: untouched pages cost nothing */
    return pixels->bytes ? KN_OK : KN_ERR_MEMORY;
}

/* --- decoding ----------------------------------------------------------------------------------------------------- */

static bool starts_with(const unsigned char *data, size_t size, const char *magic, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (i >= size || data[i] != (unsigned char)magic[i])
            return false;
    return true;
}

static kn_status decode(kn_pixels *pixels, const unsigned char *data, size_t size, const kn_image_params *params)
{
    if (starts_with(data, size, "\x89PNG\r\n\x1a\n", 8))
        return kn_png_decode(pixels, data, size);
    if (starts_with(data, size, "\xff\xd8\xff", 3))
        return kn_jpeg_decode(pixels, data, size, params->mode == KN_IMAGE_GRAY || params->mode == KN_IMAGE_GRAY_ALPHA);
    return kn_fail(KN_ERR_FORMAT, size == 0 ? "the file is empty" : "neither a PNG nor a JPEG file");
}

/* --- interleaved bytes to planes ---------------------------------------------------------------------------------- */

/* How to walk through the source in the order of the result's rows and columns. */
typedef struct walk {
    const unsigned char *start;
    int64_t width, height; /* of the result */
    int64_t step_x, step_y;
} walk;

/* EXIF's orientations: mirrored or not, and turned by quarters. */
static walk walk_of(const kn_pixels *pixels, int orientation)
{
    static const struct {
        bool turn, flip_x, flip_y;
    } kinds[9] = {{0, 0, 0}, {0, 0, 0}, {0, 1, 0}, {0, 1, 1}, {0, 0, 1}, {1, 0, 0}, {1, 0, 1}, {1, 1, 1}, {1, 1, 0}};
    const int64_t channels = pixels->channels, row = pixels->width * channels;
    int64_t dx = channels, dy = row;
    walk w = {.start = pixels->bytes, .width = pixels->width, .height = pixels->height};
    if (kinds[orientation].flip_x) {
        w.start += (pixels->width - 1) * channels;
        dx = -dx;
    }
    if (kinds[orientation].flip_y) {
        w.start += (pixels->height - 1) * row;
        dy = -dy;
    }
    w.step_x = dx;
    w.step_y = dy;
    if (kinds[orientation].turn)
        w = (walk){.start = w.start, .width = pixels->height, .height = pixels->width, .step_x = dy, .step_y = dx};
    return w;
}

/* libpng's fixed-point weights. */
static unsigned char luma(const unsigned char *rgb)
{
    return (unsigned char)((9794u * rgb[0] + 19235u * rgb[1] + 3739u * rgb[2] + 16384u) >> 15);
}

/* Channel `channel` of `channels` of the pixel at `from`, which has `have` channels. */
static inline unsigned char convert(const unsigned char *from, int have, int channel, int channels)
{
    const bool alpha = channels % 2 == 0 && channel == channels - 1;
    if (alpha)
        return have % 2 == 0 ? from[have - 1] : 255;
    if (channels <= 2)
        return have <= 2 ? from[0] : luma(from);
    return have <= 2 ? from[0] : from[channel];
}

static void separate(unsigned char *to, const walk *w, int have, int channels)
{
    for (int c = 0; c < channels; c++)
        for (int64_t y = 0; y < w->height; y++) {
            const unsigned char *from = w->start + y * w->step_y;
            for (int64_t x = 0; x < w->width; x++, from += w->step_x)
                *to++ = convert(from, have, c, channels);
        }
}

/* --- the public functions ----------------------------------------------------------------------------------------- */

static kn_status read_tensor(kn_tensor **tensor, const void *data, size_t size, const kn_image_params *params)
{
    static const int channels_of[] = {0, 1, 2, 3, 4};
    kn_pixels pixels = {0};
    kn_tensor *made = NULL;
    kn_status status = decode(&pixels, data, size, params);
    if (status == KN_OK) {
        const int channels = params->mode == KN_IMAGE_UNCHANGED ? pixels.channels : channels_of[params->mode];
        const walk w = walk_of(&pixels, params->apply_exif_orientation ? pixels.orientation : 0);
        status = kn_tensor_new(&made, KN_U8, 3, (const int64_t[]){channels, w.height, w.width}, kn_device_host());
        if (status == KN_OK)
            separate(made->storage->host, &w, pixels.channels, channels);
    }
    kn_free(pixels.bytes);
    *tensor = made;
    return status;
}

static kn_status check(const char *function, const kn_image_params *params)
{
    if ((unsigned)params->mode <= KN_IMAGE_RGB_ALPHA)
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT, "%s: mode is %d; it must be a kn_image_mode", function, (int)params->mode);
}

kn_tensor *kn_decode_image_with(const void *data, size_t size, const kn_image_params *params)
{
    params = params ? params : &(kn_image_params){KN_IMAGE_DEFAULTS};
    kn_tensor *tensor = NULL;
    if (!data)
        return kn_fail_argument_null("kn_decode_image", "data"), kn_error_make_sticky();
    kn_status status = check("kn_decode_image", params);
    if (status == KN_OK && (status = read_tensor(&tensor, data, size, params)) != KN_OK)
        kn_error_prefix("kn_decode_image");
    return status == KN_OK ? kn_scope_adopt(tensor) : kn_error_make_sticky();
}

kn_status kn_image_read(kn_tensor **tensor, const char *path, const kn_image_params *params)
{
    char *data = NULL;
    size_t size = 0;
    KN_TRY(kn_file_read_all(&data, &size, path, LARGEST_FILE));
    kn_status status = read_tensor(tensor, data, size, params);
    kn_free(data);
    if (status != KN_OK)
        kn_error_prefix("'%s'", path);
    return status;
}

kn_tensor *kn_read_image_with(const char *path, const kn_image_params *params)
{
    params = params ? params : &(kn_image_params){KN_IMAGE_DEFAULTS};
    kn_tensor *tensor = NULL;
    if (!path)
        return kn_fail_argument_null("kn_read_image", "path"), kn_error_make_sticky();
    kn_status status = check("kn_read_image", params);
    if (status == KN_OK)
        status = kn_image_read(&tensor, path, params);
    return status == KN_OK ? kn_scope_adopt(tensor) : kn_error_make_sticky();
}
