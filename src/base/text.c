/* base/text.c - a growing string, and other text helpers. */
#include "base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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

size_t kn_identifier_length(const char *text)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_')
        length++;
    return length;
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

bool kn_has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
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

const char *kn_format_number(char buffer[KN_NUMBER_TEXT], double value)
{
    if (fabs(value) < 1e15 && value == trunc(value)) { /* 10, not 1e+01 */
        snprintf(buffer, KN_NUMBER_TEXT, "%.0f", value);
        return buffer;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(buffer, KN_NUMBER_TEXT, "%.*g", digits, value);
        if (strtod(buffer, NULL) == value)
            break; /* NaN never compares equal and ends up as "nan" */
    }
    /* printf and strtod follow the program's locale; files must not. */
    const char *point = localeconv()->decimal_point;
    char *found = point[0] != '.' ? strstr(buffer, point) : NULL;
    if (found != NULL) {
        *found = '.';
        memmove(found + 1, found + strlen(point), strlen(found + strlen(point)) + 1);
    }
    return buffer;
}
