/* test_idx - idx files, plain and gzipped: valid and invalid. */
#include <koine/io.h>
#include <koine/tensor.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "io/check.h"
#include "io/files.h"

/* Magic and sizes. */
static byte_block idx_header(unsigned type, int ndim, const uint32_t *sizes)
{
    byte_block file = {0};
    append_big(&file, type << 8 | (unsigned)ndim, 4);
    for (int i = 0; i < ndim; i++)
        append_big(&file, sizes[i], 4);
    return file;
}

/* uint8 [2, 3] holding 0 .. 5. */
static byte_block small_file(void)
{
    byte_block file = idx_header(0x08, 2, (const uint32_t[]){2, 3});
    append(&file, "\0\1\2\3\4\5", 6);
    return file;
}

static void assert_small(kn_tensor *tensor)
{
    assert_int_equal(kn_dtype_of(tensor), KN_U8);
    assert_int_equal(kn_ndim(tensor), 2);
    assert_int_equal(kn_size(tensor, 0), 2);
    assert_int_equal(kn_size(tensor, 1), 3);
    assert_memory_equal(kn_data(tensor), "\0\1\2\3\4\5", 6);
}

/* --- good files ------------------------------------------------------------------------------- */

static void test_plain_and_gzip(void **state)
{
    (void)state;
    byte_block file = small_file();
    const char *plain = temporary("small"), *packed = temporary("small.gz");
    write_bytes(plain, file.data, file.size);
    write_gzip(packed, file.data, file.size);
    kn_tensor *tensor = kn_load_idx(plain);
    assert_new(tensor);
    assert_small(tensor);
    kn_release(tensor);
    assert_new(tensor = kn_load_idx(packed));
    assert_small(tensor);
    kn_release(tensor);
    bytes_free(&file);
}

/* gzip files may be concatenated; the contents are too. */
static void test_two_members(void **state)
{
    (void)state;
    byte_block file = small_file();
    const char *first = temporary("first.gz"), *second = temporary("second.gz"), *both = temporary("both.gz");
    write_gzip(first, file.data, 7);
    write_gzip(second, file.data + 7, file.size - 7);
    byte_block joined = bytes_of_file(first), rest = bytes_of_file(second);
    append(&joined, rest.data, rest.size);
    write_bytes(both, joined.data, joined.size);
    kn_tensor *tensor = kn_load_idx(both);
    assert_new(tensor);
    assert_small(tensor);
    kn_release(tensor);
    bytes_free(&joined);
    bytes_free(&rest);
    bytes_free(&file);
}

static kn_tensor *load(const byte_block *file)
{
    const char *path = temporary("typed");
    kn_tensor *tensor = NULL;
    write_bytes(path, file->data, file->size);
    assert_new(tensor = kn_load_idx(path));
    return tensor;
}

static void test_element_types(void **state)
{
    (void)state;
    byte_block file = idx_header(0x09, 1, (const uint32_t[]){2}); /* int8 */
    append(&file, "\x80\x7f", 2);
    kn_tensor *tensor = load(&file);
    assert_int_equal(kn_dtype_of(tensor), KN_I8);
    assert_memory_equal(kn_data(tensor), ((const int8_t[]){-128, 127}), 2);
    kn_release(tensor);
    bytes_free(&file);

    file = idx_header(0x0b, 1, (const uint32_t[]){2}); /* int16 */
    append(&file, "\x80\x00\x01\x02", 4);
    tensor = load(&file);
    assert_int_equal(kn_dtype_of(tensor), KN_I16);
    assert_memory_equal(kn_data(tensor), ((const int16_t[]){-32768, 258}), 4);
    kn_release(tensor);
    bytes_free(&file);

    file = idx_header(0x0c, 1, (const uint32_t[]){1}); /* int32 */
    append(&file, "\xff\xff\xff\xfe", 4);
    tensor = load(&file);
    assert_int_equal(kn_dtype_of(tensor), KN_I32);
    assert_int_equal(*(int32_t *)kn_data(tensor), -2);
    kn_release(tensor);
    bytes_free(&file);

    file = idx_header(0x0d, 1, (const uint32_t[]){1}); /* float32 */
    append(&file, "\xbf\xc0\x00\x00", 4);
    tensor = load(&file);
    assert_int_equal(kn_dtype_of(tensor), KN_F32);
    assert_true(*(float *)kn_data(tensor) == -1.5f);
    kn_release(tensor);
    bytes_free(&file);

    file = idx_header(0x0e, 0, NULL); /* float64, no dimensions: one number */
    append(&file, "\xbf\xf8\x00\x00\x00\x00\x00\x00", 8);
    tensor = load(&file);
    assert_int_equal(kn_dtype_of(tensor), KN_F64);
    assert_int_equal(kn_ndim(tensor), 0);
    assert_true(*(double *)kn_data(tensor) == -1.5);
    kn_release(tensor);
    bytes_free(&file);
}

static void test_empty_dimension(void **state)
{
    (void)state;
    byte_block file = idx_header(0x08, 2, (const uint32_t[]){0, 28});
    kn_tensor *tensor = load(&file);
    assert_int_equal(kn_numel(tensor), 0);
    assert_int_equal(kn_size(tensor, 1), 28);
    kn_release(tensor);
    bytes_free(&file);
}

static void test_result_belongs_to_scope(void **state)
{
    (void)state;
    byte_block file = small_file();
    const char *path = temporary("scoped");
    write_bytes(path, file.data, file.size);
    {
        KN_SCOPE;
        kn_tensor *tensor = kn_load_idx(path);
        assert_new(tensor);
        assert_small(tensor);
    }
    bytes_free(&file);
}

/* --- bad files -------------------------------------------------------------------------------- */

/* A format error that names the file, the offset and the expectation. */
static void refuse(const char *path, const char *piece)
{
    kn_status status = kn_status_of(kn_load_idx(path));
    assert_non_null(strstr(kn_error_message(), path));
    assert_fails(status, KN_ERR_FORMAT, piece);
}

static void refuse_bytes(const byte_block *file, const char *piece)
{
    const char *path = temporary("bad");
    write_bytes(path, file->data, file->size);
    refuse(path, piece);
}

static void test_bad_magic(void **state)
{
    (void)state;
    byte_block file = small_file();
    file.data[0] = 1;
    refuse_bytes(&file, "at byte 0: expected two zero bytes");
    file.data[0] = 0;
    file.data[2] = 0x0a;
    refuse_bytes(&file, "at byte 2: expected an idx element type");
    file.data[2] = 0x08;
    file.data[3] = 9;
    refuse_bytes(&file, "at byte 3: expected at most 8 dimensions, found 9");
    file.size = 3;
    refuse_bytes(&file, "at byte 0: expected 4 bytes of the idx magic number, found 3");
    file.size = 0;
    refuse_bytes(&file, "found 0");
    bytes_free(&file);
}

static void test_truncated(void **state)
{
    (void)state;
    byte_block file = small_file();
    file.size = 11;
    refuse_bytes(&file, "at byte 4: expected 8 bytes of dimension sizes, found 7");
    file.size = 17;
    refuse_bytes(&file, "at byte 12: expected 6 bytes of elements");
    bytes_free(&file);
}

static void test_trailing_bytes(void **state)
{
    (void)state;
    byte_block file = small_file();
    append(&file, "x", 1);
    refuse_bytes(&file, "at byte 18: expected the end of the file after the elements");
    const char *path = temporary("trailing.gz");
    write_gzip(path, file.data, file.size);
    refuse(path, "at byte 18 of the decompressed data: expected the end of the file");
    file.size--;
    write_gzip(path, file.data, file.size);
    byte_block packed = bytes_of_file(path); /* bytes after the gzip data itself, which zlib's own reader ignores */
    append(&packed, "garbage", 7);
    write_bytes(path, packed.data, packed.size);
    refuse(path, "of the gzip file");
    bytes_free(&packed);
    bytes_free(&file);
}

/* A few bytes that claim 2^32 elements and more: rejected because the data is missing, not for lack of memory. */
static void test_huge_claims(void **state)
{
    (void)state;
    byte_block file = idx_header(0x0e, 2, (const uint32_t[]){0xffffffffu, 0x00ffffffu});
    append(&file, "12345678", 8);
    refuse_bytes(&file,
                 "at byte 12: expected 576460717809467400 bytes of elements, as given by the dimensions, found 8");
    const char *path = temporary("huge.gz");
    write_gzip(path, file.data, file.size);
    refuse(path, "at byte 12 of the decompressed data: expected 576460717809467400 bytes");
    bytes_free(&file);
}

static void test_overflow(void **state)
{
    (void)state;
    byte_block file = idx_header(0x08, 3, (const uint32_t[]){0xffffffffu, 0xffffffffu, 0xffffffffu});
    refuse_bytes(&file, "at byte 4: expected dimension sizes whose product fits in memory");
    bytes_free(&file);
    file = idx_header(
        0x08, 4, (const uint32_t[]){0, 0xffffffffu, 0xffffffffu, 0xffffffffu}); /* no elements, but strides overflow */
    refuse_bytes(&file, "at byte 4: expected dimension sizes whose product fits in memory");
    bytes_free(&file);
}

/* 64 MiB of zeros in 64 KiB of gzip, after a header that claims ten bytes: reading stops at the eleventh. */
static void test_bomb(void **state)
{
    (void)state;
    byte_block file = idx_header(0x08, 1, (const uint32_t[]){10});
    size_t size = (size_t)64 << 20;
    unsigned char *zeros = calloc(size, 1);
    assert_non_null(zeros);
    append(&file, zeros, size);
    free(zeros);
    const char *path = temporary("bomb.gz");
    write_gzip(path, file.data, file.size);
    refuse(path, "at byte 18 of the decompressed data: expected the end of the file");
    bytes_free(&file);
}

static void test_damaged_gzip(void **state)
{
    (void)state;
    byte_block file = small_file();
    const char *path = temporary("damaged.gz");
    write_gzip(path, file.data, file.size);
    byte_block packed = bytes_of_file(path);
    write_bytes(path, packed.data, packed.size - 5); /* checksum and length missing */
    refuse(path, "the gzip data is truncated");
    write_bytes(path, packed.data, 12); /* within the data */
    refuse(path, "the gzip data is truncated");
    packed.data[packed.size - 6] ^= 1; /* the checksum is wrong */
    write_bytes(path, packed.data, packed.size);
    refuse(path, "incorrect data check");
    write_bytes(path, "\x1f\x8b\xff", 3); /* just the magic bytes of gzip */
    assert_int_equal(kn_status_of(kn_load_idx(path)), KN_ERR_FORMAT);
    kn_error_clear();
    bytes_free(&packed);
    bytes_free(&file);
}

static void test_unreadable(void **state)
{
    (void)state;
    assert_fails(kn_status_of(kn_load_idx(temporary("absent"))), KN_ERR_IO, "absent': No such file");
    assert_fails(kn_status_of(kn_load_idx("/")), KN_ERR_IO, "Is a directory");
    assert_fails(kn_status_of(kn_load_idx(NULL)), KN_ERR_ARGUMENT, "path");
}

/* Each allocation fails in turn: always an error, and nothing leaks (checked by the sanitizers). */
static void test_out_of_memory(void **state)
{
    (void)state;
    byte_block file = small_file();
    const char *path = temporary("memory.gz");
    write_gzip(path, file.data, file.size);
    kn_tensor *tensor = NULL;
    for (long n = 1;; n++) {
        kn_fail_alloc_after(n, 0);
        kn_status status = kn_status_of(tensor = kn_load_idx(path));
        kn_fail_alloc_after(0, 0);
        if (status == KN_OK)
            break;
        assert_fails(status, KN_ERR_MEMORY, "");
        assert_true(n < 100);
    }
    kn_release(tensor);
    bytes_free(&file);
}

/* --- damage ----------------------------------------------------------------------------------- */

static void try_damaged(const byte_block *original, uint64_t first, uint64_t count)
{
    const char *path = temporary("mutant");
    for (uint64_t n = first; n < first + count; n++) {
        byte_block copy = mutated(original, n);
        write_bytes(path, copy.data, copy.size);
        bytes_free(&copy);
        kn_tensor *tensor = NULL;
        if ((tensor = kn_load_idx(path)) != NULL) {
            kn_release(tensor);
            continue;
        }
        if (!strstr(kn_error_message(), path))
            fail_msg("mutant %llu: %s", (unsigned long long)n, kn_error_message());
        kn_error_clear();
    }
}

static void test_mutations(void **state)
{
    (void)state;
    byte_block plain = small_file();
    const char *path = temporary("seed.gz");
    write_gzip(path, plain.data, plain.size);
    byte_block packed = bytes_of_file(path);
    try_damaged(&plain, 0, 3000);
    try_damaged(&packed, 3000, 3000);
    bytes_free(&packed);
    bytes_free(&plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_and_gzip),
        cmocka_unit_test(test_two_members),
        cmocka_unit_test(test_element_types),
        cmocka_unit_test(test_empty_dimension),
        cmocka_unit_test(test_result_belongs_to_scope),
        cmocka_unit_test(test_bad_magic),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_trailing_bytes),
        cmocka_unit_test(test_huge_claims),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_bomb),
        cmocka_unit_test(test_damaged_gzip),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
