/* base/text.c - a growing string, and what else the library does with text. */
#include "base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

static bool reserve(kn_text *text, size_t extra)
{
    if (text->failed)
        return false;
    size_t needed = text->length + extra + 1;
    if (needed <= text->capacity)
        return true;
    size_t capacity = text->capacity ? text->capacity : 64;
    while (capacity < needed)
        capacity *= 2;
    char *data = kn_realloc(text->data, capacity);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void kn_text_append_bytes(kn_text *text, const char *bytes, size_t length)
{
    if (!reserve(text, length))
        return;
    memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void kn_text_append(kn_text *text, const char *piece) { kn_text_append_bytes(text, piece, strlen(piece)); }

void kn_text_format(kn_text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length >= 0 && reserve(text, (size_t)length)) {
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

/* The length of the UTF-8 character that `bytes` begins with; 0 when there is none (RFC 3629's table: neither overlong
 * forms nor surrogates nor what is beyond U+10FFFF). */
static size_t utf8_length(const unsigned char *bytes)
{
    unsigned char first = bytes[0], least = 0x80, most = 0xBF; /* of the second byte */
    size_t length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    if (first == 0xE0)
        least = 0xA0;
    else if (first == 0xED)
        most = 0x9F;
    else if (first == 0xF0)
        least = 0x90;
    else if (first == 0xF4)
        most = 0x8F;
    for (size_t i = 1; i < length; i++) { /* the string's end is none of these */
        if (bytes[i] < least || bytes[i] > most)
            return 0;
        least = 0x80;
        most = 0xBF;
    }
    return length;
}

void kn_text_append_utf8(kn_text *text, const char *piece)
{
    while (*piece) {
        size_t length = utf8_length((const unsigned char *)piece);
        kn_text_append_bytes(text, length ? piece : "\xEF\xBF\xBD", length ? length : 3);
        piece += length ? length : 1;
    }
}

char *kn_text_finish(kn_text *text)
{
    reserve(text, 0);
    if (text->failed) {
        kn_text_free(text);
        return NULL;
    }
    text->data[text->length] = '\0';
    char *data = text->data;
    *text = (kn_text){0};
    return data;
}

void kn_text_free(kn_text *text)
{
    kn_free(text->data);
    *text = (kn_text){0};
}

bool kn_text_equals_nocase(const char *a, const char *b) { return strcasecmp(a, b) == 0; }

bool kn_text_contains_nocase(const char *haystack, const char *needle)
{
    size_t length = strlen(needle);
    for (; *haystack; haystack++)
        if (strncasecmp(haystack, needle, length) == 0)
            return true;
    return length == 0;
}

const char *kn_format_bytes(char *buffer, size_t size, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    if (bytes < 1024) {
        snprintf(buffer, size, "%" PRIu64 " B", bytes);
        return buffer;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    snprintf(buffer, size, "%.1f %s", value, units[unit]);
    return buffer;
}

const char *kn_format_shape(char *buffer, size_t size, int ndim, const int64_t *shape)
{
    size_t used = (size_t)snprintf(buffer, size, "[");
    for (int i = 0; i < ndim && used < size; i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%" PRId64, i ? ", " : "", shape[i]);
    if (used < size)
        snprintf(buffer + used, size - used, "]");
    return buffer;
}
