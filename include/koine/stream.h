/* koine/stream.h - in-order queues of work, and events that order and time them.
 *
 * Operations are enqueued on the calling thread's current stream of the tensors' device and return at once, or, on
 * CPU devices whose kernels are called (docs/architecture.md), mostly when they have run. Work on one stream runs in
 * order; work on two streams is unordered unless an event orders it (the default stream does not synchronise with
 * others). Memory is safe across streams without extra calls: a tensor's memory is not reused before all work that
 * uses it is done, on any stream. Different threads may use different streams of a device at once, or share one. */
#ifndef KOINE_STREAM_H
#define KOINE_STREAM_H

#include <koine/common.h>
#include <koine/status.h>

KN_BEGIN_DECLS

typedef struct kn_event kn_event; /* a point in a stream's work; used by one thread at a time */

/* --- streams ---------------------------------------------------------------------------------- */

/* A new stream of `device`; the caller frees it. NULL with an error. Priorities: lower numbers run first, if the driver
 * supports it (cl_khr_priority_hints); other numbers are clamped to the range, as in CUDA. */
KN_API kn_stream *kn_stream_new(kn_device *device);
KN_API kn_stream *kn_stream_new_with_priority(kn_device *device, int priority);
KN_API kn_status kn_stream_priority_range(kn_device *device, int *least, int *greatest); /* 1, -1; or 0, 0 */
KN_API int kn_stream_priority(const kn_stream *stream);

/* Frees the stream; NULL allowed. KN_ERR_STATE, without freeing it, while it has unfinished work (synchronize first) or
 * is being captured; KN_ERR_ARGUMENT for the default stream, which belongs to the device. A thread whose current stream
 * has been freed gets an error once and then uses the default stream. */
KN_API kn_status kn_stream_free(kn_stream *stream);

KN_API kn_stream *kn_stream_default(kn_device *device);      /* NULL with an error for the host */
KN_API kn_stream *kn_stream_current(kn_device *device);      /* the calling thread's; the default stream unless set */
KN_API kn_status kn_stream_set_current(kn_stream *stream);   /* for the calling thread and the stream's device */
KN_API kn_device *kn_stream_device(const kn_stream *stream); /* NULL for NULL */
KN_API uint64_t kn_stream_id(const kn_stream *stream);       /* unique in the process; 0 for NULL */

/* Makes `stream` current to the end of the enclosing block; then the previous stream is restored (a guard:
 * koine/common.h). NULL or a freed stream sets a sticky error, and to the end of the block the thread does no work
 * on any device (kn_refuse_work). */
#define KN_STREAM(stream) KN_GUARD(kn_stream_guard, kn_stream_guard_, kn_stream_use(stream), kn_stream_leave)

/* The guard's functions: call one leave per enter, in reverse order, on the same thread, also after a failed enter. */
typedef struct kn_stream_guard {
    kn_stream *before;
    bool entered;
} kn_stream_guard;
KN_API kn_stream_guard kn_stream_use(kn_stream *stream);
KN_API void kn_stream_leave(kn_stream_guard *guard);

/* Waits for the stream's work, then reports any error detected by kernels. KOINE_WAIT=sleep in the environment makes
 * all waits leave the processor to others, on drivers that keep it busy (docs/platforms.md). */
KN_API kn_status kn_stream_synchronize(kn_stream *stream);

/* Is all work enqueued so far done? Does not wait (takes at most a tenth of a millisecond). */
KN_API kn_status kn_stream_query(kn_stream *stream, bool *done);

/* Work enqueued on `stream` from now on starts after all work enqueued on `other` so far. Same device only. */
KN_API kn_status kn_stream_wait_stream(kn_stream *stream, kn_stream *other);

/* Calls `function(user)` once the work enqueued so far is done. Callbacks run one at a time on a library thread, in the
 * order in which their work was completed; they may call any library function, but a callback that waits delays the
 * others. Later work of the stream does not wait for the callback; kn_stream_synchronize does, unless called from a
 * callback. */
typedef void (*kn_stream_callback)(void *user);
KN_API kn_status kn_stream_add_callback(kn_stream *stream, kn_stream_callback function, void *user);

/* --- events ----------------------------------------------------------------------------------- *
 *
 *     kn_event_record(start, NULL);
 *     ... work on the current stream ...
 *     kn_event_record(end, NULL);
 *     kn_event_synchronize(end);
 *     kn_event_elapsed_time(start, end, &milliseconds);
 */

/* The caller frees it; NULL with an error. While an event with times exists, the device's commands take longer on some
 * drivers; those without (torch.cuda.Event's default) only order and tell what is done. */
KN_API kn_event *kn_event_new(kn_device *device);
KN_API kn_event *kn_event_new_without_timing(kn_device *device);
KN_API void kn_event_free(kn_event *event); /* NULL allowed; pending waits for it are not affected */

/* Marks the work enqueued on `stream` so far (NULL: the current stream of the event's device). An event may be recorded
 * again; later calls refer to the new mark. */
KN_API kn_status kn_event_record(kn_event *event, kn_stream *stream);

/* Is the marked work done? An event that was never recorded counts as done. query does not wait. */
KN_API kn_status kn_event_query(kn_event *event, bool *done);
KN_API kn_status kn_event_synchronize(kn_event *event);

/* Work enqueued on `stream` from now on starts after the marked work. KN_ERR_DEVICE for an event of another device. */
KN_API kn_status kn_stream_wait_event(kn_stream *stream, kn_event *event);

/* Milliseconds on the device's clock from one event to the other. Both must have times, be recorded and done
 * (KN_ERR_STATE otherwise), and of the same device. KN_ERR_DEVICE if its driver's times, which are tried first, make no
 * sense. */
KN_API kn_status kn_event_elapsed_time(kn_event *start, kn_event *end, double *milliseconds);

/* --- finding needless waits ------------------------------------------------------------------- *
 * torch.cuda.set_sync_debug_mode: a call that makes the host wait for a device (reading a value, synchronize) logs a
 * warning, or fails with KN_ERR_STATE instead. For the whole process; off by default. */
typedef enum kn_sync_debug_mode { KN_SYNC_DEBUG_OFF, KN_SYNC_DEBUG_WARN, KN_SYNC_DEBUG_ERROR } kn_sync_debug_mode;
KN_API void kn_set_sync_debug_mode(kn_sync_debug_mode mode);
KN_API kn_sync_debug_mode kn_get_sync_debug_mode(void);

KN_END_DECLS

#endif
