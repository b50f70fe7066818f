/* test_npy - NumPy's .npy files: valid, invalid, written. */
#include <koine/io.h>
#include <koine/tensor.h>

#include "base/memory.h"
#include "io/check.h"
#include "io/files.h"

/* A file of this version with this header text and these elements. */
static byte_block npy_file(int major, const char *header, const void *elements, size_t size)
{
    byte_block file = {0};
    append(&file, "\x93NUMPY", 6);
    append_little(&file, (uint64_t)major, 2); /* minor version 0 */
    append_little(&file, strlen(header), major == 1 ? 2 : 4);
    append_text(&file, header);
    append(&file, elements, size);
    return file;
}

static kn_tensor *load(int major, const char *header, const void *elements, size_t size)
{
    const char *path = temporary("good.npy");
    byte_block file = npy_file(major, header, elements, size);
    write_bytes(path, file.data, file.size);
    bytes_free(&file);
    kn_tensor *tensor = kn_load_npy(path);
    assert_new(tensor);
    return tensor;
}

/* --- good files ------------------------------------------------------------------------------- */

static void test_versions(void **state)
{
    (void)state;
    for (int major = 1; major <= 3; major++) {
        kn_tensor *tensor =
            load(major, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }      \n", "abcdef", 6);
        assert_int_equal(kn_dtype_of(tensor), KN_U8);
        assert_int_equal(kn_ndim(tensor), 2);
        assert_int_equal(kn_size(tensor, 0), 2);
        assert_memory_equal(kn_data(tensor), "abcdef", 6);
        kn_release(tensor);
    }
}

typedef struct type_case {
    const char *descr;
    const char *stored;
    size_t stored_size;
    kn_dtype dtype;
    double values[2];
} type_case;

static double value_of(kn_tensor *tensor, int index)
{
    switch (kn_dtype_of(tensor)) {
    case KN_F64:
        return ((double *)kn_data(tensor))[index];
    case KN_F32:
        return ((float *)kn_data(tensor))[index];
    case KN_I64:
        return (double)((int64_t *)kn_data(tensor))[index];
    case KN_I32:
        return ((int32_t *)kn_data(tensor))[index];
    case KN_I16:
        return ((int16_t *)kn_data(tensor))[index];
    case KN_I8:
        return ((int8_t *)kn_data(tensor))[index];
    case KN_F16: /* as its bits */
        return ((uint16_t *)kn_data(tensor))[index];
    default:
        return ((uint8_t *)kn_data(tensor))[index];
    }
}

static void test_types_and_byte_orders(void **state)
{
    (void)state;
    static const type_case cases[] = {
        {"|b1", "\0\2", 2, KN_BOOL, {0, 1}},
        {"|u1", "\0\xff", 2, KN_U8, {0, 255}},
        {"|i1", "\x80\1", 2, KN_I8, {-128, 1}},
        {"<i2", "\1\2\0\x80", 4, KN_I16, {513, -32768}},
        {">i2", "\2\1\x80\0", 4, KN_I16, {513, -32768}},
        {"<u2", "\1\2\xff\xff", 4, KN_I32, {513, 65535}},
        {">u2", "\2\1\xff\xff", 4, KN_I32, {513, 65535}},
        {"<i4", "\1\0\0\0\xff\xff\xff\xff", 8, KN_I32, {1, -1}},
        {">i4", "\0\0\0\1\xff\xff\xff\xff", 8, KN_I32, {1, -1}},
        {"<u4", "\1\0\0\0\xff\xff\xff\xff", 8, KN_I64, {1, 4294967295.0}},
        {">u4", "\0\0\0\1\xff\xff\xff\xff", 8, KN_I64, {1, 4294967295.0}},
        {"<i8", "\2\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 16, KN_I64, {2, -1}},
        {">i8", "\0\0\0\0\0\0\0\2\xff\xff\xff\xff\xff\xff\xff\xff", 16, KN_I64, {2, -1}},
        {"<u8", "\2\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0", 16, KN_I64, {2, 4294967296.0}},
        {">u8", "\0\0\0\0\0\0\0\2\0\0\0\1\0\0\0\0", 16, KN_I64, {2, 4294967296.0}},
        {"<f2", "\0\x3c\0\xc0", 4, KN_F16, {0x3c00, 0xc000}},
        {">f2", "\x3c\0\xc0\0", 4, KN_F16, {0x3c00, 0xc000}},
        {"<f4", "\0\0\x80\x3f\0\0\xc0\xbf", 8, KN_F32, {1, -1.5}},
        {">f4", "\x3f\x80\0\0\xbf\xc0\0\0", 8, KN_F32, {1, -1.5}},
        {"<f8", "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\xf8\xbf", 16, KN_F64, {1, -1.5}},
        {">f8", "\x3f\xf0\0\0\0\0\0\0\xbf\xf8\0\0\0\0\0\0", 16, KN_F64, {1, -1.5}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char header[128];
        snprintf(header, sizeof(header), "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }\n", cases[i].descr);
        kn_tensor *tensor = load(1, header, cases[i].stored, cases[i].stored_size);
        if (kn_dtype_of(tensor) != cases[i].dtype || value_of(tensor, 0) != cases[i].values[0] ||
            value_of(tensor, 1) != cases[i].values[1])
            fail_msg("%s: %s %g %g", cases[i].descr, kn_dtype_name(kn_dtype_of(tensor)), value_of(tensor, 0),
                     value_of(tensor, 1));
        kn_release(tensor);
    }
}

static void test_shapes(void **state)
{
    (void)state;
    kn_tensor *scalar = load(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (), }\n", "\7\0\0\0", 4);
    assert_int_equal(kn_ndim(scalar), 0);
    assert_true(value_of(scalar, 0) == 7);
    kn_release(scalar);
    kn_tensor *empty = load(1, "{'descr': '<i4', 'fortran_order': True, 'shape': (3, 0), }\n", "", 0);
    assert_int_equal(kn_numel(empty), 0);
    assert_int_equal(kn_size(empty, 0), 3);
    kn_release(empty);
    kn_tensor *python2 = load(1, "{\"shape\": (2L, 1L), 'fortran_order': False, 'descr': '|u1'}", "ab", 2);
    assert_int_equal(kn_ndim(python2), 2);
    kn_release(python2);
}

static void test_fortran_order(void **state)
{
    (void)state;
    /* [[[1, 2], [3, 4], [5, 6]]] + 10 * [0, 1]: shape (2, 3, 2), first index fastest in the file. */
    const char stored[] = {1, 11, 3, 13, 5, 15, 2, 12, 4, 14, 6, 16};
    const char expected[] = {1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16};
    kn_tensor *tensor =
        load(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2), }\n", stored, sizeof(stored));
    assert_true(kn_is_contiguous(tensor));
    assert_memory_equal(kn_data(tensor), expected, sizeof(expected));
    kn_release(tensor);
    kn_tensor *wide = load(2, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 2), }\n", "\0\1\0\2\0\3\0\4", 8);
    assert_memory_equal(kn_data(wide), ((const int16_t[]){1, 3, 2, 4}), 8);
    kn_release(wide);
}

/* --- bad files -------------------------------------------------------------------------------- */

static void refuse_bytes(const byte_block *file, const char *piece)
{
    const char *path = temporary("bad.npy");
    write_bytes(path, file->data, file->size);
    kn_status status = kn_status_of(kn_load_npy(path));
    assert_non_null(strstr(kn_error_message(), path));
    assert_fails(status, KN_ERR_FORMAT, piece);
}

static void refuse_header(const char *header, const char *piece)
{
    byte_block file = npy_file(1, header, "", 0);
    refuse_bytes(&file, piece);
    bytes_free(&file);
}

static void test_bad_preamble(void **state)
{
    (void)state;
    byte_block file = npy_file(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }", "ab", 2);
    file.data[0] = 'x';
    refuse_bytes(&file, "at byte 0: expected \\x93NUMPY");
    file.data[0] = 0x93;
    file.data[6] = 4;
    refuse_bytes(&file, "at byte 6: expected version 1.0, 2.0 or 3.0, found 4.0");
    file.data[6] = 1;
    file.size = 7;
    refuse_bytes(&file, "at byte 0: expected 8 bytes of the .npy magic number and version, found 7");
    file.size = 9;
    refuse_bytes(&file, "at byte 8: expected 2 bytes of the header's length, found 1");
    file.size = 20;
    refuse_bytes(&file, "at byte 10: expected 57 bytes of header, found 10");
    bytes_free(&file);
}

/* Version 2 and 3 have 32-bit lengths: 4 GiB claimed by a file of 30 bytes. */
static void test_huge_header(void **state)
{
    (void)state;
    byte_block file = {0};
    append(&file, "\x93NUMPY\2\0\xff\xff\xff\xff{'descr': '|u1'", 27);
    refuse_bytes(&file, "at byte 8: expected a header of at most 65536 bytes, found a length of 4294967295");
    bytes_free(&file);
}

static void test_bad_header(void **state)
{
    (void)state;
    refuse_header("", "at byte 10: expected '{'");
    refuse_header("[]", "at byte 10: expected '{'");
    refuse_header("{", "at byte 11: expected a quoted string");
    refuse_header("{}", "expected the keys descr, fortran_order and shape");
    refuse_header("{'descr': '<f4', 'shape': (1,)}", "expected the keys descr, fortran_order and shape");
    refuse_header("{'descr': '<f4', 'descr': '<f4', 'shape': (1,)}", "at byte 27: expected each of the keys");
    refuse_header("{'descr': '<f4', 'colour': 1}", "at byte 27: expected each of the keys");
    refuse_header("{'descr' '<f4'}", "expected ':'");
    refuse_header("{'descr': '<f4' 'shape': (1,)}", "expected ',' or '}'");
    refuse_header("{'descr", "expected a closing quote");
    refuse_header("{'a\\x62c': 1}", "without escapes");
    refuse_header("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", "expected True or False");
    refuse_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "nothing but spaces");
}

static void test_bad_types(void **state)
{
    (void)state;
    const char *descrs[] = {"'<c8'", "'|O'", "'<U3'", "'|S1'",     "'<f16'",
                            "'|f4'", "''",   "'f4'",  "'<M8[ns]'", "[('a', '<f4')]"};
    for (size_t i = 0; i < sizeof(descrs) / sizeof(descrs[0]); i++) {
        char header[128];
        snprintf(header, sizeof(header), "{'descr': %s, 'fortran_order': False, 'shape': (), }", descrs[i]);
        refuse_header(header, "at byte 20: expected an element type among");
    }
}

static void test_bad_shapes(void **state)
{
    (void)state;
#define WITH_SHAPE(shape) "{'descr': '<f8', 'fortran_order': False, 'shape': " shape ", }"
    refuse_header(WITH_SHAPE("3"), "expected '('");
    refuse_header(WITH_SHAPE("(3)"), "expected ','");
    refuse_header(WITH_SHAPE("(-1,)"), "expected a size");
    refuse_header(WITH_SHAPE("(1.5,)"), "expected ','");
    refuse_header(WITH_SHAPE("(2, 3 4)"), "expected ',' or ')'");
    refuse_header(WITH_SHAPE("(1,1,1,1,1,1,1,1,1)"), "expected at most 8 dimensions");
    refuse_header(WITH_SHAPE("(9223372036854775808,)"), "expected a size below 2^63");
    refuse_header(WITH_SHAPE("(9223372036854775807, 9223372036854775807)"),
                  "expected a shape whose product fits in memory");
    refuse_header(WITH_SHAPE("(0, 9223372036854775807, 4)"), "expected a shape whose product fits in memory");
    refuse_header(WITH_SHAPE("(100000000000000,)"),
                  "expected 800000000000000 bytes of elements, as given by the shape, found 0");
}

static void test_sizes_must_match(void **state)
{
    (void)state;
    const char *header = "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }";
    byte_block file = npy_file(1, header, "abc", 3);
    refuse_bytes(&file, "at byte 67: expected 4 bytes of elements, as given by the shape, found 3");
    append(&file, "de", 2);
    refuse_bytes(&file, "at byte 71: expected the end of the file after the elements");
    bytes_free(&file);
    file = npy_file(1, "{'descr': '<u8', 'fortran_order': False, 'shape': (2,), }",
                    "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x80", 16);
    refuse_bytes(&file, "at byte 75: element 1 is a uint64 that no int64 can hold");
    bytes_free(&file);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void test_round_trip(void **state)
{
    (void)state;
    static const kn_dtype dtypes[] = {KN_F64, KN_F32, KN_F16, KN_I64, KN_I32, KN_I16, KN_I8, KN_U8, KN_BOOL};
    unsigned char data[48];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = i % 3 == 0;
    const char *path = temporary("round.npy");
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++)
        for (int ndim = 0; ndim <= 3; ndim++) {
            kn_tensor *tensor = host_tensor(dtypes[i], data, ndim, (const int64_t[]){3, 1, 2}), *loaded = NULL;
            assert_ok(kn_save_npy(path, tensor));
            assert_new(loaded = kn_load_npy(path));
            assert_int_equal(kn_dtype_of(loaded), dtypes[i]);
            assert_int_equal(kn_ndim(loaded), ndim);
            for (int dim = 0; dim < ndim; dim++)
                assert_int_equal(kn_size(loaded, dim), kn_size(tensor, dim));
            assert_memory_equal(kn_data(loaded), data, (size_t)kn_numel(tensor) * kn_dtype_size(dtypes[i]));
            kn_release(loaded);
            kn_release(tensor);
        }
}

static void test_numpy_has_no_bfloat16(void **state)
{
    (void)state;
    kn_tensor *tensor = host_tensor(KN_BF16, "\0\0", 1, (const int64_t[]){1});
    assert_fails(kn_save_npy(temporary("bfloat.npy"), tensor), KN_ERR_DTYPE,
                 "kn_save_npy: NumPy has no bfloat16: convert the tensor to float32 with kn_to_dtype");
    kn_release(tensor);
}

/* The bytes that numpy.save writes for np.array([[1, 2, 3]], dtype=np.float32). */
static void test_bytes_are_numpys(void **state)
{
    (void)state;
    const float values[] = {1, 2, 3};
    kn_tensor *tensor = host_tensor(KN_F32, values, 2, (const int64_t[]){1, 3});
    const char *path = temporary("exact.npy");
    assert_ok(kn_save_npy(path, tensor));
    kn_release(tensor);
    byte_block expected = {0};
    append(&expected, "\x93NUMPY\1\0\x76\0", 10);
    append_text(&expected, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }");
    while (expected.size < 127)
        append_text(&expected, " ");
    append_text(&expected, "\n");
    append(&expected, "\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40", 12);
    assert_true(file_is(path, expected.data, expected.size));
    bytes_free(&expected);
}

static void test_bad_arguments(void **state)
{
    (void)state;
    assert_fails(kn_status_of(kn_load_npy(NULL)), KN_ERR_ARGUMENT, "path");
    assert_fails(kn_status_of(kn_load_npy(temporary("absent.npy"))), KN_ERR_IO, "No such file");
    assert_fails(kn_save_npy(temporary("x.npy"), NULL), KN_ERR_ARGUMENT, "tensor");
    assert_fails(kn_save_npy(NULL, NULL), KN_ERR_ARGUMENT, "path");
}

static void test_out_of_memory(void **state)
{
    (void)state;
    kn_tensor *tensor = load(1, "{'descr': '<i2', 'fortran_order': True, 'shape': (1, 2), }", "abcd", 4), *again = NULL;
    const char *source = temporary("good.npy"), *target = temporary("memory.npy");
    for (long n = 1;; n++) {
        kn_fail_alloc_after(n, 0);
        kn_status status = kn_save_npy(target, tensor);
        if (status == KN_OK)
            status = kn_status_of(again = kn_load_npy(source));
        kn_fail_alloc_after(0, 0);
        if (status == KN_OK)
            break;
        assert_fails(status, KN_ERR_MEMORY, "");
        assert_true(n < 100);
    }
    kn_release(again);
    kn_release(tensor);
}

static void test_mutations(void **state)
{
    (void)state;
    const char *headers[] = {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }        \n",
                             "{'descr': '>i2', 'fortran_order': True, 'shape': (3, 2, 2), }      \n"};
    const char *path = temporary("mutant.npy");
    for (uint64_t n = 0; n < 6000; n++) {
        byte_block original = npy_file(1 + (int)(n / 2 % 3), headers[n % 2], "abcdefghijklmnopqrstuvwx", 24),
                   copy = mutated(&original, n);
        write_bytes(path, copy.data, copy.size);
        bytes_free(&copy);
        bytes_free(&original);
        kn_tensor *tensor = NULL;
        if ((tensor = kn_load_npy(path)) != NULL) {
            kn_release(tensor);
            continue;
        }
        if (!strstr(kn_error_message(), path))
            fail_msg("mutant %llu: %s", (unsigned long long)n, kn_error_message());
        kn_error_clear();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_types_and_byte_orders),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_fortran_order),
        cmocka_unit_test(test_bad_preamble),
        cmocka_unit_test(test_huge_header),
        cmocka_unit_test(test_bad_header),
        cmocka_unit_test(test_bad_types),
        cmocka_unit_test(test_bad_shapes),
        cmocka_unit_test(test_sizes_must_match),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_bytes_are_numpys),
        cmocka_unit_test(test_numpy_has_no_bfloat16),
        cmocka_unit_test(test_bytes_are_numpys),
        cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
