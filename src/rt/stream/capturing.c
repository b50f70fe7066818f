/* rt/stream/capturing.c - see rt/stream/capturing.h. */
#include "rt/stream/capturing.h"

#include <stdio.h>

#include "base/error.h"
#include "base/threads.h"

bool kn_stream_start_capture(kn_stream *stream, kn_capture *capture)
{
    kn_capture *none = NULL;
    if (!atomic_compare_exchange_strong(&stream->capture, &none, capture))
        return false;
    atomic_store(&stream->capturer, kn_this_thread());
    return true;
}

void kn_stream_stop_capture(kn_stream *stream)
{
    atomic_store(&stream->capturer, NULL);
    atomic_store_explicit(&stream->capture, NULL, memory_order_release);
}

static bool is_own(const kn_stream *stream)
{
    return atomic_load(&((kn_stream *)(uintptr_t)stream)->capturer) == kn_this_thread();
}

kn_capture *kn_stream_own_capture(const kn_stream *stream)
{
    return is_own(stream) ? atomic_load(&((kn_stream *)(uintptr_t)stream)->capture) : NULL;
}

kn_capture *kn_stream_require_capture(const kn_stream *stream)
{
    kn_capture *capture = kn_stream_own_capture(stream);
    if (!capture)
        kn_fail(KN_ERR_STATE, "another thread is capturing a graph on this stream of %s: use another stream",
                stream->device->label);
    return capture;
}

kn_status kn_capture_note(kn_capture *capture, kn_status status)
{
    if (status != KN_OK && capture->failure == KN_OK) {
        capture->failure = status;
        snprintf(capture->message, sizeof capture->message, "%s", kn_error_message());
        kn_fail(status, "%s", capture->message); /* sets it again: reading the message cleared it */
    }
    return status;
}

kn_status kn_stream_refuse_own_capture(kn_stream *stream, const char *what)
{
    kn_capture *capture = kn_stream_own_capture(stream);
    if (!capture)
        return KN_OK;
    return kn_capture_note(capture, kn_fail(KN_ERR_STATE,
                                            "%s cannot be part of a graph, and one is being captured on this stream of "
                                            "%s: do it before the capture or after the replay",
                                            what, stream->device->label));
}
