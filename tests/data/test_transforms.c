/* test_transforms.c - transforms with fixed factors against torchvision's; random ones by their properties. */
#include <koine/koine.h>
#include <math.h>
#include <stdlib.h>

#include "data/transforms/draws.h"
#include "io/check.h"
#include "support/golden.h"

/* --- with fixed factors ------------------------------------------------------------------------------------------- */

static const float mean[] = {0.5f, 0.4f, 0.3f}, std[] = {0.2f, 0.25f, 0.3f};

/* Adds the steps of the case; `white` is 255 or 1. */
static void add_steps(kn_transforms *t, const char *name, double white)
{
    int known = 0;
#define CASE(label) if (strcmp(name, label) == 0 && ++known)
    CASE("resize_smaller") kn_transforms_resize(t, 7, .width = 11);
    CASE("resize_larger") kn_transforms_resize(t, 31, .width = 40);
    CASE("resize_mixed") kn_transforms_resize(t, 40, .width = 9);
    CASE("resize_short") kn_transforms_resize(t, 10);
    CASE("resize_nearest") kn_transforms_resize(t, 7, .width = 40, .interpolation = KN_INTERPOLATE_NEAREST);
    CASE("resize_bicubic") kn_transforms_resize(t, 9, .width = 30, .interpolation = KN_INTERPOLATE_BICUBIC);
    CASE("resize_to_one") kn_transforms_resize(t, 1, .width = 1);
    CASE("center_crop") kn_transforms_center_crop(t, 8, 9);
    CASE("center_crop_odd") kn_transforms_center_crop(t, 12, 14);
    CASE("center_crop_larger") kn_transforms_center_crop(t, 24, 18);
    CASE("horizontal_flip") kn_transforms_random_horizontal_flip(t, 1);
    CASE("vertical_flip") kn_transforms_random_vertical_flip(t, 1);
    CASE("rotate_31") kn_transforms_random_rotation(t, 31, 31);
    CASE("rotate_bilinear")
    kn_transforms_random_rotation(t, -17.3, -17.3, .interpolation = KN_INTERPOLATE_BILINEAR);
    CASE("rotate_fill")
    kn_transforms_random_rotation(t, 200, 200, .interpolation = KN_INTERPOLATE_BILINEAR, .fill = 0.25 * white);
    CASE("rotate_180") kn_transforms_random_rotation(t, 180, 180);
    CASE("rotate_square_90")
    {
        kn_transforms_center_crop(t, 12, 12);
        kn_transforms_random_rotation(t, 90, 90);
    }
    CASE("rotate_square_270")
    {
        kn_transforms_center_crop(t, 12, 12);
        kn_transforms_random_rotation(t, -90, -90);
    }
    CASE("affine")
    kn_transforms_random_affine(t, 11, 11, .scale = {1.3, 1.3}, .shear = {7, 7, -5, -5},
                                .interpolation = KN_INTERPOLATE_BILINEAR, .fill = 0.5 * white);
    CASE("brightness_up") kn_transforms_color_jitter(t, .brightness = {1.7, 1.7});
    CASE("brightness_down") kn_transforms_color_jitter(t, .brightness = {0.3, 0.3});
    CASE("contrast_up") kn_transforms_color_jitter(t, .contrast = {1.6, 1.6});
    CASE("contrast_down") kn_transforms_color_jitter(t, .contrast = {0.2, 0.2});
    CASE("saturation_up") kn_transforms_color_jitter(t, .saturation = {2.1, 2.1});
    CASE("saturation_down") kn_transforms_color_jitter(t, .saturation = {0.4, 0.4});
    CASE("hue_up") kn_transforms_color_jitter(t, .hue = {0.21, 0.21});
    CASE("hue_down") kn_transforms_color_jitter(t, .hue = {-0.48, -0.48});
    CASE("grayscale") kn_transforms_random_grayscale(t, 1);
    CASE("invert") kn_transforms_random_invert(t, 1);
    CASE("autocontrast") kn_transforms_random_autocontrast(t, 1);
    CASE("equalize") kn_transforms_random_equalize(t, 1);
    CASE("posterize") kn_transforms_random_posterize(t, 3, 1);
    CASE("solarize") kn_transforms_random_solarize(t, 0.5 * white, 1);
    CASE("sharper") kn_transforms_random_adjust_sharpness(t, 2.5, 1);
    CASE("blunter") kn_transforms_random_adjust_sharpness(t, 0.2, 1);
    CASE("blur_3") kn_transforms_gaussian_blur(t, 3, .sigma = {0.7, 0.7});
    CASE("blur_9") kn_transforms_gaussian_blur(t, 9, .sigma = {2, 2});
    CASE("normalize")
    {
        kn_transforms_to_tensor(t);
        kn_transforms_normalize(t, 3, mean, std);
    }
#undef CASE
    if (!known)
        fail_msg("no steps for %s", name);
}

static double element(kn_tensor *t, int64_t i)
{
    return kn_dtype_of(t) == KN_U8 ? ((uint8_t *)kn_data(t))[i] : ((float *)kn_data(t))[i];
}

/* Floats differ by rounding. Bytes may be another whole number where torchvision's sum is next to one or a half: in at
 * most one of 50 elements, by 1. */
static void compare(const char *name, kn_tensor *found, kn_tensor *wanted)
{
    const bool bytes = kn_dtype_of(wanted) == KN_U8;
    double largest = 0;
    int64_t different = 0;
    assert_int_equal(kn_dtype_of(found), kn_dtype_of(wanted));
    for (int dim = 0; dim < 3; dim++)
        assert_int_equal(kn_size(found, dim), kn_size(wanted, dim));
    for (int64_t i = 0; i < kn_numel(wanted); i++) {
        const double d = fabs(element(found, i) - element(wanted, i));
        largest = fmax(largest, d);
        different += d > 0;
    }
    if (bytes ? largest > 1 || different > kn_numel(wanted) / 50 : largest > 5e-6)
        fail_msg("%s, %s: %lld of %lld elements differ, by up to %g", name, bytes ? "uint8" : "float32",
                 (long long)different, (long long)kn_numel(wanted), largest);
}

static void fixed_factors_give_torchvisions_values(void **state)
{
    (void)state;
    kn_tensor_file *file = golden_open("images");
    assert_non_null(file);
    char *names = golden_words(file, "cases"), key[64];
    for (const char *name = names; *name; name = GOLDEN_NEXT(name))
        for (int bytes = 0; bytes < 2; bytes++) {
            KN_SCOPE;
            kn_tensor *image = kn_tensor_file_get(file, "image"), *found = NULL;
            kn_transforms *t = kn_transforms_new();
            if (!bytes) {
                kn_tensor *floats = kn_empty(KN_SHAPE(3, 19, 23), .device = kn_device_host());
                for (int64_t i = 0; i < kn_numel(floats); i++)
                    ((float *)kn_data(floats))[i] = (float)((uint8_t *)kn_data(image))[i] / 255;
                image = floats;
            }
            add_steps(t, name, bytes ? 255 : 1);
            assert_new(found = kn_transforms_apply(t, image, 7));
            snprintf(key, sizeof key, "%s/%s", name, bytes ? "u8" : "f32");
            compare(name, found, kn_tensor_file_get(file, key));
            kn_transforms_free(t);
        }
    free(names);
    kn_tensor_file_free(file);
}

/* --- random ones -------------------------------------------------------------------------------------------------- */

/* [1, height, width] with the elements 0, 1, ..., as float32. */
static kn_tensor *counted(int64_t height, int64_t width)
{
    kn_tensor *image = kn_empty(KN_SHAPE(1, height, width), .device = kn_device_host());
    for (int64_t i = 0; i < height * width; i++)
        ((float *)kn_data(image))[i] = (float)i;
    return image;
}

static float first_of(const kn_transforms *t, kn_tensor *image, uint64_t random)
{
    KN_SCOPE;
    kn_tensor *result;
    assert_new(result = kn_transforms_apply(t, image, random));
    return *(float *)kn_data(result);
}

static void every_crop_is_equally_likely(void **state)
{
    (void)state;
    KN_SCOPE;
    enum { DRAWS = 6000, PLACES = 12 };
    kn_tensor *image = counted(6, 7);
    kn_transforms *t = kn_transforms_new();
    assert_ok(kn_transforms_random_crop(t, 4, 4));
    int counts[42] = {0};
    for (uint64_t random = 0; random < DRAWS; random++)
        counts[(int)first_of(t, image, random)]++;
    double chi_square = 0;
    for (int i = 0; i < 42; i++) {
        const bool possible = i / 7 <= 2 && i % 7 <= 3;
        assert_true(possible || counts[i] == 0);
        chi_square += possible ? pow(counts[i] - DRAWS / PLACES, 2) / (DRAWS / PLACES) : 0;
    }
    assert_true(chi_square < 31.26); /* 99.9 % at 11 degrees of freedom */
    kn_transforms_free(t);
}

static void crops_are_padded(void **state)
{
    (void)state;
    static const struct {
        kn_padding_mode mode;
        float row[9];
    } cases[] = {{KN_PAD_CONSTANT, {9, 9, 9, 0, 1, 2, 9, 9, 9}},
                 {KN_PAD_REPLICATE, {0, 0, 0, 0, 1, 2, 2, 2, 2}},
                 {KN_PAD_REFLECT, {1, 2, 1, 0, 1, 2, 1, 0, 1}},
                 {KN_PAD_CIRCULAR, {0, 1, 2, 0, 1, 2, 0, 1, 2}}};
    for (int i = 0; i < 4; i++) {
        KN_SCOPE;
        kn_transforms *t = kn_transforms_new();
        kn_tensor *result;
        assert_ok(kn_transforms_random_crop(t, 7, 9, .padding = 3, .fill = 9, .padding_mode = cases[i].mode));
        assert_new(result = kn_transforms_apply(t, counted(1, 3), 5));
        for (int x = 0; x < 9; x++)
            assert_true(((float *)kn_data(result))[3 * 9 + x] == cases[i].row[x]);
        kn_transforms_free(t);
    }
    KN_SCOPE;
    kn_transforms *t = kn_transforms_new();
    kn_tensor *result;
    assert_ok(kn_transforms_random_crop(t, 4, 4));
    assert_fails(kn_status_of(result = kn_transforms_apply(t, counted(3, 3), 0)), KN_ERR_SHAPE,
                 "kn_transforms_random_crop: a crop of 4 x 4 is larger than the image of 3 x 3");
    kn_transforms_free(t);
}

/* The mean of a ramp's crop tells where it was, its spread how wide. */
static void resized_crops_vary_within_their_range(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_transforms *t = kn_transforms_new();
    kn_tensor *image = counted(1, 1000);
    float least = 1000, most = 0;
    assert_ok(kn_transforms_random_resized_crop(t, 1, 1, .scale = {0.25, 0.5}, .ratio = {250, 500}));
    for (uint64_t random = 0; random < 300; random++) {
        const float middle = first_of(t, image, random);
        least = fminf(least, middle);
        most = fmaxf(most, middle);
    }
    assert_true(least > 120 && least < 200 && most > 800 && most < 880);
    kn_transforms_free(t);
}

static void chances_are_kept_and_independent(void **state)
{
    (void)state;
    KN_SCOPE;
    enum { DRAWS = 4000 };
    kn_transforms *t = kn_transforms_new();
    kn_tensor *image = counted(2, 2);
    int counts[4] = {0};
    kn_transforms_random_horizontal_flip(t, 0.25);
    kn_transforms_random_vertical_flip(t, 0.5);
    for (uint64_t random = 0; random < DRAWS; random++)
        counts[(int)first_of(t, image, random)]++;
    const double wanted[] = {0.375, 0.125, 0.375, 0.125};
    for (int i = 0; i < 4; i++)
        assert_true(fabs(counts[i] - wanted[i] * DRAWS) < 4 * sqrt(DRAWS * wanted[i]));
    kn_transforms_free(t);
}

static void erasing_changes_a_rectangle(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_transforms *t = kn_transforms_new();
    kn_tensor *result;
    kn_transforms_random_erasing(t, .p = 1, .scale = {0.1, 0.2}, .value = -1);
    for (uint64_t random = 0; random < 50; random++) {
        int erased = 0;
        assert_new(result = kn_transforms_apply(t, counted(30, 40), random));
        for (int i = 0; i < 1200; i++)
            erased += ((float *)kn_data(result))[i] == -1;
        assert_in_range(erased, 90, 280);
    }
    kn_transforms_free(t);
    t = kn_transforms_new();
    kn_transforms_random_erasing(t, .random = true);
    kn_tensor *bytes = kn_zeros(KN_SHAPE(3, 4, 4), .dtype = KN_U8, .device = kn_device_host());
    assert_fails(kn_status_of(result = kn_transforms_apply(t, bytes, 1)), KN_ERR_DTYPE, "need float32 images");
    kn_transforms_free(t);
}

/* All fourteen changes run, on bytes and floats, and leave the range alone. */
static void trivial_augment_stays_in_range(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_transforms *t = kn_transforms_new();
    kn_tensor *image = kn_empty(KN_SHAPE(3, 12, 10), .device = kn_device_host()), *result;
    for (int i = 0; i < 360; i++)
        ((float *)kn_data(image))[i] = (float)(i % 17) / 16;
    kn_transforms_trivial_augment_wide(t, .interpolation = KN_INTERPOLATE_BILINEAR);
    int changed = 0;
    for (uint64_t random = 0; random < 400; random++) {
        KN_SCOPE;
        assert_new(result = kn_transforms_apply(t, image, random));
        for (int i = 0; i < 360; i++)
            assert_true(((float *)kn_data(result))[i] >= 0 && ((float *)kn_data(result))[i] <= 1.00001f);
        changed += memcmp(kn_data(result), kn_data(image), 360 * sizeof(float)) != 0;
    }
    assert_in_range(changed, 300, 395);
    kn_transforms_free(t);
}

static void draws_have_their_distributions(void **state)
{
    (void)state;
    enum { DRAWS = 20000 };
    const double alphas[] = {0.2, 1, 3};
    for (int a = 0; a < 3; a++) {
        kn_draws draws = {.random = 12};
        double sum = 0, squares = 0;
        for (int i = 0; i < DRAWS; i++) {
            const double x = kn_draw_beta(&draws, alphas[a]);
            assert_true(x >= 0 && x <= 1);
            sum += x;
            squares += (x - 0.5) * (x - 0.5);
        }
        const double variance = 0.25 / (2 * alphas[a] + 1);
        assert_true(fabs(sum / DRAWS - 0.5) < 4 * sqrt(variance / DRAWS));
        assert_true(fabs(squares / DRAWS / variance - 1) < 0.05);
    }
}

/* --- pipelines ---------------------------------------------------------------------------------------------------- */

static kn_status halve(void *value, const kn_field *field, uint64_t random, void *user)
{
    *(uint64_t *)user = random;
    for (int64_t i = 0; i < field->shape[0] * field->shape[1] * field->shape[2]; i++)
        ((float *)value)[i] /= 2;
    return KN_OK;
}

static void own_steps_take_part(void **state)
{
    (void)state;
    KN_SCOPE;
    uint64_t one = 0, other = 0;
    kn_transforms *t = kn_transforms_new();
    kn_transforms_center_crop(t, 1, 1);
    kn_transforms_lambda(t, halve, &one);
    kn_transforms_lambda(t, halve, &other);
    assert_true(first_of(t, counted(3, 3), 1) == 1);
    assert_true(one != other && one != 0);
    kn_transforms_free(t);
}

/* Its hue is none of the six sectors. */
static void a_pixel_that_is_no_number_changes_no_other(void **state)
{
    (void)state;
    KN_SCOPE;
    float values[] = {NAN, 0.25F, 1, 0.5F, 0.5F, 0}, plain[6], turned[6];
    kn_transforms *t = kn_transforms_new();
    assert_int_equal(kn_transforms_color_jitter(t, .hue = {0.2, 0.2}), KN_OK);
    for (int i = 0; i < 2; i++) {
        kn_tensor *image = kn_from_data(values, KN_SHAPE(3, 1, 2), .device = kn_device_host());
        kn_tensor *result = kn_transforms_apply(t, image, 1);
        assert_non_null(result);
        assert_int_equal(kn_read(result, i == 0 ? turned : plain, sizeof plain), KN_OK);
        values[0] = 0.75F;
    }
    for (int c = 0; c < 3; c++)
        assert_true(turned[2 * c + 1] == plain[2 * c + 1]);
    kn_transforms_free(t);
}

static void a_refused_step_is_remembered(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_tensor *image = counted(3, 3), *result;
    kn_transforms *t = kn_transforms_new();
    assert_fails(kn_transforms_random_horizontal_flip(t, 1.5), KN_ERR_ARGUMENT,
                 "kn_transforms_random_horizontal_flip: p is 1.5; it must be from 0 to 1");
    assert_fails(kn_transforms_resize(t, 0), KN_ERR_ARGUMENT, "size is 0; it must be from 1 to 65536");
    assert_fails(kn_transforms_resize(t, 4, .interpolation = KN_INTERPOLATE_AREA), KN_ERR_ARGUMENT, "interpolation is");
    assert_fails(kn_transforms_gaussian_blur(t, 4), KN_ERR_ARGUMENT, "kernel_size is 4; it must be odd");
    assert_fails(kn_transforms_color_jitter(t, .hue = {-0.6, 0}), KN_ERR_ARGUMENT,
                 "hue is from -0.6 to 0; it must rise");
    assert_fails(kn_transforms_random_rotation(t, 5, 4), KN_ERR_ARGUMENT, "the angle is from 5 to 4");
    assert_fails(kn_transforms_normalize(t, 1, mean, (const float[]){0}), KN_ERR_ARGUMENT, "std of channel 0 is 0");
    assert_fails(kn_transforms_normalize(t, 5, mean, std), KN_ERR_ARGUMENT, "channels is 5");
    assert_fails(kn_transforms_random_posterize(t, 9, 1), KN_ERR_ARGUMENT, "bits is 9; it must be from 0 to 8");
    assert_fails(kn_transforms_random_crop(t, 2, 2, .padding = -1), KN_ERR_ARGUMENT, "padding is -1");
    assert_fails(kn_transforms_random_affine(t, 0, 0, .scale = {0, 1}), KN_ERR_ARGUMENT, "scale is from 0 to 1");
    assert_fails(kn_transforms_lambda(t, NULL, NULL), KN_ERR_ARGUMENT, "`function` is NULL");
    assert_fails(kn_transforms_center_crop(NULL, 1, 1), KN_ERR_ARGUMENT, "kn_transforms_center_crop: argument");
    assert_fails(kn_status_of(result = kn_transforms_apply(t, image, 0)), KN_ERR_ARGUMENT, "p is 1.5");
    kn_transforms_free(t);
}

static void pictures_are_checked(void **state)
{
    (void)state;
    KN_SCOPE;
    kn_tensor *result, *two = kn_zeros(KN_SHAPE(2, 3, 3), .dtype = KN_U8, .device = kn_device_host());
    kn_transforms *t = kn_transforms_new();
    kn_transforms_normalize(t, 3, mean, std);
    assert_fails(kn_status_of(result = kn_transforms_apply(t, counted(2, 2), 0)), KN_ERR_SHAPE,
                 "mean and std are for 3 channels, but the image has 1");
    assert_fails(kn_status_of(result = kn_transforms_apply(t, two, 0)), KN_ERR_DTYPE,
                 "kn_transforms_to_tensor converts");
    kn_transforms_free(t);
    t = kn_transforms_new();
    kn_transforms_color_jitter(t, .contrast = {0.5, 2});
    assert_fails(kn_status_of(result = kn_transforms_apply(t, two, 0)), KN_ERR_SHAPE, "of 1 or 3 channels, not 2");
    assert_fails(kn_status_of(result = kn_transforms_apply(t, kn_zeros(KN_SHAPE(2, 2), .device = kn_device_host()), 0)),
                 KN_ERR_SHAPE, "expected a host tensor [C, H, W]");
    kn_transforms_free(t);
    t = kn_transforms_new();
    kn_transforms_gaussian_blur(t, 7);
    assert_fails(kn_status_of(result = kn_transforms_apply(t, counted(3, 9), 0)), KN_ERR_SHAPE, "must be smaller than");
    kn_transforms_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_factors_give_torchvisions_values),
        cmocka_unit_test(every_crop_is_equally_likely),
        cmocka_unit_test(crops_are_padded),
        cmocka_unit_test(resized_crops_vary_within_their_range),
        cmocka_unit_test(chances_are_kept_and_independent),
        cmocka_unit_test(erasing_changes_a_rectangle),
        cmocka_unit_test(trivial_augment_stays_in_range),
        cmocka_unit_test(draws_have_their_distributions),
        cmocka_unit_test(own_steps_take_part),
        cmocka_unit_test(a_pixel_that_is_no_number_changes_no_other),
        cmocka_unit_test(a_refused_step_is_remembered),
        cmocka_unit_test(pictures_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
