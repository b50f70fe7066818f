/* base/error.c - the calling thread's last error. */
#define KN_DEFINES_ERRORS
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* An error set by a tensor expression is sticky until it is read: later errors are its consequences. */
static _Thread_local kn_error_state last;

static void set(kn_status status, const char *format, va_list args)
{
    if (last.sticks)
        return;
    last.status = status;
    vsnprintf(last.message, sizeof last.message, format, args);
    kn_make_printable(last.message, sizeof last.message, false);
}

kn_status kn_fail(kn_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set(status, format, args);
    va_end(args);
    return status;
}

void *kn_fail_null(kn_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set(status, format, args);
    va_end(args);
    return kn_error_make_sticky();
}

void *kn_error_make_sticky(void)
{
    if (last.status != KN_OK)
        last.sticks = true;
    return NULL;
}

bool kn_error_is_sticky(void) { return last.sticks; }

static void prefix_message(const char *format, va_list args)
{
    char prefix[256];
    if (last.status == KN_OK || vsnprintf(prefix, sizeof prefix - 2, format, args) < 0)
        return;
    strcat(prefix, ": ");
    kn_make_printable(prefix, sizeof prefix, false);
    size_t length = strlen(prefix), kept = strlen(last.message);
    if (kept > sizeof last.message - 1 - length)
        kept = sizeof last.message - 1 - length; /* a long message loses its end */
    memmove(last.message + length, last.message, kept);
    memcpy(last.message, prefix, length);
    last.message[length + kept] = '\0';
}

void kn_error_prefix(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!last.sticks)
        prefix_message(format, args);
    va_end(args);
}

void kn_error_prefix_sticky(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    prefix_message(format, args);
    va_end(args);
}

void kn_error_suffix(const char *format, ...)
{
    size_t length = strlen(last.message);
    va_list args;
    if (last.status == KN_OK)
        return;
    va_start(args, format);
    vsnprintf(last.message + length, sizeof last.message - length, format, args);
    va_end(args);
    kn_make_printable(last.message + length, sizeof last.message - length, false);
}

void kn_error_append_lines(const char *text)
{
    size_t length = strlen(last.message);
    if (last.sticks || last.status == KN_OK)
        return;
    snprintf(last.message + length, sizeof last.message - length, "%.500s", text);
    kn_make_printable(last.message + length, sizeof last.message - length, true);
}

void kn_error_save(kn_error_state *state)
{
    if (last.status != KN_OK)
        *state = last;
    else
        state->status = KN_OK;
    kn_error_clear();
}

void kn_error_restore(kn_error_state *state)
{
    if (state->status != KN_OK)
        last = *state;
    else
        kn_error_clear();
}

kn_status kn_fail_argument_null(const char *function, const char *name)
{
    if (last.sticks)
        return last.status;
    return kn_fail(KN_ERR_ARGUMENT, "%s: argument `%s` is NULL", function, name);
}

kn_status kn_fail_host_memory(size_t bytes, const char *what)
{
    return kn_fail(KN_ERR_MEMORY, "out of host memory: cannot allocate %zu bytes for %s", bytes, what);
}

kn_status kn_error_status(void) { return last.status; }

const char *kn_error_message(void)
{
    last.sticks = false;
    return last.status == KN_OK ? "" : last.message;
}

void kn_error_clear(void)
{
    last.status = KN_OK;
    last.sticks = false;
    last.message[0] = '\0';
}

kn_status kn_error_set(kn_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set(status, format ? format : "", args);
    va_end(args);
    return status;
}

const char *kn_status_name(kn_status status)
{
    static const char *const names[] = {
        [KN_OK] = "KN_OK",
        [KN_ERR_ARGUMENT] = "KN_ERR_ARGUMENT",
        [KN_ERR_SHAPE] = "KN_ERR_SHAPE",
        [KN_ERR_DTYPE] = "KN_ERR_DTYPE",
        [KN_ERR_DEVICE] = "KN_ERR_DEVICE",
        [KN_ERR_MEMORY] = "KN_ERR_MEMORY",
        [KN_ERR_IO] = "KN_ERR_IO",
        [KN_ERR_FORMAT] = "KN_ERR_FORMAT",
        [KN_ERR_STATE] = "KN_ERR_STATE",
        [KN_ERR_NUMERIC] = "KN_ERR_NUMERIC",
        [KN_ERR_INTERRUPTED] = "KN_ERR_INTERRUPTED",
        [KN_ERR_INTERNAL] = "KN_ERR_INTERNAL",
        [KN_ERR_BATCHED] = "KN_ERR_BATCHED",
    };
    size_t index = (size_t)status;
    return index < sizeof names / sizeof names[0] ? names[index] : "unknown status";
}
