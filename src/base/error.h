/* base/error.h - how the library reports errors to itself and to its user. See koine/status.h for the two kinds of
 * function. */
#ifndef KN_BASE_ERROR_H
#define KN_BASE_ERROR_H

#include <koine/status.h>

/* What these functions are given may come from anywhere, a file or the environment: what is not printable in it is
 * quoted (kn_make_printable), so that no message commands the terminal it is shown on. */

/* Sets this thread's last error (unless an unread one sticks) and returns `status`: `return kn_fail(KN_ERR_SHAPE,
 * "...", ...)`. */
kn_status kn_fail(kn_status status, const char *format, ...) KN_PRINTF(2, 3);

/* The same for tensor expressions: the error sticks until read. Returns NULL. */
void *kn_fail_null(kn_status status, const char *format, ...) KN_PRINTF(2, 3);

/* Makes this thread's last error stick until read; called where a tensor expression returns NULL because a call failed.
 * Returns NULL. */
void *kn_stick(void);

/* Does one stick that has not been read? */
bool kn_error_sticks(void);

/* Puts "prefix: " in front of this thread's last error: tells on the way up what was being done ("conv2d: ..."). */
void kn_error_prefix(const char *format, ...) KN_PRINTF(1, 2);

/* The same for one that may stick, where none stuck before: what failed inside a function of the program's is its last
 * error, not the consequence of an earlier one. */
void kn_error_prefix_sticking(const char *format, ...) KN_PRINTF(1, 2);

/* Adds to the end of this thread's last error, whether it sticks or not. */
void kn_error_suffix(const char *format, ...) KN_PRINTF(1, 2);

/* Adds up to 500 bytes of several lines, a compiler's say, to the end of an error that was just set and does not stick.
 */
void kn_error_append_lines(const char *text);

/* For an attempt that may fail without anyone being told, since what called it goes on without it:
 *
 *     {
 *         KN_ATTEMPT;
 *         if (store(path) != KN_OK)
 *             kn_log_message(KN_LOG_INFO, "not kept: %s", kn_error_message());
 *     }
 *
 * From the declaration to the end of the block the thread's last error is the attempt's own. Then the one before it is
 * back, sticking if it stuck. Costs next to nothing when there is none. */
#define KN_ATTEMPT                                                                                                     \
    kn_error_state kn_attempt_ __attribute__((cleanup(kn_error_put_back)));                                            \
    kn_error_take(&kn_attempt_)

/* The two halves, for what spans more than a block. */
typedef struct kn_error_state {
    kn_status status;
    bool sticks;
    char message[1024]; /* unset when the status is KN_OK */
} kn_error_state;
void kn_error_take(kn_error_state *state);
void kn_error_put_back(kn_error_state *state);

/* For a NULL argument: the error that made it NULL if one sticks, else "`function`: argument `name` is NULL". Returns
 * the status. */
kn_status kn_fail_argument_null(const char *function, const char *name);

/* KN_ERR_MEMORY: "out of host memory (N bytes for WHAT)". */
kn_status kn_fail_host_memory(size_t bytes, const char *what);

/* `KN_TRY(call)` leaves the enclosing kn_status function when the call fails. */
#define KN_TRY(call)                                                                                                   \
    do {                                                                                                               \
        kn_status try_status_ = (call);                                                                                \
        if (try_status_ != KN_OK)                                                                                      \
            return try_status_;                                                                                        \
    } while (0)

#endif
