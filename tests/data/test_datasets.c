/* test_datasets - datasets, transforms and the order of samples. */
#include <koine/data.h>
#include <koine/device.h>
#include <koine/io.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "data/counted.h"
#include "data/dataset.h"
#include "data/order.h"
#include "io/check.h"
#include "io/files.h"
#include "tensor/tensor.h"

#define FASHION_MNIST "/usr/share/datasets/fashion-mnist"

/* --- tensor dataset --------------------------------------------------------------------------- */

static void test_tensor_dataset(void **state)
{
    (void)state;
    const float values[] = {1, 2, 3, 4, 5, 6};
    kn_tensor *inputs = host_tensor(KN_F32, values, 2, (const int64_t[]){3, 2});
    kn_tensor *targets = host_tensor(KN_I64, (const int64_t[]){7, 8, 9}, 1, (const int64_t[]){3});
    kn_dataset *dataset = kn_tensor_dataset(inputs, targets);
    assert_new(dataset);
    kn_release(inputs); /* the dataset keeps them */
    kn_release(targets);
    assert_int_equal(kn_dataset_length(dataset), 3);
    assert_int_equal(kn_dataset_field_count(dataset), 2);
    assert_int_equal(kn_dataset_field(dataset, 0)->ndim, 1);
    assert_int_equal(kn_dataset_field(dataset, 0)->shape[0], 2);
    assert_int_equal(kn_dataset_field(dataset, 1)->ndim, 0);
    assert_int_equal(kn_dataset_field(dataset, 1)->dtype, KN_I64);
    float input[2];
    int64_t target;
    assert_ok(kn_dataset_get(dataset, 1, (void *[]){input, &target}));
    assert_true(input[0] == 3 && input[1] == 4 && target == 8);
    assert_fails(kn_dataset_get(dataset, 3, (void *[]){input, &target}), KN_ERR_ARGUMENT,
                 "index 3 is outside the dataset, which has 3 samples");
    assert_fails(kn_dataset_get(dataset, -1, (void *[]){input, &target}), KN_ERR_ARGUMENT, "index -1");
    kn_dataset_free(dataset);
}

static void test_tensor_dataset_of_a_view(void **state)
{
    (void)state;
    kn_tensor *base = host_tensor(KN_U8, "abcdef", 2, (const int64_t[]){2, 3}), *view;
    assert_ok(kn_tensor_view(&view, base, 2, (const int64_t[]){3, 2}, (const int64_t[]){1, 3}, 0));
    kn_tensor *targets = host_tensor(KN_U8, "xyz", 1, (const int64_t[]){3});
    kn_dataset *dataset = kn_tensor_dataset(view, targets);
    assert_new(dataset);
    char input[2], target;
    assert_ok(kn_dataset_get(dataset, 2, (void *[]){input, &target}));
    assert_memory_equal(input, "cf", 2);
    assert_int_equal(target, 'z');
    kn_dataset_free(dataset);
    kn_release(view);
    kn_release(base);
    kn_release(targets);
}

static void test_tensor_dataset_errors(void **state)
{
    (void)state;
    kn_dataset *dataset = NULL;
    kn_tensor *two = host_tensor(KN_U8, "ab", 1, (const int64_t[]){2}),
              *three = host_tensor(KN_U8, "abc", 1, (const int64_t[]){3});
    kn_tensor *scalar = host_tensor(KN_U8, "a", 0, NULL);
    assert_fails(kn_status_of(dataset = kn_tensor_dataset(two, three)), KN_ERR_SHAPE,
                 "tensors 0 (uint8 [2] on host) and 1 (uint8 [3] on host)");
    assert_fails(kn_status_of(dataset = kn_tensor_dataset(scalar, scalar)), KN_ERR_SHAPE, "same size in dimension 0");
    assert_fails(kn_status_of(dataset = kn_tensor_dataset(NULL, two)), KN_ERR_ARGUMENT, "tensors[0]");
    assert_fails(kn_status_of(dataset = kn_tensor_dataset(two, NULL)), KN_ERR_ARGUMENT, "tensors[1]");
    if (kn_is_available()) {
        kn_tensor *moved = kn_zeros_with(1, (const int64_t[]){2}, &(kn_tensor_options){.dtype = KN_F32});
        assert_fails(kn_status_of(dataset = kn_tensor_dataset(moved, two)), KN_ERR_DEVICE, "tensor 0 is on");
        kn_release(moved);
    }
    kn_release(scalar);
    kn_release(three);
    kn_release(two);
}

/* --- user-defined datasets -------------------------------------------------------------------- */

static int destroyed;
static int64_t own_length(void *self) { return *(int64_t *)self; }
static kn_status own_get(void *self, int64_t index, void *const *fields)
{
    (void)self;
    *(float *)fields[0] = *(float *)fields[1] = (float)index;
    return KN_OK;
}
static void own_destroy(void *self)
{
    (void)self;
    destroyed++;
}

static void test_own_dataset(void **state)
{
    (void)state;
    int64_t length = 5;
    kn_dataset_functions functions = {.length = own_length, .get = own_get, .destroy = own_destroy};
    kn_field plain = {.dtype = KN_F32}, bad = {.dtype = KN_F32, .ndim = KN_MAX_DIMS};
    kn_dataset *dataset = kn_dataset_new(&functions, &length, (kn_field[]){plain, plain}, 2);
    assert_int_equal(kn_dataset_length(dataset), 5);
    kn_dataset_free(dataset);
    assert_int_equal(destroyed, 1);
    functions.destroy = NULL;
    kn_dataset_free(kn_dataset_new(&functions, &length, (kn_field[]){plain, plain}, 2));
    assert_null(kn_dataset_new(&functions, &length, (kn_field[]){bad, plain}, 2));
    assert_fails(kn_error_status(), KN_ERR_SHAPE, "has 8 dimensions; it may have 0 to 7");
    bad = (kn_field){.dtype = KN_DTYPE_DEFAULT};
    assert_null(kn_dataset_new(&functions, &length, (kn_field[]){plain, bad}, 2));
    assert_fails(kn_error_status(), KN_ERR_DTYPE, "dtype of the field \"target\" is not set");
    bad = (kn_field){.dtype = KN_F32, .ndim = 1, .shape = {-1}};
    assert_null(kn_dataset_new(&functions, &length, (kn_field[]){bad, plain}, 2));
    assert_fails(kn_error_status(), KN_ERR_SHAPE, "negative");
    functions.get = NULL;
    assert_null(kn_dataset_new(&functions, &length, (kn_field[]){plain, plain}, 2));
    assert_fails(kn_error_status(), KN_ERR_ARGUMENT, "`length` and `get` are required");
    assert_int_equal(kn_dataset_length(NULL), 0);
    kn_dataset_free(NULL);
}

/* --- MNIST ------------------------------------------------------------------------------------ */

/* DIRECTORY/NAME with an idx header and these elements. */
static void write_idx(const char *name, bool gzip, unsigned type, int ndim, const uint32_t *sizes, const void *elements,
                      size_t size)
{
    byte_block file = {0};
    append_big(&file, type << 8 | (unsigned)ndim, 4);
    for (int i = 0; i < ndim; i++)
        append_big(&file, sizes[i], 4);
    append(&file, elements, size);
    (gzip ? write_gzip : write_bytes)(temporary(name), file.data, file.size);
    bytes_free(&file);
}

static void directory_of_files(char directory[1024])
{
    snprintf(directory, 1024, "%s", temporary("x"));
    *strrchr(directory, '/') = '\0';
}

static void test_mnist_dataset(void **state)
{
    (void)state;
    char directory[1024];
    directory_of_files(directory);
    write_idx("train-images-idx3-ubyte.gz", true, 8, 3, (const uint32_t[]){2, 1, 3}, "\0\1\xff\x80\2\3", 6);
    write_idx("train-labels-idx1-ubyte", false, 8, 1, (const uint32_t[]){2}, "\7\1", 2);
    kn_dataset *dataset = kn_mnist_dataset(directory, true);
    assert_new(dataset);
    assert_int_equal(kn_dataset_length(dataset), 2);
    const kn_field *field = kn_dataset_field(dataset, 0);
    assert_int_equal(field->ndim, 3);
    assert_true(field->dtype == KN_F32 && field->shape[0] == 1 && field->shape[1] == 1 && field->shape[2] == 3);
    assert_true(field[1].dtype == KN_I64 && field[1].ndim == 0);
    float image[3];
    int64_t label;
    assert_ok(kn_dataset_get(dataset, 0, (void *[]){image, &label}));
    assert_true(image[0] == 0 && image[1] == 1.0f / 255 && image[2] == 1 && label == 7);
    assert_ok(kn_dataset_get(dataset, 1, (void *[]){image, &label}));
    assert_true(image[0] == 128.0f / 255 && label == 1);
    kn_dataset_free(dataset);
    /* The test files are missing: the error names them and where to get them. */
    assert_fails(
        kn_status_of(dataset = kn_mnist_dataset(directory, false)), KN_ERR_IO,
        "t10k-images-idx3-ubyte', with or without .gz: install Debian's package dataset-fashion-mnist (apt-get "
        "install dataset-fashion-mnist) or pass --data DIR");
    assert_fails(kn_status_of(dataset = kn_mnist_dataset(NULL, true)), KN_ERR_ARGUMENT, "directory");
}

static void test_mnist_bad_files(void **state)
{
    (void)state;
    char directory[1024];
    directory_of_files(directory);
    kn_dataset *dataset = NULL;
    write_idx("t10k-images-idx3-ubyte", false, 8, 3, (const uint32_t[]){2, 1, 1}, "ab", 2);
    write_idx("t10k-labels-idx1-ubyte", false, 8, 1, (const uint32_t[]){3}, "abc", 3);
    assert_fails(kn_status_of(dataset = kn_mnist_dataset(directory, false)), KN_ERR_FORMAT,
                 "the t10k files hold 2 images but 3 labels");
    write_idx("t10k-labels-idx1-ubyte", false, 8, 2, (const uint32_t[]){2, 1}, "ab", 2);
    assert_fails(kn_status_of(dataset = kn_mnist_dataset(directory, false)), KN_ERR_FORMAT,
                 "expected uint8 of 1 dimension, found uint8 [2, 1]");
    write_idx("t10k-labels-idx1-ubyte", false, 0x0b, 1, (const uint32_t[]){1}, "ab", 2);
    assert_fails(kn_status_of(dataset = kn_mnist_dataset(directory, false)), KN_ERR_FORMAT,
                 "expected uint8 of 1 dimension, found int16 [1]");
    write_bytes(temporary("t10k-labels-idx1-ubyte"), "", 0);
    assert_fails(kn_status_of(dataset = kn_mnist_dataset(directory, false)), KN_ERR_FORMAT,
                 "t10k-labels-idx1-ubyte', at byte 0");
    write_idx("t10k-images-idx3-ubyte", false, 8, 3, (const uint32_t[]){0, 1, 1}, "", 0);
    write_idx("t10k-labels-idx1-ubyte", false, 8, 1, (const uint32_t[]){0}, "", 0);
    assert_fails(kn_status_of(dataset = kn_mnist_dataset(directory, false)), KN_ERR_FORMAT,
                 "the t10k files hold no images");
}

/* --- the real data --------------------------------------------------------------------------- */

/* The SHA-256 of the uncompressed file, rebuilt from header and elements of the loaded tensor. */
static void sha256_of(char digest[65], kn_tensor *tensor)
{
    byte_block file = {0};
    append_big(&file, 0x800u | (unsigned)kn_ndim(tensor), 4);
    for (int dim = 0; dim < kn_ndim(tensor); dim++)
        append_big(&file, (uint64_t)kn_size(tensor, dim), 4);
    append(&file, kn_data(tensor), (size_t)kn_numel(tensor));
    const char *path = temporary("unpacked");
    write_bytes(path, file.data, file.size);
    bytes_free(&file);
    char command[1100];
    snprintf(command, sizeof(command), "sha256sum '%s'", path);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_int_equal(fread(digest, 1, 64, pipe), 64);
    digest[64] = '\0';
    pclose(pipe);
    unlink(path);
}

static void test_fashion_mnist(void **state)
{
    (void)state;
    static const struct {
        const char *name, *digest;
    } files[] = {
        {"train-images-idx3-ubyte.gz", "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
        {"train-labels-idx1-ubyte.gz", "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"},
        {"t10k-images-idx3-ubyte.gz", "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
        {"t10k-labels-idx1-ubyte.gz", "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"},
    };
    if (access(FASHION_MNIST, R_OK) != 0) {
        print_message("skipped: there is no %s; install Debian's package dataset-fashion-mnist\n", FASHION_MNIST);
        skip();
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[256], digest[65];
        snprintf(path, sizeof(path), "%s/%s", FASHION_MNIST, files[i].name);
        kn_tensor *tensor = kn_load_idx(path);
        assert_new(tensor);
        sha256_of(digest, tensor);
        assert_string_equal(digest, files[i].digest);
        kn_release(tensor);
    }
    kn_dataset *dataset = kn_mnist_dataset(FASHION_MNIST, false);
    assert_new(dataset);
    assert_int_equal(kn_dataset_length(dataset), 10000);
    assert_int_equal(kn_field_bytes(kn_dataset_field(dataset, 0)), 28 * 28 * 4);
    kn_dataset_free(dataset);
}

/* --- transforms ------------------------------------------------------------------------------- */

static kn_status add_one(void *value, const kn_field *field, uint64_t random, void *user)
{
    (void)field;
    *(float *)value = (float)(int64_t)(*(float *)value + 1);
    *(uint64_t *)user = random;
    return KN_OK;
}

static void test_transform_dataset(void **state)
{
    (void)state;
    int64_t length = 5;
    uint64_t inner = 0, outer = 0;
    kn_dataset_functions functions = {.length = own_length, .get = own_get, .destroy = own_destroy};
    kn_field plain = {.dtype = KN_F32};
    kn_dataset *base = kn_dataset_new(&functions, &length, (kn_field[]){plain, plain}, 2), *once = NULL, *twice = NULL;
    destroyed = 0;
    assert_new(once = kn_transform_dataset(base, add_one, &inner));
    assert_new(twice = kn_transform_dataset(once, add_one, &outer));
    float input = 0, target = 0;
    assert_ok(kn_dataset_get(twice, 3, (void *[]){&input, &target}));
    assert_true(input == 5 && target == 3);
    assert_true(inner != outer); /* each has its own random numbers */
    uint64_t before = outer;
    assert_ok(kn_dataset_get(twice, 3, (void *[]){&input, &target}));
    assert_true(outer == before);
    assert_ok(kn_dataset_get(twice, 2, (void *[]){&input, &target}));
    assert_true(outer != before);
    assert_ok(kn_dataset_get_random(twice, 2, 77, (void *[]){&input, &target}));
    assert_true(outer == 77);
    kn_dataset_free(twice);
    assert_int_equal(destroyed, 1);
    base = kn_dataset_new(&functions, &length, (kn_field[]){plain, plain}, 2);
    assert_fails(kn_status_of(once = kn_transform_dataset(base, NULL, NULL)), KN_ERR_ARGUMENT, "transform");
    assert_int_equal(destroyed, 2); /* ownership passes on failure too */
    assert_fails(kn_status_of(once = kn_transform_dataset(NULL, add_one, NULL)), KN_ERR_ARGUMENT, "base");
}

/* --- order ------------------------------------------------------------------------------------ */

static void test_order_is_a_permutation(void **state)
{
    (void)state;
    enum { LENGTH = 1000 };
    int64_t order[LENGTH], again[LENGTH];
    bool seen[LENGTH] = {false};
    expected_order(order, LENGTH, true, 7, 3);
    for (int i = 0; i < LENGTH; i++) {
        assert_in_range(order[i], 0, LENGTH - 1);
        assert_false(seen[order[i]]);
        seen[order[i]] = true;
    }
    expected_order(again, LENGTH, true, 7, 3);
    assert_memory_equal(order, again, sizeof(order));
    expected_order(again, LENGTH, true, 7, 4);
    assert_memory_not_equal(order, again, sizeof(order));
    expected_order(again, LENGTH, true, 8, 3);
    assert_memory_not_equal(order, again, sizeof(order));
    expected_order(again, LENGTH, false, 7, 3);
    for (int i = 0; i < LENGTH; i++)
        assert_int_equal(again[i], i);
}

/* Hard-coded, so that a seed gives the same order in every version. */
static void test_order_is_fixed(void **state)
{
    (void)state;
    int64_t order[8];
    expected_order(order, 8, true, 0, 0);
    const int64_t expected[] = {4, 2, 6, 1, 3, 7, 5, 0};
    assert_memory_equal(order, expected, sizeof(order));
    assert_true(kn_sample_random(1, 2, 3) == UINT64_C(0x7eaa379ad3632512));
}

/* Each of the 24 orders of four samples should come equally often: chi-square over 24,000 epochs; 99.9 % lie
 * below 49.73 at 23 degrees of freedom. */
static void test_order_is_uniform(void **state)
{
    (void)state;
    int counts[256] = {0};
    double chi_square = 0;
    for (int64_t epoch = 0; epoch < 24000; epoch++) {
        int64_t order[4];
        expected_order(order, 4, true, 12345, epoch);
        counts[order[0] | order[1] << 2 | order[2] << 4 | order[3] << 6]++;
    }
    for (int i = 0; i < 256; i++)
        chi_square += counts[i] ? pow(counts[i] - 1000, 2) / 1000 : 0;
    assert_true(chi_square < 49.73);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensor_dataset),         cmocka_unit_test(test_tensor_dataset_of_a_view),
        cmocka_unit_test(test_tensor_dataset_errors),  cmocka_unit_test(test_own_dataset),
        cmocka_unit_test(test_mnist_dataset),          cmocka_unit_test(test_mnist_bad_files),
        cmocka_unit_test(test_fashion_mnist),          cmocka_unit_test(test_transform_dataset),
        cmocka_unit_test(test_order_is_a_permutation), cmocka_unit_test(test_order_is_fixed),
        cmocka_unit_test(test_order_is_uniform),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
