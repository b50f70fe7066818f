/* rt/command/enqueue.c - see enqueue.h. */
#include "rt/command/enqueue.h"

#include "rt/device/inject.h"
#include "rt/stream/lone.h"
#include "rt/trace/watch.h"

static cl_int enqueue(kn_stream *stream, kn_turn turn, cl_kernel kernel, int dims, const size_t global[3],
                      const size_t local[3], cl_event *event)
{
    return kn_stream_enqueued(
        stream, turn,
        KN_CL(KN_CL_LAUNCH, clEnqueueNDRangeKernel(turn.queue, kernel, (cl_uint)dims, NULL, global,
                                                   local[0] ? local : NULL, 0, NULL, event)));
}

static cl_int enqueue_lone(kn_stream *stream, kn_turn turn, cl_kernel kernel, int dims, const size_t global[3],
                           const size_t local[3], cl_event *event)
{
    cl_int error = kn_lone_begin(stream, turn);
    if (error != CL_SUCCESS)
        return error;
    error = enqueue(stream, turn, kernel, dims, global, local, event);
    kn_lone_end(stream);
    return error;
}

/* Kernels that gather their arguments have as many work-groups in every launch, so that they may run at a time also
 * where sizes are confused (rt/stream/lone.h). */
enum { GROUPS_PER_UNIT = 4 };

static cl_int enqueue_gathered(kn_stream *stream, kn_turn turn, cl_kernel kernel, const kn_values *values,
                               const size_t global[3], cl_event *watched)
{
    static const size_t one[3] = {1, 1, 1};
    const size_t groups[3] = {(size_t)stream->device->limits.compute_units * GROUPS_PER_UNIT, 1, 1};
    cl_event *end = NULL;
    cl_int error = kn_calls_begin(stream->calls, kernel, values, global, &end);
    if (error == CL_SUCCESS)
        error = enqueue(stream, turn, kernel, 1, groups, one, watched ? watched : end);
    if (end && watched && *watched && clRetainEvent(*watched) == CL_SUCCESS)
        *end = *watched;
    kn_calls_end(stream->calls);
    return error;
}

cl_int kn_enqueue_kernel(kn_stream *stream, kn_turn turn, cl_kernel kernel, const kn_values *values, int dims,
                         const size_t global[3], const size_t local[3], cl_event *event)
{
    const size_t size[3] = {global[0], dims > 1 ? global[1] : 1, dims > 2 ? global[2] : 1};
    cl_event *watched = kn_watch_event(turn, event);
    return values ? enqueue_gathered(stream, turn, kernel, values, size, watched)
                  : enqueue_lone(stream, turn, kernel, dims, global, local, watched);
}
