/* koine/status.h - errors.
 *
 * A function that makes something returns it, or NULL with an error (kn_X_new, kn_load_X, kn_device_open, tensor
 * expressions, functions that return text). Any other function that can fail returns a kn_status; values come through
 * out-parameters after the arguments, which are unchanged on failure unless stated otherwise. Either way the error
 * becomes the calling thread's last error.
 *
 *     kn_device *device = kn_device_open("auto");
 *     if (device == NULL)
 *         fprintf(stderr, "%s\n", kn_error_message());
 *
 * What is built in expressions can be checked once. Functions that return a tensor, a module, an optimizer, a dataset,
 * a loader, a trainer or a jit operation return NULL for NULL inputs, and their first error is sticky: later errors,
 * its consequences, do not replace it until it is read (kn_error_message) or cleared. So a whole forward pass can be
 * checked at its end, and the message still says which operation failed and why. Other errors are replaced by the next
 * one.
 *
 * The library never ends the process: it does not call abort, exit or assert. Every error is one readable sentence that
 * names the operation and the things involved. */
#ifndef KOINE_STATUS_H
#define KOINE_STATUS_H

#include <koine/common.h>

KN_BEGIN_DECLS

typedef enum kn_status {
    KN_OK = 0,
    KN_ERR_ARGUMENT,    /* a value out of range, or NULL where an object is needed */
    KN_ERR_SHAPE,       /* incompatible shapes */
    KN_ERR_DTYPE,       /* a dtype that the operation does not support */
    KN_ERR_DEVICE,      /* no such device, tensors of different devices, a driver failure */
    KN_ERR_MEMORY,      /* host or device memory exhausted */
    KN_ERR_IO,          /* the operating system refused to read or write */
    KN_ERR_FORMAT,      /* a malformed file */
    KN_ERR_STATE,       /* an object in the wrong state (a freed graph, a value modified in place) */
    KN_ERR_NUMERIC,     /* NaN or infinity where training cannot continue */
    KN_ERR_INTERRUPTED, /* stopped on request (Ctrl-C) */
    KN_ERR_INTERNAL,    /* a defect in Koine; please report it */
    KN_ERR_BATCHED      /* vmap: values are needed that differ between the samples of a batch (koine/vmap.h) */
} kn_status;

/* The name of a status, "KN_ERR_SHAPE" for example; a string constant. Thread-safe. */
KN_API const char *kn_status_name(kn_status status);

/* The status of this thread's last error, KN_OK if there is none. Does not count as reading it. */
KN_API kn_status kn_error_status(void);

/* KN_OK if `object`, which a function has just returned, is not NULL, else the status of the error: for code that
 * returns a status, return kn_status_of(graph = kn_graph_new()). */
static inline kn_status kn_status_of(const void *object) { return object != NULL ? KN_OK : kn_error_status(); }

/* This thread's last error as one sentence, "" if there is none. After reading, the next error replaces it; the string
 * is valid until then. */
KN_API const char *kn_error_message(void);

/* Clears this thread's last error. */
KN_API void kn_error_clear(void);

/* Reports an error from user code (a callback, a module's forward, a dataset) as the library does: it becomes this
 * thread's last error unless an unread sticky one is pending. Returns `status`. */
KN_API kn_status kn_error_set(kn_status status, const char *format, ...) KN_PRINTF(2, 3);

/* For guards that could not be entered (KN_DEVICE(NULL), ...). Between kn_refuse_work and kn_accept_work everything on
 * the calling thread that needs a device fails, so that nothing of the block runs on the wrong device or stream. Pairs
 * nest. */
KN_API void kn_refuse_work(void);
KN_API void kn_accept_work(void);

/* Log messages from KN_LOG_WARNING up are printed on stderr, unless KOINE_LOG is set (debug, info, warning, error, off)
 * or a handler receives them. Call both functions before other threads use the library. */
typedef enum kn_log_level { KN_LOG_DEBUG, KN_LOG_INFO, KN_LOG_WARNING, KN_LOG_ERROR, KN_LOG_OFF } kn_log_level;
typedef void (*kn_log_handler)(kn_log_level level, const char *message, void *user);
KN_API void kn_log_set_level(kn_log_level level);
KN_API void kn_log_set_handler(kn_log_handler handler, void *user);

/* Frees a string or block that a Koine function returned for the caller to free. NULL is allowed. */
KN_API void kn_free(void *block);

KN_END_DECLS

#endif
