/* common/text_files.h - the text that a language model learns from. */
#pragma once

#include <stddef.h>

/* A file, or the files of a folder one after the other, in the order of their names; links and folders in it are left
 * out. With a NUL behind its `size` bytes; freed with free. NULL, with a message on stderr, on failure. */
char *text_files_read(const char *program, const char *path, size_t *size);

/* Prints text that a network made up: control characters, with which a terminal could be confused, become '?'. */
void text_print(const char *text, size_t length);
