/* test_safetensors_refused - damaged and malicious safetensors files. */
#include <koine/io.h>

#include "io/check.h"
#include "io/files.h"

/* The length, this header text and these elements. */
static byte_block make_file(const char *header, const void *elements, size_t size)
{
    byte_block file = {0};
    append_little(&file, strlen(header), 8);
    append_text(&file, header);
    append(&file, elements, size);
    return file;
}

/* --- bad files -------------------------------------------------------------------------------- */

static void refuse_bytes(const byte_block *content, const char *piece)
{
    const char *path = temporary("bad.safetensors");
    write_bytes(path, content->data, content->size);
    kn_status status = kn_status_of(kn_load_safetensors(path));
    assert_non_null(strstr(kn_error_message(), path));
    assert_non_null(strstr(kn_error_message(), "at byte "));
    assert_fails(status, KN_ERR_FORMAT, piece);
}

static void refuse(const char *header, const void *elements, size_t size, const char *piece)
{
    byte_block content = make_file(header, elements, size);
    refuse_bytes(&content, piece);
    bytes_free(&content);
}

static void test_bad_lengths(void **state)
{
    (void)state;
    byte_block content = {0};
    refuse_bytes(&content, "at byte 0: expected 8 bytes of the header's length, found 0");
    append_text(&content, "\2");
    refuse_bytes(&content, "at byte 0: expected 8 bytes of the header's length, found 1");
    bytes_free(&content);
    append_little(&content, 50, 8);
    append_text(&content, "{}");
    refuse_bytes(&content, "at byte 8: expected 50 bytes of header, found 2");
    bytes_free(&content);
    append_little(&content, 100000001, 8);
    append_text(&content, "{}");
    refuse_bytes(&content, "at byte 0: expected a header of at most 100000000 bytes, found a length of 100000001");
    bytes_free(&content);
    append_little(&content, UINT64_MAX, 8);
    append_text(&content, "{}");
    refuse_bytes(&content, "found a length of 18446744073709551615");
    bytes_free(&content);
    append_little(&content, 0, 8);
    refuse_bytes(&content, "expected a header of at least 2 bytes");
    bytes_free(&content);
    append_little(&content, 99999999, 8); /* within the limit, but missing */
    append_text(&content, "{}");
    refuse_bytes(&content, "at byte 8: expected 99999999 bytes of header, found 2");
    bytes_free(&content);
}

static void test_bad_json(void **state)
{
    (void)state;
    refuse("[]", "", 0, "at byte 8: expected '{'");
    refuse(" {}", "", 0, "at byte 8: expected '{'");
    refuse("{\"a\":", "", 0, "expected JSON");
    refuse("{\"a\" 1}", "", 0, "expected JSON");
    refuse("{} {}", "", 0, "at byte 11: expected nothing but spaces");
    refuse("{}\n", "", 0, "at byte 10: expected nothing but spaces");
    refuse("{\"\xff\":1}", "", 0, "at byte 10: expected UTF-8");
    refuse("{\"\xc0\x80\":1}", "", 0, "at byte 10: expected UTF-8");
    refuse("{\"\xed\xa0\x80\":1}", "", 0, "at byte 10: expected UTF-8");
    refuse("{\"a\\u0000b\":1}", "", 0, "at byte 11: expected no NUL characters");
    refuse("{\"a\\", "", 0,
           "expected JSON"); /* the header ends within an escape: once read past the end (found by fuzzing) */
    byte_block content = make_file("{\"a\":1}", "", 0);
    content.data[10] = '\0';
    refuse_bytes(&content, "at byte 10: expected no NUL characters");
    bytes_free(&content);
}

/* Thousands of nested lists would exhaust the stack of a recursive parser without a limit. */
static void test_deep_json(void **state)
{
    (void)state;
    byte_block content = {0};
    const int depth = 200000;
    append_little(&content, (uint64_t)depth + 5, 8);
    append_text(&content, "{\"a\":");
    for (int i = 0; i < depth; i++)
        append_text(&content, "[");
    refuse_bytes(&content, "expected JSON");
    bytes_free(&content);
}

/* A header of commas would become a tree of 64 bytes per byte: rejected before it is built. */
static void test_many_values(void **state)
{
    (void)state;
    byte_block content = {0};
    const size_t size = 5000000;
    append_little(&content, size, 8);
    append_text(&content, "{\"a\":[");
    while (content.size < size + 8)
        append_text(&content, "0,");
    refuse_bytes(&content, "expected a header of at most");
    bytes_free(&content);
}

#define ENTRY(fields) "{\"x\":{" fields "}}"
#define GOOD_DTYPE "\"dtype\":\"F32\","
#define GOOD_SHAPE "\"shape\":[1],"
#define GOOD_OFFSETS "\"data_offsets\":[0,4]"

static void test_bad_entries(void **state)
{
    (void)state;
    const char *fields = "each of dtype, shape and data_offsets once";
    refuse("{\"x\":1}", "", 0, "tensor 'x': expected an object");
    refuse(ENTRY(GOOD_SHAPE GOOD_OFFSETS), "1234", 4, fields);
    refuse(ENTRY(GOOD_DTYPE GOOD_OFFSETS), "1234", 4, fields);
    refuse(ENTRY(GOOD_DTYPE "\"shape\":[1]"), "1234", 4, fields);
    refuse(ENTRY(GOOD_DTYPE GOOD_DTYPE GOOD_SHAPE GOOD_OFFSETS), "1234", 4, fields);
    refuse(ENTRY(GOOD_DTYPE GOOD_SHAPE GOOD_OFFSETS ",\"more\":1"), "1234", 4, fields);
    refuse(ENTRY("\"dtype\":1," GOOD_SHAPE GOOD_OFFSETS), "1234", 4, "\"dtype\" to be a string");
    refuse(ENTRY("\"dtype\":\"F8_E4M3\"," GOOD_SHAPE GOOD_OFFSETS), "1234", 4, "a dtype among F64");
    refuse(ENTRY(GOOD_DTYPE "\"shape\":1," GOOD_OFFSETS), "1234", 4, "\"shape\" to be a list");
    refuse(ENTRY(GOOD_DTYPE "\"shape\":[-1]," GOOD_OFFSETS), "1234", 4, "each size to be a whole number");
    refuse(ENTRY(GOOD_DTYPE "\"shape\":[1.5]," GOOD_OFFSETS), "1234", 4, "each size to be a whole number");
    refuse(ENTRY(GOOD_DTYPE "\"shape\":[\"1\"]," GOOD_OFFSETS), "1234", 4, "each size to be a whole number");
    refuse(ENTRY(GOOD_DTYPE "\"shape\":[1e300]," GOOD_OFFSETS), "1234", 4, "each size to be a whole number");
    refuse(ENTRY(GOOD_DTYPE "\"shape\":[1,1,1,1,1,1,1,1,1]," GOOD_OFFSETS), "1234", 4, "at most 8 dimensions");
    refuse(ENTRY(GOOD_DTYPE "\"shape\":[9007199254740992,9007199254740992]," GOOD_OFFSETS), "1234", 4,
           "product fits in memory");
    refuse(ENTRY(GOOD_DTYPE "\"shape\":[0,9007199254740992,9007199254740992]," GOOD_OFFSETS), "1234", 4,
           "product fits in memory");
}

static void test_bad_offsets(void **state)
{
    (void)state;
    const char *pair = "\"data_offsets\" to be [begin, end]";
    refuse(ENTRY(GOOD_DTYPE GOOD_SHAPE "\"data_offsets\":4"), "1234", 4, pair);
    refuse(ENTRY(GOOD_DTYPE GOOD_SHAPE "\"data_offsets\":[0]"), "1234", 4, pair);
    refuse(ENTRY(GOOD_DTYPE GOOD_SHAPE "\"data_offsets\":[0,4,8]"), "1234", 4, pair);
    refuse(ENTRY(GOOD_DTYPE GOOD_SHAPE "\"data_offsets\":[4,0]"), "1234", 4, pair);
    refuse(ENTRY(GOOD_DTYPE GOOD_SHAPE "\"data_offsets\":[-4,0]"), "1234", 4, pair);
    refuse(ENTRY(GOOD_DTYPE GOOD_SHAPE "\"data_offsets\":[0,1e18]"), "1234", 4, pair);
    refuse(ENTRY(GOOD_DTYPE GOOD_SHAPE "\"data_offsets\":[0,3]"), "1234", 4,
           "expected data_offsets 4 bytes apart, as given by dtype and shape, found 3");
    refuse(ENTRY(GOOD_DTYPE GOOD_SHAPE GOOD_OFFSETS), "123", 3,
           "expected 4 bytes of tensors, as given by the header, found 3");
    refuse(ENTRY(GOOD_DTYPE GOOD_SHAPE GOOD_OFFSETS), "12345", 5,
           "expected 4 bytes of tensors, as given by the header, found 5");
    refuse("{}", "1", 1, "at byte 10: expected 0 bytes of tensors, as given by the header, found 1");
    /* Claims eight terabytes with four bytes of data: no such allocation is attempted. */
    refuse(ENTRY(GOOD_DTYPE "\"shape\":[2199023255552],\"data_offsets\":[0,8796093022208]"), "1234", 4,
           "expected 8796093022208 bytes of tensors, as given by the header, found 4");
}

#define U8_ENTRY(name, size, begin, end)                                                                               \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" size "],\"data_offsets\":[" begin "," end "]}"

static void test_holes_and_overlaps(void **state)
{
    (void)state;
    refuse("{" U8_ENTRY("a", "1", "0", "1") "," U8_ENTRY("b", "1", "2", "3") "}", "123", 3,
           "tensor 'b': expected it to begin here, at offset 1 of the data, with no gap");
    refuse("{" U8_ENTRY("b", "2", "1", "3") "," U8_ENTRY("a", "2", "0", "2") "}", "123", 3,
           "tensor 'b': expected it to begin here, at offset 2 of the data, with no overlap");
    refuse("{" U8_ENTRY("a", "3", "0", "3") "," U8_ENTRY("b", "3", "0", "3") "}", "123", 3, "with no overlap");
    refuse("{" U8_ENTRY("a", "2", "1", "3") "}", "123", 3, "with no gap");
}

static void test_duplicates(void **state)
{
    (void)state;
    refuse("{" U8_ENTRY("a", "1", "0", "1") "," U8_ENTRY("b", "1", "1", "2") "," U8_ENTRY("a", "1", "2", "3") "}",
           "123", 3, "found 'a' twice");
    refuse("{" U8_ENTRY("a", "1", "0", "1") "," U8_ENTRY("\\u0061", "1", "1", "2") "}", "12", 2, "found 'a' twice");
    refuse("{\"__metadata__\":{},\"__metadata__\":{}}", "", 0, "found '__metadata__' twice");
    refuse("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", "", 0, "found 'k' twice");
}

static void test_bad_metadata(void **state)
{
    (void)state;
    refuse("{\"__metadata__\":[]}", "", 0, "expected \"__metadata__\" to be an object");
    refuse("{\"__metadata__\":{\"k\":1}}", "", 0,
           "expected each value of \"__metadata__\" to be a string, found another type for 'k'");
}

static void test_uint64_too_large(void **state)
{
    (void)state;
    refuse("{\"x\":{\"dtype\":\"U64\",\"shape\":[1],\"data_offsets\":[0,8]}}", "\0\0\0\0\0\0\0\x80", 8,
           "tensor 'x': expected uint64 values that fit an int64");
}

static void test_unreadable(void **state)
{
    (void)state;
    kn_tensor_file *file;
    assert_fails(kn_status_of(file = kn_load_safetensors(temporary("absent"))), KN_ERR_IO, "No such file");
    assert_fails(kn_status_of(file = kn_load_safetensors("/")), KN_ERR_IO, "Is a directory");
    assert_fails(kn_status_of(file = kn_load_safetensors("/dev/zero")), KN_ERR_IO,
                 "it is a device, not a regular file");
    assert_fails(kn_status_of(file = kn_load_safetensors(NULL)), KN_ERR_ARGUMENT, "path");
}

/* --- damage ----------------------------------------------------------------------------------- */

static void test_mutations(void **state)
{
    (void)state;
    byte_block original =
        make_file("{\"__metadata__\":{\"k\":\"v\"}," U8_ENTRY(
                      "a", "2,2", "0", "4") ","
                                            "\"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[4,8]}}",
                  "abcdefgh", 8);
    const char *path = temporary("mutant.safetensors");
    for (uint64_t n = 0; n < 6000; n++) {
        byte_block copy = mutated(&original, n);
        write_bytes(path, copy.data, copy.size);
        bytes_free(&copy);
        kn_tensor_file *file = NULL;
        if ((file = kn_load_safetensors(path)) != NULL) {
            kn_tensor_file_free(file);
            continue;
        }
        if (!strstr(kn_error_message(), path))
            fail_msg("mutant %llu: %s", (unsigned long long)n, kn_error_message());
        kn_error_clear();
    }
    bytes_free(&original);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_lengths),        cmocka_unit_test(test_bad_json),
        cmocka_unit_test(test_deep_json),          cmocka_unit_test(test_many_values),
        cmocka_unit_test(test_bad_entries),        cmocka_unit_test(test_bad_offsets),
        cmocka_unit_test(test_holes_and_overlaps), cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_bad_metadata),       cmocka_unit_test(test_uint64_too_large),
        cmocka_unit_test(test_unreadable),         cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
