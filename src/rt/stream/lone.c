/* rt/stream/lone.c - see lone.h. */
#include "rt/stream/lone.h"

#include "rt/device/inject.h"

static kn_mutex lock = KN_MUTEX_INIT; /* held until the launch is enqueued, so that the next one comes after it */

/* The stream of the last such launch, by device. */
static struct {
    kn_stream *stream;
    uint64_t id;
} last[KN_MAX_DEVICES];

static cl_int follow(kn_stream *stream, kn_turn turn, kn_stream *other)
{
    cl_event mark;
    cl_int error = kn_stream_mark(other, &mark);
    if (error != CL_SUCCESS)
        return error;
    kn_stream_note_others(stream);
    error = KN_CL(KN_CL_MARK, clEnqueueBarrierWithWaitList(turn.queue, 1, &mark, NULL));
    kn_stream_note_others(stream);
    clReleaseEvent(mark);
    return error;
}

cl_int kn_lone_begin(kn_stream *stream, kn_turn turn)
{
    const int slot = stream->device->slot;
    if (!stream->device->quirks.confuses_sizes)
        return CL_SUCCESS;
    kn_lock(&lock);
    kn_stream *other = last[slot].stream;
    const bool is_gone = !other || kn_stream_id(other) != last[slot].id; /* its work was done */
    const cl_int error = other == stream || is_gone ? CL_SUCCESS : follow(stream, turn, other);
    if (error != CL_SUCCESS) {
        kn_unlock(&lock);
        return error;
    }
    last[slot].stream = stream;
    last[slot].id = kn_stream_id(stream);
    return CL_SUCCESS;
}

void kn_lone_end(const kn_stream *stream)
{
    if (stream->device->quirks.confuses_sizes)
        kn_unlock(&lock);
}
