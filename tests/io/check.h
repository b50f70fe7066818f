/* tests/io/check.h - cmocka, with checks of the library's errors. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <koine/status.h>
#include <stdio.h>
#include <string.h>

/* The call must succeed; otherwise prints its message. */
#define assert_ok(call)                                                                                                \
    do {                                                                                                               \
        kn_status ok_status_ = (call);                                                                                 \
        if (ok_status_ != KN_OK)                                                                                       \
            fail_msg("%s: %s: %s", #call, kn_status_name(ok_status_), kn_error_message());                             \
    } while (0)

/* The same for what a function has made: assert_new(file = kn_load_safetensors(path)). */
#define assert_new(object) assert_ok(kn_status_of(object))

/* The last error has this status, and its message contains the piece. Clears it. */
static inline void check_error(kn_status status, kn_status expected, const char *piece, const char *file, int line)
{
    const char *message = kn_error_message();
    if (status != expected || kn_error_status() != expected || !strstr(message, piece)) {
        print_error("expected %s with '%s', got %s: %s\n", kn_status_name(expected), piece, kn_status_name(status),
                    message);
        _fail(file, line);
    }
    kn_error_clear();
}
#define assert_fails(call, expected, piece) check_error((call), expected, piece, __FILE__, __LINE__)
