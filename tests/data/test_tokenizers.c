/* test_tokenizers - tokenizers: bytes, byte-level BPE learned from a text and from tokenizer.json; windows of tokens.
 * The ids are those of Hugging Face's tokenizers 0.23; tests/compare_tokenizers.py compares many more. */
#include <koine/koine.h>
#include <stdlib.h>

#include "io/check.h"
#include "io/files.h"

static const char lesson[] =
    "the cat sat on the mat. The cat's hat isn't the rat's: 123 cats, 1234 hats, 12 mats!\n\n  the end\n"
    "the cat sat on the mat. The cat's hat isn't the rat's: 123 cats, 1234 hats, 12 mats!\n\n  the end\n"
    "the cat sat on the mat. The cat's hat isn't the rat's: 123 cats, 1234 hats, 12 mats!\n\n  the end\n";

static kn_tokenizer *learned(void)
{
    return kn_bpe_train(lesson, sizeof lesson - 1, 290, .special_tokens = KN_NAMES("<|endoftext|>", "<pad>"));
}

static void expect_ids(const kn_tokenizer *tokenizer, const char *text, const int64_t *expected, int64_t count)
{
    int64_t *ids, found;
    size_t length = 0;
    assert_new(tokenizer);
    assert_ok(kn_tokenizer_encode(tokenizer, text, strlen(text), &ids, &found));
    if (found != count || memcmp(ids, expected, (size_t)count * sizeof ids[0]) != 0)
        fail_msg("other ids of \"%s\"", text);
    char *back = kn_tokenizer_decode(tokenizer, ids, found, .skip_special_tokens = false, .length = &length);
    assert_non_null(back);
    assert_int_equal(length, strlen(text));
    assert_string_equal(back, text);
    kn_free(back);
    kn_free(ids);
}
#define EXPECT_IDS(tokenizer, text, ...)                                                                               \
    expect_ids(tokenizer, text, (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static void expect_learned(const kn_tokenizer *t)
{
    EXPECT_IDS(t, "the cat sat", 260, 265, 285);
    EXPECT_IDS(t, "The hat's mats: 1234!", 273, 269, 266, 288, 27, 289, 2);
    EXPECT_IDS(t, "  the\n\n end \t\n", 222, 263, 279, 281, 69, 222, 199, 200);
    EXPECT_IDS(t, "a<|endoftext|><pad> b", 66, 0, 1, 222, 67);
    EXPECT_IDS(t, "na\u00efve \u65e5\u672c \u00bd don't'll", 79, 66, 129, 109, 87, 70, 222, 164, 247, 100, 164, 252,
               107, 222, 128, 123, 222, 69, 276, 272, 8, 77, 77);
    EXPECT_IDS(t, " ", 222);
    EXPECT_IDS(t, "\n\n\n x", 279, 200, 222, 89);
    assert_int_equal(kn_tokenizer_vocab_size(t), 290);
    assert_int_equal(kn_tokenizer_id(t, "\u0120the"), 263);
    assert_int_equal(kn_tokenizer_id(t, "<pad>"), 1);
    assert_int_equal(kn_tokenizer_id(t, "nothing"), -1);
}

static void a_learned_bpe(void **state)
{
    (void)state;
    kn_tokenizer *tokenizer = learned();
    expect_learned(tokenizer);
    assert_ok(kn_tokenizer_save(tokenizer, temporary("tokenizer.json")));
    kn_tokenizer *loaded = kn_tokenizer_load(temporary("tokenizer.json"));
    expect_learned(loaded);
    char *text = kn_tokenizer_decode(loaded, ((const int64_t[]){66, 0, 67}), 3); /* special tokens are left out */
    assert_string_equal(text, "ab");
    kn_free(text);
    assert_null(kn_tokenizer_decode(loaded, ((const int64_t[]){5, 290}), 2));
    assert_fails(kn_error_status(), KN_ERR_ARGUMENT, "id 1 is 290; there is no such token");
    kn_tokenizer_free(loaded);
    kn_tokenizer_free(tokenizer);
    assert_fails(kn_status_of(tokenizer = kn_bpe_train("abc", 3, 255)), KN_ERR_ARGUMENT,
                 "vocab_size is 255; it must be from 256");
    assert_fails(kn_status_of(tokenizer = kn_bpe_train("abc", 3, 300, .special_tokens = KN_NAMES("<a>", "<\xff>"))),
                 KN_ERR_ARGUMENT, "special token 1 is not UTF-8 from byte 1 on"); /* a file could not be read again */
    assert_new(tokenizer = kn_bpe_train("", 0, 300));                             /* nothing to learn */
    assert_int_equal(kn_tokenizer_vocab_size(tokenizer), 256);
    kn_tokenizer_free(tokenizer);
}

static void bytes_are_tokens(void **state)
{
    (void)state;
    kn_tokenizer *tokenizer = kn_byte_tokenizer();
    unsigned char all[512];
    int64_t *ids, count;
    size_t length;
    assert_new(tokenizer);
    for (int i = 0; i < 512; i++)
        all[i] = (unsigned char)(i * 7);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(kn_tokenizer_vocab_size(tokenizer), 256);
        assert_ok(kn_tokenizer_encode(tokenizer, (const char *)all, sizeof all, &ids, &count));
        assert_int_equal(count, sizeof all);
        for (int i = 0; i < 512; i++)
            assert_int_equal(ids[i], all[i]);
        char *text = kn_tokenizer_decode(tokenizer, ids, count, .length = &length);
        assert_int_equal(length, sizeof all);
        assert_memory_equal(text, all, sizeof all);
        kn_free(text);
        kn_free(ids);
        assert_ok(kn_tokenizer_save(tokenizer, temporary("bytes.json")));
        kn_tokenizer_free(tokenizer);
        assert_new(tokenizer = kn_tokenizer_load(temporary("bytes.json")));
    }
    assert_ok(kn_tokenizer_encode(tokenizer, "", 0, &ids, &count));
    assert_int_equal(count, 0);
    kn_free(ids);
    kn_tokenizer_free(tokenizer);
}

/* A word of a megabyte, with all its pairs alike. */
static void long_words_are_no_trouble(void **state)
{
    (void)state;
    const size_t size = 1 << 20;
    char *text = malloc(size);
    int64_t *ids, count;
    memset(text, 'a', size);
    kn_tokenizer *tokenizer = kn_bpe_train(text, 4096, 266);
    assert_new(tokenizer);
    assert_ok(kn_tokenizer_encode(tokenizer, text, size, &ids, &count));
    assert_true(count < (int64_t)size / 256);
    char *back = kn_tokenizer_decode(tokenizer, ids, count);
    assert_memory_equal(back, text, size);
    kn_free(back);
    kn_free(ids);
    kn_tokenizer_free(tokenizer);
    free(text);
}

/* --- tokenizer.json ------------------------------------------------------------------------------- */

static kn_tokenizer *load_text(const char *json)
{
    write_bytes(temporary("tokenizer.json"), json, strlen(json));
    return kn_tokenizer_load(temporary("tokenizer.json"));
}

#define MODEL                                                                                                          \
    "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2, \"\u0120\": 3}, \"merges\": [\"a b\"]}"
#define BYTE_LEVEL "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}"

static void files_are_read(void **state)
{
    (void)state;
    kn_tokenizer *t = load_text("{" MODEL ", " BYTE_LEVEL "}");
    EXPECT_IDS(t, "ab aab", 2, 3, 0, 2);
    kn_tokenizer_free(t);
    t = load_text("{" MODEL ", \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true}}");
    int64_t *ids, count;
    assert_ok(kn_tokenizer_encode(t, "abc", 3, &ids, &count)); /* there is no c: it is left out */
    assert_int_equal(count, 2);
    assert_true(ids[0] == 3 && ids[1] == 2);
    kn_free(ids);
    kn_tokenizer_free(t);
    t = load_text("{" MODEL ", " BYTE_LEVEL ", \"added_tokens\": [{\"id\": 4, \"content\": \"<b>\", \"lstrip\": true, "
                  "\"rstrip\": true, \"special\": true}, {\"id\": 5, \"content\": \"<b>b\"}]}");
    assert_ok(kn_tokenizer_encode(t, "a \t<b> a<b>b", 12, &ids, &count));
    assert_int_equal(count, 4);
    assert_true(ids[0] == 0 && ids[1] == 4 && ids[2] == 0 && ids[3] == 5);
    kn_free(ids);
    kn_tokenizer_free(t);
    t = load_text("{" MODEL ", " BYTE_LEVEL ", \"added_tokens\": [{\"id\": 4, \"content\": \"\\\\u0000\"}]}");
    EXPECT_IDS(t, "a\\u0000", 0, 4); /* six letters */
    kn_tokenizer_free(t);
}

static void other_files_are_refused(void **state)
{
    (void)state;
    kn_tokenizer *t;
#define REFUSED(piece, ...) assert_fails(kn_status_of(t = load_text(__VA_ARGS__)), KN_ERR_FORMAT, piece)
    REFUSED("at byte", "{\"model\": ");
    REFUSED("expected an object with a \"model\"", "[]");
    REFUSED("expected UTF-8", "{\"\xff\": 1}");
    REFUSED("no NUL", "{\"\\u0000\": 1}");
    REFUSED("no NUL", "{\"\\\\\\u0000\": 1}");
    REFUSED("the model's type is \"Unigram\"; only BPE is supported", "{\"model\": {\"type\": \"Unigram\"}}");
    REFUSED("\"NFC\" is not supported", "{\"normalizer\": {\"type\": \"NFC\"}, " MODEL ", " BYTE_LEVEL "}");
    REFUSED("only byte-level BPE", "{" MODEL ", \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": []}}");
    REFUSED("the type \"Whitespace\" is not supported", "{" MODEL ", \"pre_tokenizer\": {\"type\": \"Whitespace\"}}");
    REFUSED("the expression \"x+\" is not supported",
            "{" MODEL ", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"x+\"}, \"behavior\": "
            "\"Isolated\"}}");
    REFUSED("\"byte_fallback\"", "{\"model\": {\"type\": \"BPE\", \"byte_fallback\": true}}");
    REFUSED("expected \"vocab\"", "{\"model\": {\"type\": \"BPE\"}}");
    REFUSED("the id of \"a\" must be a whole number", "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 1.5}}}");
    REFUSED("the id of \"a\" must be a whole number", "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 1e9}}}");
    REFUSED("\"a\" and \"b\" have the same id, 1", "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 1, \"b\": 1}}}");
    REFUSED("\"a\" has two ids, 0 and 1", "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"a\": 1}}}");
    REFUSED("must be in \"vocab\"",
            "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [[\"a\", \"a\"]]}}");
    REFUSED("merge 0 must be two tokens", "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [1]}}");
    REFUSED("\"single_word\" of \"x\" is not supported",
            "{" MODEL ", " BYTE_LEVEL ", \"added_tokens\": [{\"id\": 4, \"content\": \"x\", \"single_word\": true}]}");
    REFUSED("\"added_tokens\": \"b\" and \"x\" have the same id",
            "{" MODEL ", " BYTE_LEVEL ", \"added_tokens\": [{\"id\": 1, \"content\": \"x\"}]}");
    assert_fails(kn_status_of(t = kn_tokenizer_load("/nowhere.json")), KN_ERR_IO, "/nowhere.json");
}

static void damaged_files_are_refused_or_read(void **state)
{
    (void)state;
    static const char json[] = "{" MODEL ", " BYTE_LEVEL ", \"added_tokens\": [{\"id\": 4, \"content\": \"<b>\", "
                               "\"lstrip\": true, \"special\": true}]}";
    const byte_block whole = {(unsigned char *)(uintptr_t)json, sizeof json - 1, sizeof json};
    const char *path = temporary("damaged.json");
    for (uint64_t n = 0; n < 2000; n++) {
        byte_block bytes = mutated(&whole, n);
        int64_t *ids, count;
        write_bytes(path, bytes.data, bytes.size);
        kn_tokenizer *t = kn_tokenizer_load(path);
        if (!t)
            assert_true(strstr(kn_error_message(), path) != NULL);
        else if (kn_tokenizer_encode(t, (const char *)bytes.data, bytes.size, &ids, &count) == KN_OK)
            kn_free(ids);
        kn_tokenizer_free(t);
        kn_error_clear();
        bytes_free(&bytes);
    }
}

/* --- windows -------------------------------------------------------------------------------------- */

static void expect_window(kn_dataset *dataset, int64_t index, int64_t first)
{
    int64_t input[4], target[4];
    assert_ok(kn_dataset_get(dataset, index, (void *[]){input, target}));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(input[i], 'a' + first + i);
        assert_int_equal(target[i], 'a' + first + i + 1);
    }
}

static void windows_of_a_text(void **state)
{
    (void)state;
    const char *path = temporary("text.txt");
    write_bytes(path, "abcdefghijklmnopqrst", 20);
    kn_tokenizer *bytes = kn_byte_tokenizer();
    kn_dataset *d = kn_text_dataset(path, bytes, 4);
    assert_new(d);
    assert_int_equal(kn_dataset_length(d), 4); /* the last window needs a 21st token */
    expect_window(d, 0, 0);
    expect_window(d, 3, 12);
    kn_dataset_free(d);
    assert_new(d = kn_text_dataset(path, bytes, 4, .stride = 1));
    assert_int_equal(kn_dataset_length(d), 16);
    expect_window(d, 15, 15);
    kn_dataset_free(d);
    kn_dataset *kept = kn_text_dataset(path, bytes, 4, .stride = 1, .begin = 0.75);
    assert_new(kept);
    assert_int_equal(kn_dataset_length(kept), 1);
    expect_window(kept, 0, 15);
    kn_dataset_free(kept);
    assert_fails(kn_status_of(d = kn_text_dataset(path, bytes, 20)), KN_ERR_ARGUMENT,
                 "20 tokens are too few for a context of 20");
    assert_fails(kn_status_of(d = kn_text_dataset(path, bytes, 0)), KN_ERR_ARGUMENT, "the context is 0 tokens");
    assert_fails(kn_status_of(d = kn_text_dataset(path, bytes, 4, .begin = 0.5, .end = 0.4)), KN_ERR_ARGUMENT,
                 "from 0.5 to 0.4");
    assert_fails(kn_status_of(d = kn_text_dataset("/nowhere.txt", bytes, 4)), KN_ERR_IO, "/nowhere.txt");
    assert_fails(kn_status_of(d = kn_token_dataset(((const int64_t[]){1, -2, 3}), 3, 1)), KN_ERR_ARGUMENT,
                 "id 1 is -2");
    kn_tokenizer_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_learned_bpe),
        cmocka_unit_test(bytes_are_tokens),
        cmocka_unit_test(long_words_are_no_trouble),
        cmocka_unit_test(files_are_read),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(damaged_files_are_refused_or_read),
        cmocka_unit_test(windows_of_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
