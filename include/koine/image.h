/* koine/image.h - PNG and JPEG files, and grids of pictures. torchvision.io and torchvision.utils.
 *
 * Images are uint8 host tensors [C, H, W]: 1 channel gray, 2 gray and alpha, 3 RGB, 4 RGB and alpha. */
#ifndef KOINE_IMAGE_H
#define KOINE_IMAGE_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* torchvision.io.ImageReadMode. Gray is 0.2989 R + 0.587 G + 0.114 B, of a JPEG its luma; missing alpha is 255. */
typedef enum kn_image_mode {
    KN_IMAGE_UNCHANGED = 0, /* the file's channels; palettes become RGB, or with transparent entries RGB and alpha */
    KN_IMAGE_GRAY,
    KN_IMAGE_GRAY_ALPHA,
    KN_IMAGE_RGB,
    KN_IMAGE_RGB_ALPHA
} kn_image_mode;

typedef struct kn_image_params {
    kn_image_mode mode; /* default unchanged */
    /* default false; true: turned and mirrored as the file's EXIF orientation says, as viewers show it */
    bool apply_exif_orientation;
} kn_image_params;
#define KN_IMAGE_DEFAULTS .mode = KN_IMAGE_UNCHANGED
KN_API kn_image_params kn_image_params_init(void);

/* torchvision.io.read_image, decode_image: a PNG or JPEG file, known by its content, not by its name. 16 bits per
 * channel become 8, CMYK becomes RGB, colour profiles are ignored. A file that is damaged or truncated, or has more
 * than 2^27 pixels, is KN_ERR_FORMAT; the message names the file. Animated PNG: the first picture. */
KN_API kn_tensor *kn_read_image_with(const char *path, const kn_image_params *params);
KN_API kn_tensor *kn_decode_image_with(const void *data, size_t size, const kn_image_params *params);
#define kn_read_image(path, ...) KN_CALL(kn_read_image_with(path, &(kn_image_params){KN_IMAGE_DEFAULTS, __VA_ARGS__}))
#define kn_decode_image(data, size, ...)                                                                               \
    KN_CALL(kn_decode_image_with(data, size, &(kn_image_params){KN_IMAGE_DEFAULTS, __VA_ARGS__}))

/* --- writing: uint8 tensors of any device; files are replaced completely or not at all (koine/io.h) --------------- */

typedef struct kn_write_image_params {
    int compression_level; /* of PNG; default 6; 0: none, to 9 */
    int quality;           /* of JPEG; default 75; 1 to 100 */
} kn_write_image_params;
#define KN_WRITE_IMAGE_DEFAULTS .compression_level = 6, .quality = 75
KN_API kn_write_image_params kn_write_image_params_init(void);

/* torchvision.io.write_png, of 1 to 4 channels; write_jpeg, of 1 or 3. */
KN_API kn_status kn_write_png_with(kn_tensor *image, const char *path, const kn_write_image_params *params);
KN_API kn_status kn_write_jpeg_with(kn_tensor *image, const char *path, const kn_write_image_params *params);
#define kn_write_png(image, path, ...)                                                                                 \
    KN_CALL(kn_write_png_with(image, path, &(kn_write_image_params){KN_WRITE_IMAGE_DEFAULTS, __VA_ARGS__}))
#define kn_write_jpeg(image, path, ...)                                                                                \
    KN_CALL(kn_write_jpeg_with(image, path, &(kn_write_image_params){KN_WRITE_IMAGE_DEFAULTS, __VA_ARGS__}))

/* --- grids -------------------------------------------------------------------------------------------------------- */

typedef struct kn_image_grid_params {
    int nrow;              /* default 8: images per row */
    int padding;           /* default 2: pixels around each */
    bool normalize;        /* default false; true: value_range is mapped to 0 .. 1, values outside are clamped */
    double value_range[2]; /* default {0, 0}: the least and the greatest value */
    bool scale_each;       /* default false; true: of each image instead of all */
    double pad_value;      /* default 0 */
} kn_image_grid_params;
#define KN_IMAGE_GRID_DEFAULTS .nrow = 8, .padding = 2
KN_API kn_image_grid_params kn_image_grid_params_init(void);

/* torchvision.utils.make_grid: images [N, C, H, W], [C, H, W] or [H, W], of any device, side by side in one host
 * tensor [C, H', W'], float32 or, for uint8 without `normalize`, uint8. One channel becomes three. One image is
 * returned as it is, without padding. */
KN_API kn_tensor *kn_image_grid_with(kn_tensor *images, const kn_image_grid_params *params);
#define kn_image_grid(images, ...)                                                                                     \
    KN_CALL(kn_image_grid_with(images, &(kn_image_grid_params){KN_IMAGE_GRID_DEFAULTS, __VA_ARGS__}))

/* torchvision.utils.save_image: the grid as a .png, .jpg or .jpeg file. Floating values are 0 for black, 1 for
 * white. */
KN_API kn_status kn_save_image_with(kn_tensor *images, const char *path, const kn_image_grid_params *params);
#define kn_save_image(images, path, ...)                                                                               \
    KN_CALL(kn_save_image_with(images, path, &(kn_image_grid_params){KN_IMAGE_GRID_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
