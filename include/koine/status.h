/* koine/status.h - errors.
 *
 * Two kinds of function, two ways to fail:
 *
 *  - Lifecycle, transfer and file functions return a kn_status; results come through a leading out-parameter, which is
 * left untouched on failure.
 *  - Tensor expressions return a kn_tensor pointer, NULL on failure. NULL in gives NULL out, and the first error of
 * such a chain sticks to the thread until it is read or cleared, so a whole forward pass is checked once, at its end,
 * and the message still tells which operation failed and why.
 *
 * The library never ends its caller: it does not call abort, exit or assert. Every error is one readable sentence that
 * names the operation and the things involved. */
#ifndef KOINE_STATUS_H
#define KOINE_STATUS_H

#include <koine/common.h>

KN_BEGIN_DECLS

typedef enum kn_status {
    KN_OK = 0,
    KN_ERR_ARGUMENT,    /* a value out of its range, or NULL where an object is needed */
    KN_ERR_SHAPE,       /* shapes that do not fit together */
    KN_ERR_DTYPE,       /* a dtype that the operation does not take */
    KN_ERR_DEVICE,      /* no such device, tensors of two devices, a driver's failure */
    KN_ERR_MEMORY,      /* host or device memory exhausted */
    KN_ERR_IO,          /* the operating system refused to read or write */
    KN_ERR_FORMAT,      /* a file that is not what it should be */
    KN_ERR_STATE,       /* an object used at the wrong time (a graph freed, a value modified in place) */
    KN_ERR_NUMERIC,     /* NaN or infinity where training cannot go on */
    KN_ERR_INTERRUPTED, /* stopped on request (Ctrl-C) */
    KN_ERR_INTERNAL     /* a defect in Koine; please report it */
} kn_status;

/* The name of a status, "KN_ERR_SHAPE" for example; a string constant. Thread-safe. */
KN_API const char *kn_status_name(kn_status status);

/* The status of this thread's last error, KN_OK when there is none. Does not count as reading it. */
KN_API kn_status kn_error_status(void);

/* This thread's last error as one sentence, "" when there is none. Reading it lets the next error take its place; the
 * string is valid until then. */
KN_API const char *kn_error_message(void);

/* Forgets this thread's last error. */
KN_API void kn_error_clear(void);

/* Reports an error from user code (a callback, a module's forward, a dataset) in the library's own way: it becomes this
 * thread's last error unless an unread one sticks. Returns `status`. */
KN_API kn_status kn_error_set(kn_status status, const char *format, ...) KN_PRINTF(2, 3);

/* For guards that could not be entered (KN_DEVICE(NULL), ...). From kn_refuse_work to kn_accept_work the calling thread
 * does no work on any device: what needs one fails, so nothing of a block runs where it was not meant to. Pairs nest.
 */
KN_API void kn_refuse_work(void);
KN_API void kn_accept_work(void);

/* Log messages go to stderr from KN_LOG_WARNING up, unless KOINE_LOG is set (debug, info, warning, error, off) or a
 * handler takes them. Both calls: set once, before other threads use the library. */
typedef enum kn_log_level { KN_LOG_DEBUG, KN_LOG_INFO, KN_LOG_WARNING, KN_LOG_ERROR, KN_LOG_OFF } kn_log_level;
typedef void (*kn_log_handler)(kn_log_level level, const char *message, void *user);
KN_API void kn_log_set_level(kn_log_level level);
KN_API void kn_log_set_handler(kn_log_handler handler, void *user);

/* Frees a string or block that a Koine function returned to its caller as the caller's to free. NULL is allowed. */
KN_API void kn_free(void *block);

KN_END_DECLS

#endif
