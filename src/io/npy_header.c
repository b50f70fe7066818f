/* io/npy_header.c - parses the dictionary in a .npy header. NumPy evaluates it as a Python literal; only what NumPy
 * itself writes is accepted here. https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#include "io/npy_header.h"

#include <stdio.h>
#include <string.h>

typedef struct scanner {
    const char *text;
    size_t length, position;
    kn_npy_error *error;
} scanner;

static bool expected(scanner *s, const char *what)
{
    s->error->position = s->position;
    snprintf(s->error->expected, sizeof(s->error->expected), "%s", what);
    return false;
}

static void skip_spaces(scanner *s)
{
    while (s->position < s->length &&
           (s->text[s->position] == ' ' || s->text[s->position] == '\n' || s->text[s->position] == '\t'))
        s->position++;
}

/* Consumes `character` if it comes next, after spaces. */
static bool take(scanner *s, char character)
{
    skip_spaces(s);
    if (s->position >= s->length || s->text[s->position] != character)
        return false;
    s->position++;
    return true;
}

static bool take_word(scanner *s, const char *word)
{
    skip_spaces(s);
    size_t length = strlen(word);
    if (s->length - s->position < length || memcmp(s->text + s->position, word, length) != 0)
        return false;
    s->position += length;
    return true;
}

/* A short quoted string without escapes. */
static bool scan_string(scanner *s, char *buffer, size_t size)
{
    skip_spaces(s);
    char quote = s->position < s->length ? s->text[s->position] : '\0';
    if (quote != '\'' && quote != '"')
        return expected(s, "a quoted string");
    s->position++;
    size_t length = 0;
    while (s->position < s->length && s->text[s->position] != quote) {
        if (length + 1 >= size || s->text[s->position] == '\\')
            return expected(s, "a short string without escapes");
        buffer[length++] = s->text[s->position++];
    }
    if (s->position >= s->length)
        return expected(s, "a closing quote");
    s->position++;
    buffer[length] = '\0';
    return true;
}

/* --- descr ------------------------------------------------------------------------------------ */

static bool scan_descr(scanner *s, kn_npy_header *header)
{
    char descr[32];
    skip_spaces(s);
    size_t start = s->position;
    bool structured = start < s->length && s->text[start] == '[';
    if (!structured && !scan_string(s, descr, sizeof(descr)))
        return false;
    bool known = !structured && strchr("<>|=", descr[0]) && descr[0] &&
                 kn_element_named(&header->element, descr + 1, kn_element_npy_name);
    /* '|' means "no byte order", which is valid only for single bytes. */
    if (known && descr[0] == '|' && kn_element_size(header->element) > 1)
        known = false;
    if (!known) {
        s->position = start;
        return expected(s, "an element type among b1, u1, u2, u4, u8, i1, i2, i4, i8, f2, f4 and f8 with its byte "
                           "order (such as '<f4')");
    }
    header->swap = (descr[0] == '>' && kn_little_endian()) || (descr[0] == '<' && !kn_little_endian());
    return true;
}

/* --- the other two entries -------------------------------------------------------------------- */

static bool scan_bool(scanner *s, bool *value)
{
    *value = take_word(s, "True");
    return *value || take_word(s, "False") || expected(s, "True or False");
}

static bool scan_size(scanner *s, int64_t *value)
{
    skip_spaces(s);
    size_t start = s->position;
    int64_t number = 0;
    for (; s->position < s->length && s->text[s->position] >= '0' && s->text[s->position] <= '9'; s->position++) {
        int digit = s->text[s->position] - '0';
        if (number > (INT64_MAX - digit) / 10)
            return expected(s, "a size below 2^63");
        number = number * 10 + digit;
    }
    if (s->position == start)
        return expected(s, "a size");
    if (s->position < s->length && s->text[s->position] == 'L') /* Python 2 wrote longs with it */
        s->position++;
    *value = number;
    return true;
}

/* A tuple of sizes: (), (3,), (3, 4). */
static bool scan_shape(scanner *s, kn_npy_header *header)
{
    header->ndim = 0;
    if (!take(s, '('))
        return expected(s, "'(', the start of the shape");
    while (!take(s, ')')) {
        if (header->ndim == KN_MAX_DIMS)
            return expected(s, "at most 8 dimensions");
        if (!scan_size(s, &header->shape[header->ndim]))
            return false;
        header->ndim++;
        if (take(s, ','))
            continue;
        if (header->ndim == 1) /* (3) is a number in Python, not a tuple */
            return expected(s, "',' after the only size of a shape");
        if (!take(s, ')'))
            return expected(s, "',' or ')' in the shape");
        break;
    }
    return true;
}

enum { ENTRY_DESCR = 1, ENTRY_FORTRAN_ORDER = 2, ENTRY_SHAPE = 4, ALL_ENTRIES = 7 };

static bool scan_entry(scanner *s, kn_npy_header *header, int *found)
{
    char key[32];
    skip_spaces(s);
    size_t start = s->position;
    if (!scan_string(s, key, sizeof(key)))
        return false;
    int entry = strcmp(key, "descr") == 0           ? ENTRY_DESCR
                : strcmp(key, "fortran_order") == 0 ? ENTRY_FORTRAN_ORDER
                : strcmp(key, "shape") == 0         ? ENTRY_SHAPE
                                                    : 0;
    if (entry == 0 || (*found & entry)) {
        s->position = start;
        return expected(s, "each of the keys descr, fortran_order and shape once, and no other");
    }
    *found |= entry;
    if (!take(s, ':'))
        return expected(s, "':' after a key");
    if (entry == ENTRY_DESCR)
        return scan_descr(s, header);
    return entry == ENTRY_SHAPE ? scan_shape(s, header) : scan_bool(s, &header->fortran_order);
}

bool kn_npy_parse_header(kn_npy_header *header, const char *text, size_t length, kn_npy_error *error)
{
    scanner s = {.text = text, .length = length, .error = error};
    *error = (kn_npy_error){0};
    int found = 0;
    if (!take(&s, '{'))
        return expected(&s, "'{', the start of the header's dictionary");
    while (!take(&s, '}')) {
        if (!scan_entry(&s, header, &found))
            return false;
        if (take(&s, ','))
            continue;
        if (!take(&s, '}'))
            return expected(&s, "',' or '}' in the header's dictionary");
        break;
    }
    if (found != ALL_ENTRIES)
        return expected(&s, "the keys descr, fortran_order and shape");
    skip_spaces(&s);
    return s.position == s.length || expected(&s, "nothing but spaces after the header's dictionary");
}
