/* rt/command/enqueue.c - see enqueue.h. */
#include "rt/command/enqueue.h"

#include "rt/command/linger.h"
#include "rt/device/inject.h"
#include "rt/trace/watch.h"

static bool is_one_group(int dims, const size_t global[3], const size_t local[3])
{
    for (int i = 0; i < dims; i++)
        if (global[i] != local[i])
            return false;
    return true;
}

cl_int kn_enqueue_kernel(kn_stream *stream, kn_turn turn, cl_kernel kernel, kn_affinity_parameter parameter,
                         const kn_values *values, int dims, const size_t global[3], const size_t local[3],
                         cl_event *event)
{
    kn_calls_lock(turn.calls);
    cl_int error = kn_affinity_set(kernel, parameter, values, stream, &turn);
    if (error == CL_SUCCESS)
        error = kn_stream_enqueued(
            stream, turn,
            KN_CL(KN_CL_LAUNCH, clEnqueueNDRangeKernel(turn.queue, kernel, (cl_uint)dims, NULL, global,
                                                       local[0] ? local : NULL, 0, NULL, kn_watch_event(turn, event))));
    kn_calls_unlock(turn.calls);
    if (error == CL_SUCCESS)
        kn_linger(stream, turn, is_one_group(dims, global, local));
    return error;
}
