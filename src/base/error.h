/* base/error.h - how the library reports errors, internally and to its user. See koine/status.h for the two kinds of
 * functions. */
#pragma once

#include <koine/status.h>

/* Messages may contain text from files or the environment. Unprintable characters are escaped (kn_make_printable), so
 * that no message can send control sequences to a terminal. */

/* Sets this thread's last error (unless an unread sticky one is pending) and returns `status`: `return
 * kn_fail(KN_ERR_SHAPE, "...", ...)`. */
kn_status kn_fail(kn_status status, const char *format, ...) KN_PRINTF(2, 3);

/* The same for tensor expressions: the error is sticky until read. Returns NULL. */
void *kn_fail_null(kn_status status, const char *format, ...) KN_PRINTF(2, 3);

/* Makes this thread's last error sticky; called where a tensor expression returns NULL because a call failed. Returns
 * NULL. */
void *kn_error_make_sticky(void);

/* Is there an unread sticky error? */
bool kn_error_is_sticky(void);

/* Prepends "prefix: " to this thread's last error, so that callers add context on the way up ("conv2d: ..."). */
void kn_error_prefix(const char *format, ...) KN_PRINTF(1, 2);

/* The same, but also for a sticky error; only where none was pending before. Used around user-defined functions, where
 * the error was raised inside the call and is not left over from an earlier one. */
void kn_error_prefix_sticky(const char *format, ...) KN_PRINTF(1, 2);

/* Appends to this thread's last error, sticky or not. */
void kn_error_suffix(const char *format, ...) KN_PRINTF(1, 2);

/* Appends up to 500 bytes of multi-line text, such as compiler output, to an error that was just set and is not
 * sticky. */
void kn_error_append_lines(const char *text);

/* For optional work whose failure the caller must not see:
 *
 *     {
 *         KN_PRESERVE_ERROR;
 *         if (store(path) != KN_OK)
 *             kn_log_message(KN_LOG_INFO, "not saved: %s", kn_error_message());
 *     }
 *
 * From the declaration to the end of the block the thread starts without a last error. The previous one, sticky or not,
 * is then restored. Nearly free when there is none. */
#define KN_PRESERVE_ERROR                                                                                              \
    kn_error_state kn_saved_error_ __attribute__((cleanup(kn_error_restore)));                                         \
    kn_error_save(&kn_saved_error_)

/* The two halves, for work that spans more than one block. */
typedef struct kn_error_state {
    kn_status status;
    bool sticks;
    char message[1024]; /* unset when the status is KN_OK */
} kn_error_state;
void kn_error_save(kn_error_state *state);
void kn_error_restore(kn_error_state *state);

/* For a NULL argument: keeps the pending sticky error, which is why it is NULL, else sets "function: argument `name` is
 * NULL". Returns the status. */
kn_status kn_fail_argument_null(const char *function, const char *name);

/* KN_ERR_MEMORY: "out of host memory: cannot allocate N bytes for WHAT". */
kn_status kn_fail_host_memory(size_t bytes, const char *what);

/* Clang's static analyzer sees one file at a time: what these return, for the others. */
#if defined(__clang_analyzer__) && !defined(KN_DEFINES_ERRORS)
static inline void *kn_returns_null(void *unknown) { return (void)unknown, NULL; }
static inline kn_status kn_returns(kn_status unknown, kn_status status) { return (void)unknown, status; }
#define kn_fail(status, ...) kn_returns(kn_fail(status, __VA_ARGS__), status)
#define kn_fail_null(...) kn_returns_null(kn_fail_null(__VA_ARGS__))
#define kn_fail_argument_null(...) kn_returns(kn_fail_argument_null(__VA_ARGS__), KN_ERR_ARGUMENT)
#define kn_fail_host_memory(...) kn_returns(kn_fail_host_memory(__VA_ARGS__), KN_ERR_MEMORY)
#define kn_error_make_sticky() kn_returns_null(kn_error_make_sticky())
#endif

/* `KN_TRY(call)` returns the call's status from the enclosing function if it is not KN_OK. */
#define KN_TRY(call)                                                                                                   \
    do {                                                                                                               \
        kn_status try_status_ = (call);                                                                                \
        if (try_status_ != KN_OK)                                                                                      \
            return try_status_;                                                                                        \
    } while (0)
