/* rt/command/enqueue.c - see enqueue.h. */
#include "rt/command/enqueue.h"

#include "rt/device/inject.h"
#include "rt/trace/watch.h"

cl_int kn_enqueue_kernel(kn_stream *stream, kn_turn turn, cl_kernel kernel, const kn_values *values, int dims,
                         const size_t global[3], const size_t local[3], cl_event *event)
{
    cl_event *end = NULL, *watched = kn_watch_event(turn, event);
    cl_int error = values ? kn_calls_begin(stream->calls, kernel, values, &end) : CL_SUCCESS;
    if (error == CL_SUCCESS)
        error = kn_stream_enqueued(
            stream, turn,
            KN_CL(KN_CL_LAUNCH, clEnqueueNDRangeKernel(turn.queue, kernel, (cl_uint)dims, NULL, global,
                                                       local[0] ? local : NULL, 0, NULL, watched ? watched : end)));
    if (end && watched && *watched && clRetainEvent(*watched) == CL_SUCCESS)
        *end = *watched;
    if (values)
        kn_calls_end(stream->calls);
    return error;
}
