/* rt/stream/queue.c - see rt/stream/queue.h. */
#include "rt/stream/queue.h"

#include "rt/device/inject.h"
#include "rt/device/lost.h"
#include "rt/stream/capturing.h"
#include "rt/stream/submit.h"
#include "rt/stream/wait.h"

kn_status kn_stream_enter(kn_stream *stream, const char *what)
{
    KN_TRY(kn_device_check_lost(stream->device));
    if (kn_stream_has_capture(stream))
        return kn_stream_refuse_capture(stream, what);
    kn_stream_note_busy(stream);
    if (!atomic_load_explicit(&stream->submitter, memory_order_acquire))
        return KN_OK;
    kn_submitter_drain(stream);
    return kn_submitter_report(stream);
}

kn_status kn_stream_count_launch(kn_stream *stream)
{
    cl_event oldest = NULL;
    cl_int error = CL_SUCCESS;
    kn_stream_note_busy(stream);
    kn_lock(&stream->lock);
    if (++stream->launches >= KN_LAUNCHES_PER_MARKER) {
        cl_event *slot = &stream->markers[stream->next_marker++ % KN_STREAM_MARKERS];
        oldest = *slot;
        *slot = NULL;
        stream->launches = 0;
        error = KN_CL(KN_CL_MARK, clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, slot));
        if (error == CL_SUCCESS)
            error = clFlush(stream->queue);
    }
    kn_unlock(&stream->lock);
    if (oldest) {
        if (error == CL_SUCCESS)
            error = KN_CL(KN_CL_WAIT, clWaitForEvents(1, &oldest));
        clReleaseEvent(oldest);
    }
    return error == CL_SUCCESS ? KN_OK : kn_cl_fail(error, stream->device, "waiting for a full queue");
}

/* Marks the stream idle before the wait, so that commands enqueued meanwhile by other threads mark it busy again. */
cl_int kn_stream_finish_queue(kn_stream *stream, cl_command_queue queue)
{
    kn_submitter_drain(stream);
    if (kn_device_is_lost(stream->device))
        return CL_DEVICE_NOT_AVAILABLE;
    atomic_store(&stream->busy, false);
    return KN_CL(KN_CL_WAIT, clFinish(queue));
}

cl_int kn_stream_finish(kn_stream *stream) { return kn_stream_finish_queue(stream, stream->queue); }

void kn_stream_drain(kn_stream *stream) { kn_stream_finish(stream); }
