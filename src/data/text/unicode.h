/* data/text/unicode.h - the classes of characters that tokenizers' regular expressions tell apart. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef enum kn_char_class { KN_CHAR_OTHER, KN_CHAR_LETTER, KN_CHAR_NUMBER, KN_CHAR_SPACE } kn_char_class;

typedef struct kn_character {
    uint32_t code;
    uint32_t bytes; /* 0 at the end of the text */
    kn_char_class class;
} kn_character;

/* The character at text[0], where `left` bytes remain. A byte that is not UTF-8 is a character of its own, of the class
 * "other". */
kn_character kn_character_at(const char *text, size_t left);

/* Appends a code point in UTF-8 to text, which has room for 4 bytes; returns their number. */
size_t kn_utf8_encode(char *text, uint32_t code);

/* unicode_ranges.c: in ascending order */
typedef struct kn_code_range {
    uint32_t first, last;
} kn_code_range;
extern const kn_code_range kn_unicode_letters[], kn_unicode_numbers[];
extern const int kn_unicode_letters_count, kn_unicode_numbers_count;
