/* data/text/split.c - splits a text into words as the regular expressions of well-known tokenizers do, written out by
 * hand. Each alternative of an expression is a function that returns the length of its match, 0 for none; the first that
 * matches counts. */
#include <string.h>

#include "data/text/tokenizer.h"
#include "data/text/unicode.h"

static const char *const patterns[] = {
    [KN_SPLIT_GPT2] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    [KN_SPLIT_LLAMA3] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
                        "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    [KN_SPLIT_QWEN2] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
                       "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
};

const char *kn_split_pattern(kn_split_kind kind) { return patterns[kind]; }

bool kn_split_find(kn_split_kind *kind, const char *pattern)
{
    for (int i = KN_SPLIT_GPT2; i <= KN_SPLIT_QWEN2; i++)
        if (strcmp(patterns[i], pattern) == 0) {
            *kind = (kn_split_kind)i;
            return true;
        }
    return false;
}

/* --- alternatives ------------------------------------------------------------------------------------------------- */

/* The bytes of up to `most` characters of a class. */
static size_t run_of(kn_char_class class, const char *text, size_t left, int most)
{
    size_t length = 0;
    for (int i = 0; i < most; i++) {
        const kn_character c = kn_character_at(text + length, left - length);
        if (c.bytes == 0 || c.class != class)
            break;
        length += c.bytes;
    }
    return length;
}

#define ALL INT32_MAX

static bool is_line_end(char c) { return c == '\r' || c == '\n'; }

/* 's|'t|'re|'ve|'m|'ll|'d */
static size_t contraction(const char *text, size_t left, bool any_case)
{
    static const char *const endings[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (text[0] != '\'')
        return 0;
    for (size_t e = 0; e < sizeof endings / sizeof endings[0]; e++) {
        const size_t length = strlen(endings[e]);
        size_t same = 0;
        while (same < length && 1 + same < left &&
               (text[1 + same] == endings[e][same] || (any_case && (text[1 + same] | 0x20) == endings[e][same])))
            same++;
        if (same == length)
            return 1 + length;
    }
    if (any_case && left >= 3 && memcmp(text + 1, "\xc5\xbf", 2) == 0)
        return 3; /* the long s, whose lower case is s */
    return 0;
}

/* " ?" and a run of characters of the class. */
static size_t spaced_run(kn_char_class class, const char *text, size_t left)
{
    const size_t space = text[0] == ' ' ? 1 : 0, length = run_of(class, text + space, left - space, ALL);
    return length > 0 ? space + length : 0;
}

/* [^\r\n\p{L}\p{N}]?\p{L}+ */
static size_t prefixed_letters(const char *text, size_t left)
{
    const kn_character c = kn_character_at(text, left);
    const bool is_prefix = (c.class == KN_CHAR_OTHER || c.class == KN_CHAR_SPACE) && !is_line_end(text[0]);
    const size_t prefix = is_prefix ? c.bytes : 0, length = run_of(KN_CHAR_LETTER, text + prefix, left - prefix, ALL);
    return length > 0 ? prefix + length : 0;
}

/* " ?[^\s\p{L}\p{N}]+[\r\n]*" */
static size_t others_and_line_ends(const char *text, size_t left)
{
    size_t length = spaced_run(KN_CHAR_OTHER, text, left);
    while (length > 0 && length < left && is_line_end(text[length]))
        length++;
    return length;
}

/* \s*[\r\n]+: to the last line end of the blanks */
static size_t blanks_to_line_end(const char *text, size_t left)
{
    size_t length = run_of(KN_CHAR_SPACE, text, left, ALL);
    while (length > 0 && !is_line_end(text[length - 1]))
        length--;
    return length;
}

/* \s+(?!\S)|\s+: all blanks at the end of the text, else all but the last one, which belongs to the next word; or that
 * alone. */
static size_t blanks(const char *text, size_t left)
{
    size_t length = 0, last = 0;
    for (;;) {
        const kn_character c = kn_character_at(text + length, left - length);
        if (c.bytes == 0)
            return length;
        if (c.class != KN_CHAR_SPACE)
            return length > last ? length - last : length;
        length += last = c.bytes;
    }
}

/* --- expressions -------------------------------------------------------------------------------------------------- */

static size_t gpt2_word(const char *text, size_t left)
{
    size_t length = contraction(text, left, false);
    length = length ? length : spaced_run(KN_CHAR_LETTER, text, left);
    length = length ? length : spaced_run(KN_CHAR_NUMBER, text, left);
    length = length ? length : spaced_run(KN_CHAR_OTHER, text, left);
    return length ? length : blanks(text, left);
}

static size_t llama3_word(const char *text, size_t left, int digits)
{
    size_t length = contraction(text, left, true);
    length = length ? length : prefixed_letters(text, left);
    length = length ? length : run_of(KN_CHAR_NUMBER, text, left, digits);
    length = length ? length : others_and_line_ends(text, left);
    length = length ? length : blanks_to_line_end(text, left);
    return length ? length : blanks(text, left);
}

size_t kn_split_word(kn_split_kind kind, const char *text, size_t left)
{
    switch (kind) {
    case KN_SPLIT_GPT2:
        return gpt2_word(text, left);
    case KN_SPLIT_LLAMA3:
        return llama3_word(text, left, 3);
    case KN_SPLIT_QWEN2:
        return llama3_word(text, left, 1);
    case KN_SPLIT_NONE:
        break;
    }
    return left;
}
