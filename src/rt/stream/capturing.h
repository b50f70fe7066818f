/* rt/stream/capturing.h - captures: while a thread captures a graph on a stream, commands enqueued there are recorded.
 *
 * Meanwhile only that thread may use the stream or access the capture, which it may end and free at any time. */
#pragma once

#include "rt/stream/stream_struct.h"

/* The part of a capture visible to all folders; rt/graph/recording.h has the rest. */
struct kn_capture {
    const struct kn_recorder *recorder; /* rt/command/recorder.h */
    bool blind;                         /* an error was set before it began, which hides later ones */
    kn_status failure;                  /* the first thing that could not be recorded; KN_OK: none */
    char message[512];
};

static inline bool kn_stream_has_capture(const kn_stream *stream)
{
    return atomic_load_explicit(&((kn_stream *)(uintptr_t)stream)->capture, memory_order_acquire) != NULL;
}

/* The calling thread's capture on the stream, NULL: none. */
kn_capture *kn_stream_own_capture(const kn_stream *stream);

/* The same on a stream that has one: NULL with an error if it belongs to another thread. */
kn_capture *kn_stream_require_capture(const kn_stream *stream);

/* Begins one: false if there is one already. Ends it. */
bool kn_stream_start_capture(kn_stream *stream, kn_capture *capture);
void kn_stream_stop_capture(kn_stream *stream);

/* Fails the capture for good, with the thread's error, unless `status` is KN_OK. Returns `status`. */
kn_status kn_capture_note(kn_capture *capture, kn_status status);

/* KN_ERR_STATE when the stream is being captured: "WHAT cannot be part of a graph". Fails the capture too. */
kn_status kn_stream_refuse_own_capture(kn_stream *stream, const char *what); /* of the calling thread, not of others */
static inline kn_status kn_stream_refuse_capture(kn_stream *stream, const char *what)
{
    if (!kn_stream_has_capture(stream))
        return KN_OK;
    return kn_stream_require_capture(stream) ? kn_stream_refuse_own_capture(stream, what) : KN_ERR_STATE;
}
