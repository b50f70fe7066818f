/* base/utf8.h - text from untrusted sources: files, the environment, names. */
#pragma once

#include "base/text.h"

/* The length in bytes of the well-formed character at `at`, where `left` bytes remain; 0 if it is malformed. */
size_t kn_utf8_length(const char *at, size_t left);

/* Whether the text is valid UTF-8; if not, *bad is the offset of the first invalid byte. */
bool kn_is_utf8(const char *text, size_t length, size_t *bad);

/* Appends `piece` with each invalid byte replaced by U+FFFD. */
void kn_text_append_utf8(kn_text *text, const char *piece);

/* Makes `text` safe for a terminal or a log, in place: invalid UTF-8 and unprintable characters become \x1b, \n, \u202e
 * and the like. The result has no terminal control characters, in any encoding, and no bidirectional controls.
 * `keep_lines` keeps newlines and tabs. The result is truncated to `size` bytes. */
void kn_make_printable(char *text, size_t size, bool keep_lines);

/* Appends `piece`, made safe the same way. */
void kn_text_append_printable(kn_text *text, const char *piece, bool keep_lines);
