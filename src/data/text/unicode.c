/* data/text/unicode.c - characters of UTF-8 and their classes. */
#include "data/text/unicode.h"

#include <stdbool.h>

#include "base/utf8.h"

static bool is_in(const kn_code_range *ranges, int count, uint32_t code)
{
    int low = 0, high = count - 1;
    while (low <= high) {
        const int middle = (low + high) / 2;
        if (code < ranges[middle].first)
            high = middle - 1;
        else if (code > ranges[middle].last)
            low = middle + 1;
        else
            return true;
    }
    return false;
}

/* Unicode's White_Space. */
static bool is_space(uint32_t code)
{
    return (code >= 0x9 && code <= 0xd) || code == 0x20 || code == 0x85 || code == 0xa0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f ||
           code == 0x3000;
}

static kn_char_class class_of_ascii(uint32_t code)
{
    if ((code | 0x20) >= 'a' && (code | 0x20) <= 'z')
        return KN_CHAR_LETTER;
    return code >= '0' && code <= '9' ? KN_CHAR_NUMBER : is_space(code) ? KN_CHAR_SPACE : KN_CHAR_OTHER;
}

static kn_char_class class_of(uint32_t code)
{
    if (code < 0x80)
        return class_of_ascii(code);
    return is_in(kn_unicode_letters, kn_unicode_letters_count, code)   ? KN_CHAR_LETTER
           : is_in(kn_unicode_numbers, kn_unicode_numbers_count, code) ? KN_CHAR_NUMBER
           : is_space(code)                                            ? KN_CHAR_SPACE
                                                                       : KN_CHAR_OTHER;
}

static uint32_t decode(const unsigned char *c, size_t length)
{
    switch (length) {
    case 1:
        return c[0];
    case 2:
        return (c[0] & 0x1fu) << 6 | (c[1] & 0x3fu);
    case 3:
        return (c[0] & 0xfu) << 12 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu);
    default:
        return (c[0] & 0x7u) << 18 | (c[1] & 0x3fu) << 12 | (c[2] & 0x3fu) << 6 | (c[3] & 0x3fu);
    }
}

kn_character kn_character_at(const char *text, size_t left)
{
    if (left == 0)
        return (kn_character){0, 0, KN_CHAR_OTHER};
    const size_t length = kn_utf8_length(text, left);
    if (length == 0)
        return (kn_character){(unsigned char)text[0], 1, KN_CHAR_OTHER};
    const uint32_t code = decode((const unsigned char *)text, length);
    return (kn_character){code, (uint32_t)length, class_of(code)};
}

size_t kn_utf8_encode(char *text, uint32_t code)
{
    if (code < 0x80) {
        text[0] = (char)code;
        return 1;
    }
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    const size_t more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    text[0] = (char)(lead[more] | code >> 6 * more);
    for (size_t i = 1; i <= more; i++)
        text[i] = (char)(0x80u | (code >> 6 * (more - i) & 0x3fu));
    return more + 1;
}
