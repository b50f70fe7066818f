/* base/text.h - a growing string, and other text helpers. */
#pragma once

#include <koine/common.h>
#include <koine/status.h>

/* A string that grows. Start with `kn_text t = {0}`. When an allocation fails, `failed` is set, the thread's error is
 * set, and later appends do nothing: check once, at the end, with kn_text_finish. */
typedef struct kn_text {
    char *data; /* NUL-terminated after the first append */
    size_t length, capacity;
    bool failed;
} kn_text;

void kn_text_append(kn_text *text, const char *piece);
void kn_text_append_bytes(kn_text *text, const char *bytes, size_t length);
void kn_text_format(kn_text *text, const char *format, ...) KN_PRINTF(2, 3);
/* Returns the string, which the caller frees with kn_free, and resets `text`. NULL, with `text` freed, if an append
 * failed. */
char *kn_text_finish(kn_text *text);
void kn_text_free(kn_text *text);

/* How many letters, digits and underscores the text begins with. */
size_t kn_identifier_length(const char *text);

bool kn_text_contains_nocase(const char *haystack, const char *needle);
bool kn_text_equals_nocase(const char *a, const char *b);

/* Is `word` one of the words of `list`, which blanks separate? */
bool kn_has_word(const char *list, const char *word);

/* "1.5 GiB" and the like, into `buffer`; returns buffer. */
const char *kn_format_bytes(char *buffer, size_t size, uint64_t bytes);

/* "[2, 3, 4]" into `buffer`; returns buffer. */
const char *kn_format_shape(char *buffer, size_t size, int ndim, const int64_t *shape);

/* The shortest text that parses back to exactly `value`, with a decimal point in any locale; whole numbers below 10^15
 * have no exponent. Returns buffer. */
#define KN_NUMBER_TEXT 40
const char *kn_format_number(char buffer[KN_NUMBER_TEXT], double value);
