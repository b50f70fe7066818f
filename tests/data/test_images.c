/* test_images.c - PNG and JPEG: decoded as by torchvision, damaged, written; grids. */
#include <koine/koine.h>
#include <math.h>
#include <stdlib.h>

#include "io/check.h"
#include "io/files.h"
#include "support/golden.h"

static kn_tensor_file *golden;

static int open_golden(void **state)
{
    (void)state;
    golden = golden_open("images");
    return golden ? 0 : -1;
}

static int close_golden(void **state)
{
    (void)state;
    kn_tensor_file_free(golden);
    return 0;
}

static kn_tensor *expected(const char *name)
{
    kn_tensor *tensor = kn_tensor_file_get(golden, name);
    if (!tensor)
        fail_msg("images.safetensors has no %s", name);
    return tensor;
}

/* The largest difference; fails if the shapes differ. */
static double difference(kn_tensor *found, kn_tensor *wanted)
{
    double largest = 0;
    assert_non_null(found);
    assert_int_equal(kn_ndim(found), kn_ndim(wanted));
    assert_int_equal(kn_dtype_of(found), kn_dtype_of(wanted));
    for (int dim = 0; dim < kn_ndim(wanted); dim++)
        assert_int_equal(kn_size(found, dim), kn_size(wanted, dim));
    for (int64_t i = 0; i < kn_numel(wanted); i++) {
        const double a = kn_dtype_of(found) == KN_U8 ? ((uint8_t *)kn_data(found))[i] : ((float *)kn_data(found))[i];
        const double b = kn_dtype_of(found) == KN_U8 ? ((uint8_t *)kn_data(wanted))[i] : ((float *)kn_data(wanted))[i];
        largest = fmax(largest, fabs(a - b));
    }
    return largest;
}

/* --- decoding ----------------------------------------------------------------------------------------------------- */

static void decodes_as_torchvision(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        kn_image_mode mode;
    } modes[] = {{"unchanged", KN_IMAGE_UNCHANGED}, {"gray", KN_IMAGE_GRAY}, {"rgb", KN_IMAGE_RGB}};
    char *names = golden_words(golden, "files"), key[128];
    for (const char *name = names; *name; name = GOLDEN_NEXT(name)) {
        snprintf(key, sizeof key, "decode/%s/file", name);
        kn_tensor *file = expected(key);
        for (int m = 0; m < 3; m++) {
            KN_SCOPE;
            snprintf(key, sizeof key, "decode/%s/%s", name, modes[m].name);
            kn_tensor *wanted = kn_tensor_file_get(golden, key), *found;
            if (!wanted)
                continue;
            assert_new(found = kn_decode_image(kn_data(file), (size_t)kn_numel(file), .mode = modes[m].mode));
            const double most = strstr(name, "cmyk") || (strstr(name, "png") && m == 1) ? 1 : 0;
            if (difference(found, wanted) > most)
                fail_msg("%s: differs by %g", key, difference(found, wanted));
        }
    }
    free(names);
}

static void turns_as_exif_says(void **state)
{
    (void)state;
    char key[64];
    for (int orientation = 1; orientation <= 8; orientation++) {
        KN_SCOPE;
        snprintf(key, sizeof key, "orientation/%d/file", orientation);
        kn_tensor *file = expected(key), *found;
        assert_new(found = kn_decode_image(kn_data(file), (size_t)kn_numel(file), .mode = KN_IMAGE_RGB,
                                           .apply_exif_orientation = true));
        snprintf(key, sizeof key, "orientation/%d/rgb", orientation);
        assert_true(difference(found, expected(key)) == 0);
        assert_new(found = kn_decode_image(kn_data(file), (size_t)kn_numel(file)));
        assert_int_equal(kn_size(found, 1), 8);
        assert_int_equal(kn_size(found, 2), 16);
    }
}

static void adds_and_drops_alpha(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_tensor *file = expected("decode/png_rgb/file"), *rgba, *la;
    const size_t size = (size_t)kn_numel(file);
    assert_new(rgba = kn_decode_image(kn_data(file), size, .mode = KN_IMAGE_RGB_ALPHA));
    assert_int_equal(kn_size(rgba, 0), 4);
    assert_int_equal(((uint8_t *)kn_data(rgba))[3 * 13 * 17], 255);
    assert_new(la = kn_decode_image(kn_data(file), size, .mode = KN_IMAGE_GRAY_ALPHA));
    assert_int_equal(kn_size(la, 0), 2);
}

/* --- damaged files ------------------------------------------------------------------------------------------------ */

static void expect_refused(const char *name, const void *data, size_t size, const char *reason)
{
    kn_tensor *image;
    const char *path = temporary(name);
    write_bytes(path, data, size);
    assert_fails(kn_status_of(image = kn_read_image(path)), KN_ERR_FORMAT, reason);
    write_bytes(path, data, size);
    assert_fails(kn_status_of(image = kn_read_image(path)), KN_ERR_FORMAT, name);
}

static void damaged_files_are_refused(void **state)
{
    (void)state;
    kn_tensor *image = NULL;
    kn_tensor *png = expected("decode/png_rgb/file"), *jpeg = expected("decode/jpeg_rgb/file");
    const size_t png_size = (size_t)kn_numel(png), jpeg_size = (size_t)kn_numel(jpeg);
    expect_refused("short.png", kn_data(png), png_size - 40, "damaged PNG data: the file is truncated");
    expect_refused("short.jpg", kn_data(jpeg), jpeg_size - 40, "damaged JPEG data: Premature end");
    expect_refused("header.jpg", kn_data(jpeg), 20, "damaged JPEG data: ");
    expect_refused("empty.png", "", 0, "the file is empty");
    expect_refused("text.png", "GIF89a", 6, "neither a PNG nor a JPEG file");
    expect_refused("magic.png", "\x89PNG\r\n\x1a\n", 8, "the file is truncated");
    unsigned char *large = malloc(png_size);
    assert_non_null(large);
    memcpy(large, kn_data(png), png_size);
    static const unsigned char size[] = {0x00, 0x01, 0x86, 0xa0, 0x00, 0x01, 0x86, 0xa0, 0x08,
                                         0x02, 0,    0,    0,    0x2d, 0xfe, 0x80, 0xd2}; /* 100000 x 100000 */
    memcpy(large + 16, size, sizeof size);
    expect_refused("large.png", large, png_size, "PNG data");
    free(large);
    assert_fails(kn_status_of(image = kn_read_image(temporary("absent.png"))), KN_ERR_IO, "absent.png");
    assert_fails(kn_status_of(image = kn_read_image(NULL)), KN_ERR_ARGUMENT, "path");
    assert_fails(kn_status_of(image = kn_decode_image("x", 1, .mode = (kn_image_mode)9)), KN_ERR_ARGUMENT,
                 "mode is 9; it must be a kn_image_mode");
}

/* Each damaged copy is decoded or refused with a message; the sanitizers watch. */
static void hostile_files_do_no_harm(void **state)
{
    (void)state;
    static const char *const names[] = {"png_palette", "png_interlaced", "jpeg_rgb", "jpeg_progressive", "jpeg_cmyk"};
    char key[64];
    for (int f = 0; f < 5; f++) {
        snprintf(key, sizeof key, "decode/%s/file", names[f]);
        kn_tensor *file = expected(key);
        const byte_block original = {.data = kn_data(file), .size = (size_t)kn_numel(file)};
        for (uint64_t n = 0; n < 150; n++) {
            KN_SCOPE;
            byte_block damaged = mutated(&original, n);
            if (damaged.size > 0 && !kn_decode_image(damaged.data, damaged.size, .apply_exif_orientation = true))
                assert_true(kn_error_message()[0] != '\0');
            kn_error_clear();
            bytes_free(&damaged);
        }
    }
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static kn_tensor *pattern(int64_t channels, int64_t height, int64_t width)
{
    kn_tensor *image = kn_empty(KN_SHAPE(channels, height, width), .dtype = KN_U8, .device = kn_device_host());
    for (int64_t i = 0; i < channels * height * width; i++)
        ((uint8_t *)kn_data(image))[i] = (uint8_t)(i * 37 + i / 7);
    return image;
}

static void png_files_hold_what_was_written(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 4; channels++) {
        KN_SCOPE;
        kn_tensor *image = pattern(channels, 5, 6), *again;
        const char *path = temporary("round.png");
        assert_ok(kn_write_png(image, path, .compression_level = channels));
        assert_new(again = kn_read_image(path));
        assert_true(difference(again, image) == 0);
    }
    assert_int_equal(count_files_beside(temporary("round.png")) > 0, 1);
}

static void jpeg_files_are_close_to_what_was_written(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_tensor *image = expected("image"), *again;
    assert_ok(kn_write_jpeg(image, temporary("round.jpg"), .quality = 100));
    assert_new(again = kn_read_image(temporary("round.jpg")));
    assert_true(difference(again, image) < 160); /* colours at half the resolution */
    kn_tensor *gray = pattern(1, 8, 8);
    for (int i = 0; i < 64; i++)
        ((uint8_t *)kn_data(gray))[i] = (uint8_t)(4 * i);
    assert_ok(kn_write_jpeg(gray, temporary("gray.jpg"), .quality = 100));
    assert_new(again = kn_read_image(temporary("gray.jpg")));
    assert_true(difference(again, gray) <= 3);
}

static void what_cannot_be_written_is_refused(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_tensor *image = pattern(2, 3, 3), *floats = kn_zeros(KN_SHAPE(3, 2, 2), .device = kn_device_host());
    assert_fails(kn_write_jpeg(image, temporary("a.jpg")), KN_ERR_SHAPE, "2 channels; a JPEG file has 1 or 3");
    assert_fails(kn_write_png(floats, temporary("a.png")), KN_ERR_DTYPE, "expected an image, uint8 [C, H, W], found");
    assert_fails(kn_write_png(image, temporary("a.png"), .compression_level = 10), KN_ERR_ARGUMENT,
                 "compression_level is 10; it must be from 0 to 9");
    assert_fails(kn_write_jpeg(image, temporary("a.jpg"), .quality = 0), KN_ERR_ARGUMENT, "quality is 0");
    assert_fails(kn_write_png(pattern(1, 0, 3), temporary("a.png")), KN_ERR_SHAPE, "3 x 0 pixels");
    assert_fails(kn_write_png(image, "/nowhere/a.png"), KN_ERR_IO, "/nowhere");
    assert_fails(kn_save_image(floats, temporary("a.bmp")), KN_ERR_ARGUMENT, "must end in .png, .jpg or .jpeg");
    assert_fails(kn_save_image(floats, NULL), KN_ERR_ARGUMENT, "path");
}

/* --- grids -------------------------------------------------------------------------------------------------------- */

static void grids_are_torchvisions(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_tensor *images = expected("grid/in");
    assert_true(difference(kn_image_grid(images, .nrow = 3), expected("grid/plain")) == 0);
    kn_tensor *grid =
        kn_image_grid(images, .nrow = 2, .padding = 1, .normalize = true, .scale_each = true, .pad_value = 0.5);
    assert_true(difference(grid, expected("grid/normalized")) < 1e-6);
    grid = kn_image_grid(kn_slice(kn_to(images, kn_device_current()), 1, 0, 1, 1), .normalize = true,
                         .value_range = {-1, 1});
    assert_true(difference(grid, expected("grid/range")) < 1e-6);
    assert_fails(kn_status_of(grid = kn_image_grid(images, .nrow = 0)), KN_ERR_ARGUMENT, "nrow is 0; it must be 1");
    assert_fails(kn_status_of(grid = kn_image_grid(kn_ones(KN_SHAPE(3)))), KN_ERR_SHAPE,
                 "expected images [N, C, H, W]");
}

static void save_image_rounds(void **state)
{
    (void)state;
    KN_SCOPE;
    const float values[] = {-1, 0, 0.5f, 1, 2, 0.002f, 0.0019f, NAN};
    const uint8_t bytes[] = {0, 0, 128, 255, 255, 1, 0, 0};
    kn_tensor *again;
    assert_ok(kn_save_image(kn_from_data(values, KN_SHAPE(2, 4)), temporary("saved.png")));
    assert_new(again = kn_read_image(temporary("saved.png"), .mode = KN_IMAGE_GRAY));
    assert_memory_equal(kn_data(again), bytes, sizeof bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_as_torchvision),
        cmocka_unit_test(turns_as_exif_says),
        cmocka_unit_test(adds_and_drops_alpha),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(hostile_files_do_no_harm),
        cmocka_unit_test(png_files_hold_what_was_written),
        cmocka_unit_test(jpeg_files_are_close_to_what_was_written),
        cmocka_unit_test(what_cannot_be_written_is_refused),
        cmocka_unit_test(grids_are_torchvisions),
        cmocka_unit_test(save_image_rounds),
    };
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
