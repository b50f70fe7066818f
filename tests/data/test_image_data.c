/* test_image_data.c - folders of images, CIFAR, pipelines on datasets and in the loader, MixUp and CutMix. */
#include <koine/koine.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/check.h"
#include "io/files.h"

/* Makes a folder in the test's own one, and returns its path. */
static const char *new_folder(const char *name)
{
    const char *path = temporary(name);
    assert_true(mkdir(path, 0700) == 0 || access(path, W_OK) == 0);
    return path;
}

/* A file of one color. */
static void write_image(const char *name, int64_t height, int64_t width, int red, int green, int blue)
{
    KN_SCOPE;
    kn_tensor *image = kn_empty(KN_SHAPE(3, height, width), .dtype = KN_U8, .device = kn_device_host());
    const int color[] = {red, green, blue};
    const int64_t size = height * width;
    for (int64_t i = 0; i < 3 * size; i++)
        ((uint8_t *)kn_data(image))[i] = (uint8_t)color[i / size];
    const bool jpeg = strstr(name, ".j") || strstr(name, ".J");
    assert_ok(jpeg ? kn_write_jpeg(image, temporary(name), .quality = 100) : kn_write_png(image, temporary(name)));
}

static kn_transforms *to_4_by_5(void)
{
    kn_transforms *t = kn_transforms_new();
    kn_transforms_resize(t, 4, .width = 5);
    kn_transforms_to_tensor(t);
    return t;
}

/* --- folders ------------------------------------------------------------------------------------------------------ */

static void make_animals(void)
{
    new_folder("animals");
    new_folder("animals/dog");
    new_folder("animals/cat");
    new_folder("animals/cat/small");
    new_folder("animals/.cache");
    write_image("animals/dog/b.JPG", 20, 30, 255, 255, 255);
    write_image("animals/dog/a.png", 5, 4, 255, 0, 0);
    write_image("animals/cat/small/0.png", 7, 7, 0, 0, 255);
    write_image("animals/cat/z.jpeg", 9, 3, 0, 0, 0);
    write_bytes(temporary("animals/cat/notes.txt"), "x", 1);
    write_bytes(temporary("animals/list.txt"), "x", 1);
}

static void folders_are_classes(void **state)
{
    (void)state;
    make_animals();
    kn_transforms *t = to_4_by_5();
    kn_dataset *data = kn_image_folder(temporary("animals"), t);
    kn_transforms_free(t); /* copied */
    assert_new(data);
    assert_int_equal(kn_dataset_length(data), 4);
    const char *const *classes = kn_dataset_classes(data);
    assert_string_equal(classes[0], "cat");
    assert_string_equal(classes[1], "dog");
    assert_null(classes[2]);
    const kn_field *field = kn_dataset_field(data, 0);
    assert_true(field->dtype == KN_F32 && field->shape[0] == 3 && field->shape[1] == 4 && field->shape[2] == 5);
    const int64_t wanted_class[] = {0, 0, 1, 1};
    const float wanted_red[] = {0, 0, 1, 1}, wanted_blue[] = {0, 1, 0, 1};
    for (int i = 0; i < 4; i++) {
        float image[60];
        int64_t target;
        assert_ok(kn_dataset_get(data, i, (void *[]){image, &target}));
        assert_int_equal(target, wanted_class[i]);
        assert_true(fabsf(image[7] - wanted_red[i]) < 0.02f && fabsf(image[47] - wanted_blue[i]) < 0.02f);
    }
    kn_dataset_free(data);
}

static void folders_may_be_gray_and_bytes(void **state)
{
    (void)state;
    make_animals();
    kn_transforms *t = kn_transforms_new();
    kn_transforms_center_crop(t, 2, 2);
    kn_dataset *data = kn_image_folder(temporary("animals"), t, .mode = KN_IMAGE_GRAY);
    assert_new(data);
    uint8_t image[4];
    int64_t target;
    assert_true(kn_dataset_field(data, 0)->dtype == KN_U8 && kn_dataset_field(data, 0)->shape[0] == 1);
    assert_ok(kn_dataset_get(data, 2, (void *[]){image, &target}));
    assert_int_equal(image[0], 76);
    kn_dataset_free(data);
    kn_transforms_free(t);
}

static void folders_that_make_no_batch_are_refused(void **state)
{
    (void)state;
    make_animals();
    kn_transforms *t = kn_transforms_new(), *fixed = to_4_by_5();
    kn_dataset *data;
    kn_transforms_resize(t, 32);
    assert_fails(kn_status_of(data = kn_image_folder(temporary("animals"), t)), KN_ERR_SHAPE,
                 "the transforms leave images of different sizes");
    assert_fails(kn_status_of(data = kn_image_folder(temporary("animals"), NULL)), KN_ERR_SHAPE, "different sizes");
    assert_fails(kn_status_of(data = kn_image_folder(temporary("nothing"), fixed)), KN_ERR_IO, "there is no folder");
    assert_fails(kn_status_of(data = kn_image_folder(temporary("animals/dog"), fixed)), KN_ERR_IO,
                 "has no folders; it should have one for each class");
    assert_fails(kn_status_of(data = kn_image_folder(NULL, fixed)), KN_ERR_ARGUMENT, "directory");
    assert_fails(kn_status_of(data = kn_image_folder(temporary("animals"), fixed, .mode = KN_IMAGE_UNCHANGED)),
                 KN_ERR_ARGUMENT, "not KN_IMAGE_UNCHANGED");
    new_folder("animals/empty");
    assert_fails(kn_status_of(data = kn_image_folder(temporary("animals"), fixed)), KN_ERR_IO,
                 "animals/empty' has no image (.png, .jpg, .jpeg)");
    rmdir(temporary("animals/empty"));
    kn_transforms_free(t);
    kn_transforms_free(fixed);
}

static void a_damaged_image_is_named(void **state)
{
    (void)state;
    new_folder("broken");
    new_folder("broken/one");
    write_bytes(temporary("broken/one/bad.png"), "\x89PNG\r\n\x1a\nxx", 10);
    kn_transforms *t = to_4_by_5();
    kn_dataset *data = kn_image_folder(temporary("broken"), t);
    assert_new(data);
    kn_loader *loader = kn_loader_new(data, .num_workers = 1, .device = kn_device_host());
    KN_FOR_BATCHES (batch, loader, 0)
        fail_msg("a batch of %lld", (long long)batch->size);
    assert_fails(kn_loader_status(loader), KN_ERR_FORMAT, "bad.png': damaged PNG data");
    kn_loader_free(loader);
    kn_dataset_free(data);
    kn_transforms_free(t);
}

/* --- CIFAR -------------------------------------------------------------------------------------------------------- */

/* `count` records with classes 0, 1, ... whose first red pixel is 10 times the class. */
static void write_records(const char *name, int labels, int count)
{
    byte_block file = {0};
    for (int i = 0; i < count; i++) {
        unsigned char record[2 + 3072] = {0};
        record[0] = 19;
        record[labels - 1] = (unsigned char)i;
        record[labels] = (unsigned char)(10 * i);
        append(&file, record, (size_t)labels + 3072);
    }
    write_bytes(temporary(name), file.data, file.size);
    bytes_free(&file);
}

static void cifar_is_read(void **state)
{
    (void)state;
    static float image[3072];
    int64_t target;
    new_folder("c10");
    new_folder("c10/cifar-10-batches-bin");
    for (int i = 1; i <= 5; i++) {
        char name[64];
        snprintf(name, sizeof name, "c10/cifar-10-batches-bin/data_batch_%d.bin", i);
        write_records(name, 1, i);
    }
    write_bytes(temporary("c10/cifar-10-batches-bin/batches.meta.txt"), "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n", 21);
    kn_dataset *data = kn_cifar10_dataset(temporary("c10"), true);
    assert_new(data);
    assert_int_equal(kn_dataset_length(data), 15);
    assert_ok(kn_dataset_get(data, 14, (void *[]){image, &target}));
    assert_true(target == 4 && image[0] == 40.0f / 255 && image[1] == 0);
    assert_string_equal(kn_dataset_classes(data)[9], "j");
    assert_null(kn_dataset_classes(data)[10]);
    kn_dataset_free(data);
    assert_fails(kn_status_of(data = kn_cifar10_dataset(temporary("c10"), false)), KN_ERR_IO,
                 "test_batch.bin': get CIFAR-10's binary version from https://www.cs.toronto.edu/~kriz/cifar.html");
}

static void cifar100_has_two_labels(void **state)
{
    (void)state;
    static float image[3072];
    int64_t target;
    kn_dataset *data;
    new_folder("c100");
    write_records("c100/test.bin", 2, 7);
    assert_new(data = kn_cifar100_dataset(temporary("c100"), false));
    assert_ok(kn_dataset_get(data, 6, (void *[]){image, &target}));
    assert_true(target == 6 && image[0] == 60.0f / 255);
    assert_null(kn_dataset_classes(data));
    kn_dataset_free(data);
    write_bytes(temporary("c100/test.bin"), "abc", 3);
    assert_fails(kn_status_of(data = kn_cifar100_dataset(temporary("c100"), false)), KN_ERR_FORMAT,
                 "has 3 bytes; expected records of 3074 bytes");
    write_records("c100/test.bin", 2, 101);
    assert_fails(kn_status_of(data = kn_cifar100_dataset(temporary("c100"), false)), KN_ERR_FORMAT,
                 "record 100 has the class 100; CIFAR-100 has 100");
    assert_fails(kn_status_of(data = kn_cifar100_dataset(NULL, false)), KN_ERR_ARGUMENT, "kn_cifar100_dataset");
}

/* --- pipelines on datasets ---------------------------------------------------------------------------------------- */

/* Images of 3 channels and 6 x 6 random-looking bytes. */
static kn_dataset *bytes_dataset(int64_t count)
{
    KN_SCOPE;
    kn_tensor *images = kn_empty(KN_SHAPE(count, 3, 6, 6), .dtype = KN_U8, .device = kn_device_host());
    kn_tensor *targets = kn_empty(KN_SHAPE(count), .dtype = KN_I64, .device = kn_device_host());
    for (int64_t i = 0; i < kn_numel(images); i++)
        ((uint8_t *)kn_data(images))[i] = (uint8_t)(i * i * 31 + i);
    for (int64_t i = 0; i < count; i++)
        ((int64_t *)kn_data(targets))[i] = i % 3;
    return kn_tensor_dataset(images, targets);
}

static void datasets_get_the_resulting_field(void **state)
{
    (void)state;
    kn_transforms *t = to_4_by_5();
    kn_dataset *data = kn_transforms_dataset(bytes_dataset(4), t), *again;
    assert_new(data);
    const kn_field *field = kn_dataset_field(data, 0);
    assert_true(field->dtype == KN_F32 && field->shape[1] == 4 && field->shape[2] == 5);
    assert_string_equal(field->name, "input");
    assert_int_equal(kn_dataset_field(data, 1)->dtype, KN_I64);
    float image[60];
    int64_t target;
    assert_ok(kn_dataset_get(data, 2, (void *[]){image, &target}));
    assert_int_equal(target, 2);
    assert_fails(kn_status_of(again = kn_transforms_dataset(data, t, .field = "target")), KN_ERR_SHAPE,
                 "in the field \"target\", got int64 of 0 dimensions");
    assert_fails(kn_status_of(again = kn_transforms_dataset(bytes_dataset(1), t, .field = "mask")), KN_ERR_ARGUMENT,
                 "no field \"mask\"");
    assert_fails(kn_status_of(again = kn_transforms_dataset(bytes_dataset(1), NULL)), KN_ERR_ARGUMENT, "transforms");
    kn_transforms_free(t);
}

/* The bytes of an epoch. */
static byte_block epoch_of(int workers, int64_t epoch)
{
    byte_block all = {0};
    kn_transforms *t = kn_transforms_new();
    kn_transforms_random_resized_crop(t, 4, 4);
    kn_transforms_random_horizontal_flip(t, 0.5);
    kn_transforms_color_jitter(t, .brightness = {0.5, 1.5}, .hue = {-0.2, 0.2});
    kn_transforms_trivial_augment_wide(t);
    kn_transforms_to_tensor(t);
    kn_transforms_random_erasing(t, .random = true);
    kn_dataset *data = kn_transforms_dataset(bytes_dataset(50), t);
    assert_new(data);
    kn_loader *loader = kn_loader_new(data, .batch_size = 8, .shuffle = true, .num_workers = workers, .seed = 3,
                                      .device = kn_device_host());
    KN_FOR_BATCHES (batch, loader, epoch)
        append(&all, kn_data(batch->input), (size_t)kn_numel(batch->input) * 4);
    assert_ok(kn_loader_status(loader));
    kn_loader_free(loader);
    kn_dataset_free(data);
    kn_transforms_free(t);
    return all;
}

static void workers_do_not_change_the_results(void **state)
{
    (void)state;
    byte_block one = epoch_of(0, 1), three = epoch_of(3, 1), other = epoch_of(0, 2);
    assert_int_equal(one.size, 50 * 48 * 4);
    assert_memory_equal(one.data, three.data, one.size);
    assert_memory_not_equal(one.data, other.data, one.size);
    bytes_free(&one);
    bytes_free(&three);
    bytes_free(&other);
}

/* --- mixing ------------------------------------------------------------------------------------------------------- */

enum { BATCH = 6, SIDE = 16 };

/* Image i is i everywhere; its class is i. */
static kn_dataset *plain_images(void)
{
    KN_SCOPE;
    kn_tensor *images = kn_empty(KN_SHAPE(BATCH, 1, SIDE, SIDE), .device = kn_device_host());
    kn_tensor *targets = kn_empty(KN_SHAPE(BATCH), .dtype = KN_I64, .device = kn_device_host());
    for (int i = 0; i < BATCH * SIDE * SIDE; i++)
        ((float *)kn_data(images))[i] = (float)(i / (SIDE * SIDE));
    for (int i = 0; i < BATCH; i++)
        ((int64_t *)kn_data(targets))[i] = i;
    return kn_tensor_dataset(images, targets);
}

/* What a batch says about its mixture. */
typedef struct mixture {
    double part;      /* of the image itself, from the targets */
    double deviation; /* of the image's mean from what `part` demands */
    int values;       /* different ones in an image */
} mixture;

static mixture look_at(const kn_batch *batch)
{
    KN_SCOPE;
    kn_tensor *images = kn_to(batch->input, kn_device_host()), *targets = kn_to(batch->target, kn_device_host());
    const float *x = kn_data(images), *t = kn_data(targets);
    mixture m = {.part = t[0], .values = 1};
    for (int i = 0; i < BATCH; i++) {
        const int before = (i + BATCH - 1) % BATCH;
        double mean = 0;
        for (int k = 0; k < SIDE * SIDE; k++) {
            mean += x[i * SIDE * SIDE + k] / (SIDE * SIDE);
            m.values = x[i * SIDE * SIDE + k] != x[i * SIDE * SIDE] ? 2 : m.values;
        }
        assert_true(fabs(t[i * BATCH + i] - m.part) < 1e-6 && fabs(t[i * BATCH + before] - (1 - m.part)) < 1e-6);
        m.deviation = fmax(m.deviation, fabs(mean - m.part * i - (1 - m.part) * before));
    }
    return m;
}

static mixture mixture_of(kn_mixup_params *params, int64_t epoch)
{
    mixture m = {0};
    kn_dataset *data = plain_images();
    kn_loader *loader =
        kn_loader_new(data, .batch_size = BATCH, .seed = 5, .collate = kn_collate_mixup, .collate_user = params);
    KN_FOR_BATCHES (batch, loader, epoch)
        m = look_at(batch);
    assert_ok(kn_loader_status(loader));
    kn_loader_free(loader);
    kn_dataset_free(data);
    return m;
}

static void mixup_mixes_images_and_targets(void **state)
{
    (void)state;
    kn_mixup_params params = kn_mixup_params_init();
    params.num_classes = BATCH;
    const mixture one = mixture_of(&params, 0), again = mixture_of(&params, 0), other = mixture_of(&params, 1);
    assert_true(one.deviation < 1e-5 && one.values == 1 && one.part > 0 && one.part < 1);
    assert_true(one.part == again.part && one.part != other.part);
}

static void cutmix_copies_a_rectangle(void **state)
{
    (void)state;
    kn_mixup_params params = {.num_classes = BATCH, .cutmix_alpha = 1};
    bool cut = false;
    for (int64_t epoch = 0; epoch < 4; epoch++) {
        const mixture m = mixture_of(&params, epoch);
        assert_true(m.deviation < 1e-5);
        cut = cut || m.values == 2;
    }
    assert_true(cut);
    params.cutmix_alpha = 0;
    const mixture none = mixture_of(&params, 0);
    assert_true(none.part == 1 && none.values == 1);
}

static void mixing_checks_its_arguments(void **state)
{
    (void)state;
    kn_mixup_params params = kn_mixup_params_init();
    kn_dataset *data = plain_images();
    kn_loader *loader = kn_loader_new(data, .batch_size = BATCH, .collate = kn_collate_mixup, .collate_user = &params);
    KN_FOR_BATCHES (batch, loader, 0)
        fail_msg("a batch of %lld", (long long)batch->size);
    assert_fails(kn_loader_status(loader), KN_ERR_ARGUMENT, "num_classes is 0; it must be 1 or more");
    kn_loader_free(loader);
    kn_dataset_free(data);
    assert_fails(kn_collate_mixup(NULL, &params), KN_ERR_ARGUMENT, "batch");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_are_classes),
        cmocka_unit_test(folders_may_be_gray_and_bytes),
        cmocka_unit_test(folders_that_make_no_batch_are_refused),
        cmocka_unit_test(a_damaged_image_is_named),
        cmocka_unit_test(cifar_is_read),
        cmocka_unit_test(cifar100_has_two_labels),
        cmocka_unit_test(datasets_get_the_resulting_field),
        cmocka_unit_test(workers_do_not_change_the_results),
        cmocka_unit_test(mixup_mixes_images_and_targets),
        cmocka_unit_test(cutmix_copies_a_rectangle),
        cmocka_unit_test(mixing_checks_its_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
