/* base/utf8.c - see base/utf8.h. */
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

#define LONGEST_QUOTE 8 /* "\u202e" and its NUL */

size_t kn_utf8_length(const char *at, size_t left)
{
    const unsigned char *bytes = (const unsigned char *)at, lead = left > 0 ? bytes[0] : 0xFF;
    if (lead < 0x80)
        return 1;
    size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((bytes[i] & 0xC0) != 0x80)
            return 0;
    /* RFC 3629, section 4: no overlong forms, no surrogates, nothing above U+10FFFF. */
    const unsigned char second = bytes[1];
    const bool excluded = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
                          (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
    return excluded ? 0 : length;
}

bool kn_is_utf8(const char *text, size_t length, size_t *bad)
{
    for (size_t i = 0; i < length;) {
        const size_t step = kn_utf8_length(text + i, length - i);
        if (step == 0) {
            *bad = i;
            return false;
        }
        i += step;
    }
    return true;
}

void kn_text_append_utf8(kn_text *text, const char *piece)
{
    size_t left = strlen(piece);
    while (left > 0) {
        const size_t length = kn_utf8_length(piece, left), step = length > 0 ? length : 1;
        kn_text_append_bytes(text, length > 0 ? piece : "\xEF\xBF\xBD", length > 0 ? length : 3);
        piece += step;
        left -= step;
    }
}

/* --- escaping for terminals --------------------------------------------------------------------------------------- */

static unsigned code_point(const char *at, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)at;
    unsigned code = length == 1 ? bytes[0] : bytes[0] & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; i++)
        code = code << 6 | (bytes[i] & 0x3Fu);
    return code;
}

/* Excludes the control characters of ASCII and ISO 6429 (U+009B starts a control sequence as ESC [ does), bidirectional
 * controls, and line and paragraph separators. */
static bool is_printable(unsigned code)
{
    return code >= 0x20 && (code < 0x7F || code > 0x9F) && code != 0x061C && code != 0x200E && code != 0x200F &&
           !(code >= 0x2028 && code <= 0x202E) && !(code >= 0x2066 && code <= 0x2069);
}

/* Whether the character at `at` must be escaped; `quoted` is its escape, *length its length in bytes. */
static bool needs_quote(char quoted[LONGEST_QUOTE], const char *at, size_t left, bool keep_lines, size_t *length)
{
    *length = kn_utf8_length(at, left);
    const unsigned code = *length > 0 ? code_point(at, *length) : (unsigned char)*at;
    if (*length > 0 && (is_printable(code) || (keep_lines && (code == '\n' || code == '\t'))))
        return false;
    const char short_name = code == '\n' ? 'n' : code == '\t' ? 't' : code == '\r' ? 'r' : '\0';
    if (short_name)
        snprintf(quoted, LONGEST_QUOTE, "\\%c", short_name);
    else
        snprintf(quoted, LONGEST_QUOTE, *length > 1 ? "\\u%04x" : "\\x%02x", code & 0xFFFFu);
    *length = *length > 0 ? *length : 1;
    return true;
}

/* The common case: nothing to escape, nothing to move. */
static bool is_fine(const char *text, size_t left, bool keep_lines)
{
    char quoted[LONGEST_QUOTE];
    for (size_t length; left > 0; text += length, left -= length)
        if (needs_quote(quoted, text, left, keep_lines, &length))
            return false;
    return true;
}

/* Formatting may have truncated the last character: it is dropped. */
static size_t without_cut_character(const char *text, size_t size)
{
    size_t length = strlen(text), bad = 0;
    if (length + 1 < size)
        return length;
    for (size_t back = 1; back < 4 && back <= length; back++)
        if (((unsigned char)text[length - back] & 0xC0) == 0xC0)
            return kn_is_utf8(text + length - back, back, &bad) ? length : length - back;
    return length;
}

void kn_make_printable(char *text, size_t size, bool keep_lines)
{
    char quoted[LONGEST_QUOTE], copy[2048];
    size_t left = without_cut_character(text, size), used = 0;
    text[left] = '\0';
    if (is_fine(text, left, keep_lines))
        return;
    left = left < sizeof copy ? left : sizeof copy;
    memcpy(copy, text, left);
    for (const char *at = copy; left > 0;) {
        size_t length;
        const bool quote = needs_quote(quoted, at, left, keep_lines, &length);
        const char *shown = quote ? quoted : at;
        const size_t bytes = quote ? strlen(quoted) : length;
        if (used + bytes >= size)
            break;
        memcpy(text + used, shown, bytes);
        used += bytes;
        at += length;
        left -= length;
    }
    text[used] = '\0';
}

void kn_text_append_printable(kn_text *text, const char *piece, bool keep_lines)
{
    char quoted[LONGEST_QUOTE];
    for (size_t length, left = strlen(piece); left > 0; piece += length, left -= length) {
        if (needs_quote(quoted, piece, left, keep_lines, &length))
            kn_text_append(text, quoted);
        else
            kn_text_append_bytes(text, piece, length);
    }
}
