/* test_safetensors - safetensors files, read and written; invalid ones are in test_safetensors_refused. */
#include <koine/io.h>
#include <koine/tensor.h>

#include "base/memory.h"
#include "io/check.h"
#include "io/files.h"
#include "tensor/tensor.h"

/* The length, this header text and these elements. */
static byte_block make_file(const char *header, const void *elements, size_t size)
{
    byte_block file = {0};
    append_little(&file, strlen(header), 8);
    append_text(&file, header);
    append(&file, elements, size);
    return file;
}

static kn_tensor_file *load(const char *header, const void *elements, size_t size)
{
    const char *path = temporary("good.safetensors");
    byte_block content = make_file(header, elements, size);
    write_bytes(path, content.data, content.size);
    bytes_free(&content);
    kn_tensor_file *file = kn_load_safetensors(path);
    assert_new(file);
    return file;
}

/* --- good files ------------------------------------------------------------------------------- */

static void test_reads_tensors_and_metadata(void **state)
{
    (void)state;
    kn_tensor_file *file = load("{\"__metadata__\":{\"format\":\"pt\",\"k\\u00e9y\":\"\"},"
                                "\"b\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[8,9]},"
                                "\"a\":{\"shape\":[1,2],\"data_offsets\":[0,8],\"dtype\":\"F32\"},"
                                "\"none\":{\"dtype\":\"I64\",\"shape\":[0,7],\"data_offsets\":[9,9]}}   ",
                                "\0\0\x80\x3f\0\0\0\x40\xff", 9);
    assert_int_equal(kn_tensor_file_count(file), 3);
    assert_string_equal(kn_tensor_file_name(file, 0), "b"); /* the header's order */
    assert_string_equal(kn_tensor_file_metadata(file, "format"), "pt");
    assert_string_equal(kn_tensor_file_metadata(file, "k\xc3\xa9y"), "");
    assert_null(kn_tensor_file_metadata(file, "absent"));
    kn_tensor *a = kn_tensor_file_get(file, "a");
    assert_int_equal(kn_dtype_of(a), KN_F32);
    assert_memory_equal(kn_data(a), ((const float[]){1, 2}), 8);
    assert_int_equal(kn_size(a, 1), 2);
    assert_int_equal(*(uint8_t *)kn_data(kn_tensor_file_get(file, "b")), 255);
    assert_int_equal(kn_numel(kn_tensor_file_get(file, "none")), 0);
    assert_null(kn_tensor_file_get(file, "absent"));
    assert_null(kn_tensor_file_at(file, 3));
    assert_null(kn_tensor_file_name(file, -1));
    assert_int_equal(kn_error_status(), KN_OK);
    kn_tensor_file_free(file);
}

static void test_widening(void **state)
{
    (void)state;
    static const struct {
        const char *name, *stored;
        int size;
        kn_dtype dtype;
        double value;
    } cases[] = {
        {"BF16", "\xc0\xbf", 2, KN_BF16, -1.5},
        {"I8", "\xfe", 1, KN_I8, -2},
        {"I16", "\xfe\xff", 2, KN_I16, -2},
        {"U16", "\xfe\xff", 2, KN_I32, 65534},
        {"U32", "\xfe\xff\xff\xff", 4, KN_I64, 4294967294.0},
        {"U64", "\1\0\0\0\1\0\0\0", 8, KN_I64, 4294967297.0},
        {"I32", "\xfe\xff\xff\xff", 4, KN_I32, -2},
        {"BOOL", "\2", 1, KN_BOOL, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char header[128];
        snprintf(header, sizeof(header), "{\"x\":{\"dtype\":\"%s\",\"shape\":[1],\"data_offsets\":[0,%d]}}",
                 cases[i].name, cases[i].size);
        kn_tensor_file *file = load(header, cases[i].stored, (size_t)cases[i].size);
        kn_tensor *x = kn_tensor_file_at(file, 0);
        assert_int_equal(kn_dtype_of(x), cases[i].dtype);
        double value = 0;
        assert_ok(kn_item(x, &value));
        assert_true(value == cases[i].value);
        kn_tensor_file_free(file);
    }
}

static void test_empty_file(void **state)
{
    (void)state;
    kn_tensor_file *file = load("{}", "", 0);
    assert_int_equal(kn_tensor_file_count(file), 0);
    const char *path = temporary("empty.safetensors");
    assert_ok(kn_save_safetensors(path, file));
    kn_tensor_file_free(file);
    assert_new(file = kn_load_safetensors(path));
    assert_int_equal(kn_tensor_file_count(file), 0);
    kn_tensor_file_free(file);
}

/* --- building files --------------------------------------------------------------------------------- */

static void test_put(void **state)
{
    (void)state;
    kn_tensor *tensor = host_tensor(KN_U8, "abc", 1, (const int64_t[]){3});
    kn_tensor_file *file = kn_tensor_file_new();
    assert_ok(kn_tensor_file_put(file, "x", tensor));
    assert_ptr_equal(kn_tensor_file_get(file, "x"), tensor);
    assert_fails(kn_tensor_file_put(file, "x", tensor), KN_ERR_ARGUMENT, "there is already a tensor named 'x'");
    assert_fails(kn_tensor_file_put(file, "__metadata__", tensor), KN_ERR_ARGUMENT,
                 "no tensor can be named '__metadata__'");
    assert_fails(kn_tensor_file_put(file, "\xff", tensor), KN_ERR_ARGUMENT, "not UTF-8");
    assert_fails(kn_tensor_file_put(file, NULL, tensor), KN_ERR_ARGUMENT, "name");
    assert_fails(kn_tensor_file_put(file, "y", NULL), KN_ERR_ARGUMENT, "tensor");
    assert_ok(kn_tensor_file_set_metadata(file, "k", "1"));
    assert_ok(kn_tensor_file_set_metadata(file, "k", "2"));
    assert_string_equal(kn_tensor_file_metadata(file, "k"), "2");
    assert_fails(kn_tensor_file_set_metadata(file, "k", "\x80"), KN_ERR_ARGUMENT, "not UTF-8");
    assert_int_equal(kn_tensor_file_count(file), 1);
    kn_release(tensor);
    assert_int_equal(((uint8_t *)kn_data(kn_tensor_file_at(file, 0)))[2], 'c'); /* the file holds a reference */
    kn_tensor_file_free(file);
    kn_tensor_file_free(NULL);
}

static kn_tensor_file *mixed_file(void)
{
    static const kn_dtype dtypes[] = {KN_BOOL, KN_F64, KN_F16, KN_I64, KN_U8, KN_F32, KN_I32, KN_BF16, KN_I16, KN_I8};
    unsigned char data[48];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = i % 2;
    kn_tensor_file *file = kn_tensor_file_new();
    for (int i = 0; i < 10; i++) {
        char name[64];
        snprintf(name, sizeof(name), "layer.%d \"\\\n\t\xc3\xa9", i);
        kn_tensor *tensor = host_tensor(dtypes[i], data, i % 4, (const int64_t[]){1, 3, 2});
        assert_ok(kn_tensor_file_put(file, name, tensor));
        kn_release(tensor);
    }
    assert_ok(kn_tensor_file_set_metadata(file, "epoch", "3"));
    assert_ok(kn_tensor_file_set_metadata(file, "\"quoted\"", "a\\b\x01"));
    return file;
}

static void assert_same_files(const kn_tensor_file *a, const kn_tensor_file *b)
{
    assert_int_equal(kn_tensor_file_count(a), kn_tensor_file_count(b));
    for (int i = 0; i < kn_tensor_file_count(a); i++) {
        kn_tensor *x = kn_tensor_file_at(a, i), *y = kn_tensor_file_at(b, i);
        assert_string_equal(kn_tensor_file_name(a, i), kn_tensor_file_name(b, i));
        assert_int_equal(kn_dtype_of(x), kn_dtype_of(y));
        assert_int_equal(kn_ndim(x), kn_ndim(y));
        for (int dim = 0; dim < kn_ndim(x); dim++)
            assert_int_equal(kn_size(x, dim), kn_size(y, dim));
        assert_memory_equal(kn_data(x), kn_data(y), (size_t)kn_numel(x) * kn_dtype_size(kn_dtype_of(x)));
    }
}

static void test_round_trip(void **state)
{
    (void)state;
    const char *path = temporary("round.safetensors");
    kn_tensor_file *file = mixed_file(), *loaded = NULL;
    assert_ok(kn_save_safetensors(path, file));
    assert_new(loaded = kn_load_safetensors(path));
    assert_same_files(file, loaded);
    assert_string_equal(kn_tensor_file_metadata(loaded, "epoch"), "3");
    assert_string_equal(kn_tensor_file_metadata(loaded, "\"quoted\""), "a\\b\x01");
    byte_block content = bytes_of_file(path);
    assert_int_equal(content.data[0] % 8, 0); /* the data is aligned to 8 bytes */
    assert_int_equal(content.data[8], '{');
    bytes_free(&content);
    kn_tensor_file_free(loaded);
    kn_tensor_file_free(file);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    kn_tensor_file *file = mixed_file(), *loaded = NULL;
    const char *path = temporary("memory.safetensors");
    for (long n = 1;; n++) {
        kn_fail_alloc_after(n, 0);
        kn_status status = kn_save_safetensors(path, file);
        if (status == KN_OK)
            status = kn_status_of(loaded = kn_load_safetensors(path));
        kn_fail_alloc_after(0, 0);
        if (status == KN_OK)
            break;
        assert_fails(status, KN_ERR_MEMORY, "");
        assert_true(n < 1000);
    }
    assert_same_files(file, loaded);
    kn_tensor_file_free(loaded);
    kn_tensor_file_free(file);
}

/* A strided view is written as its elements, in row-major order. */
static void test_writes_views(void **state)
{
    (void)state;
    const char *path = temporary("view.safetensors");
    kn_tensor *tensor = host_tensor(KN_U8, "abcdef", 2, (const int64_t[]){2, 3});
    kn_tensor *view;
    assert_ok(kn_tensor_view(&view, tensor, 2, (const int64_t[]){3, 2}, (const int64_t[]){1, 3}, 0));
    kn_tensor_file *file = kn_tensor_file_new(), *loaded = NULL;
    assert_ok(kn_tensor_file_put(file, "v", view));
    assert_ok(kn_save_safetensors(path, file));
    assert_new(loaded = kn_load_safetensors(path));
    assert_memory_equal(kn_data(kn_tensor_file_at(loaded, 0)), "adbecf", 6);
    kn_tensor_file_free(loaded);
    kn_tensor_file_free(file);
    kn_release(view);
    kn_release(tensor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_tensors_and_metadata),
        cmocka_unit_test(test_widening),
        cmocka_unit_test(test_empty_file),
        cmocka_unit_test(test_put),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_writes_views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
