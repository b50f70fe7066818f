/* base/utf8.h - text that comes from elsewhere: files, the environment, the names of things. */
#ifndef KN_BASE_UTF8_H
#define KN_BASE_UTF8_H

#include "base/text.h"

/* Bytes of the well-formed character at `at`, of which `left` bytes are there; 0 if there is none. */
size_t kn_utf8_length(const char *at, size_t left);

/* Whether all of it is UTF-8; else *bad is where it stops to be. */
bool kn_is_utf8(const char *text, size_t length, size_t *bad);

/* `piece`, each byte of it that is no part of a UTF-8 character replaced by U+FFFD. */
void kn_text_append_utf8(kn_text *text, const char *piece);

/* `text` fit for a terminal or a log, in place: what is no UTF-8 or not printable becomes \x1b, \n, \u202e and the
 * like. Control characters of terminals are in none of it, in no encoding, nor is what changes the direction of
 * writing. `keep_lines`: line ends and tabs stay. What does not fit into `size` bytes is cut off at its end. */
void kn_make_printable(char *text, size_t size, bool keep_lines);

/* The same of another text, appended. */
void kn_text_append_printable(kn_text *text, const char *piece, bool keep_lines);

#endif
