/* koine/stream.h - in-order queues of work.
 *
 * Operations are enqueued on the calling thread's current stream of the tensors' device and return at once. Work on one
 * stream runs in order; work on two streams is unordered unless an event orders it. Different threads may use different
 * streams of a device at once, and may share one. */
#ifndef KOINE_STREAM_H
#define KOINE_STREAM_H

#include <koine/common.h>
#include <koine/status.h>

KN_BEGIN_DECLS

/* Makes a stream of `device`; the caller destroys it. Destroying waits for its work. The default stream is not the
 * caller's to destroy. */
KN_API kn_status kn_stream_create(kn_stream **stream, kn_device *device);
KN_API kn_status kn_stream_destroy(kn_stream *stream);

KN_API kn_stream *kn_stream_default(kn_device *device);    /* NULL with an error for the host */
KN_API kn_stream *kn_stream_current(kn_device *device);    /* the calling thread's; the default stream unless set */
KN_API kn_status kn_stream_set_current(kn_stream *stream); /* for the calling thread and the stream's device */

/* Waits for the stream's work, then reports any error that kernels found. */
KN_API kn_status kn_stream_synchronize(kn_stream *stream);

/* Work enqueued on `stream` from now on starts after all work enqueued on `other` so far. Same device only. */
KN_API kn_status kn_stream_wait_stream(kn_stream *stream, kn_stream *other);

KN_END_DECLS

#endif
