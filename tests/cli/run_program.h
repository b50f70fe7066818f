/* tests/cli/run_program.h - runs a command line and keeps what it printed. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <koine/koine.h>

typedef struct run_result {
    int status; /* exit status; -1: killed by a signal */
    char *output;
    char *errors;
} run_result;

/* Runs a shell command line; freed with run_free. */
run_result run_shell(const char *format, ...) KN_PRINTF(1, 2);
void run_free(run_result *result);

/* Creates a fresh folder of this name under the build tree. The string is valid until the next call. */
const char *fresh_folder(const char *name);

/* Writes a file, creating the folders above it. */
void put_file(const char *folder, const char *path, const char *text);

/* The first device's string, "cpu:0" or "gpu:0"; and whether PoCL makes two devices of one CPU here: otherwise tests
 * that need them are skipped. */
const char *first_device_name(void);
bool pocl_makes_two(const char *program);

#define assert_contains(text, part)                                                                                    \
    do {                                                                                                               \
        if (!strstr(text, part))                                                                                       \
            fail_msg("expected \"%s\" in:\n%s", part, text);                                                           \
    } while (0)
#define assert_lacks(text, part)                                                                                       \
    do {                                                                                                               \
        if (strstr(text, part))                                                                                        \
            fail_msg("did not expect \"%s\" in:\n%s", part, text);                                                     \
    } while (0)
/* Characters of the longest line, without colours. */
int longest_line(const char *text);

/* Is script(1) available, which gives a program a terminal? */
bool has_script(void);

#define assert_status(result, expected)                                                                                \
    do {                                                                                                               \
        if ((result).status != (expected))                                                                             \
            fail_msg("exit status %d, expected %d; output:\n%s%s", (result).status, expected, (result).output,         \
                     (result).errors);                                                                                 \
    } while (0)
