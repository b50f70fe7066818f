/* rt/stream/timing.c - see rt/stream/timing.h. */
#include "rt/stream/timing.h"

#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "rt/device/fill.h"
#include "rt/device/inject.h"
#include "rt/device/lost.h"
#include "rt/stream/fault.h"
#include "rt/stream/queue.h"

/* --- the trial ---------------------------------------------------------------------------------------------------- */

enum { TRIED = 1, MARKERS = 2, COMMANDS = 4 }; /* the bits of kn_device.times */

#define PAUSE 1000000 /* nanoseconds between the two ends that are timed */
#define SLACK 10000   /* by which times of one moment may differ, in nanoseconds */

/* A fill and a marker, a pause, a fill and a marker. */
enum { FILL, MARKER, LATER_FILL, LATER_MARKER, ENDS };

typedef struct trial {
    cl_command_queue queue;
    cl_mem memory;
    cl_event events[ENDS];
    int64_t before, paused, resumed, after; /* on the host's clock */
} trial;

static cl_int enqueue_pair(trial *t, int first)
{
    const cl_uint zero = 0;
    cl_int error = kn_fill_enqueue(t->queue, t->memory, &zero, sizeof zero, 0, sizeof zero, &t->events[first]);
    if (error == CL_SUCCESS)
        error = KN_CL(KN_CL_MARK, clEnqueueMarkerWithWaitList(t->queue, 0, NULL, &t->events[first + 1]));
    return error == CL_SUCCESS ? KN_CL(KN_CL_WAIT, clFinish(t->queue)) : error;
}

static cl_int run(trial *t, kn_device *device)
{
    cl_int error;
    t->queue = kn_queue_new(device, 0, true, &error);
    if (error == CL_SUCCESS)
        t->memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE, sizeof(cl_uint), NULL, &error);
    if (error == CL_SUCCESS)
        error = enqueue_pair(t, FILL); /* the first commands may wait for compilers and memory */
    for (int i = FILL; error == CL_SUCCESS && i <= MARKER; i++)
        clReleaseEvent(t->events[i]);
    t->events[FILL] = t->events[MARKER] = NULL;
    t->before = kn_clock_now();
    if (error == CL_SUCCESS)
        error = enqueue_pair(t, FILL);
    t->paused = kn_clock_now();
    nanosleep(&(struct timespec){.tv_nsec = PAUSE}, NULL);
    t->resumed = kn_clock_now();
    if (error == CL_SUCCESS)
        error = enqueue_pair(t, LATER_FILL);
    t->after = kn_clock_now();
    return error;
}

static void end(trial *t)
{
    for (int i = 0; i < ENDS; i++)
        if (t->events[i])
            clReleaseEvent(t->events[i]);
    if (t->memory)
        clReleaseMemObject(t->memory);
    if (t->queue)
        clReleaseCommandQueue(t->queue);
}

static bool end_of(cl_event event, cl_ulong *end)
{
    *end = 0;
    return clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof *end, end, NULL) == CL_SUCCESS && *end != 0;
}

/* Is the time between the two ends what the host's clock says, within a factor of 2? Other units are further off. */
static bool agrees(const trial *t, cl_ulong early, cl_ulong late)
{
    const double passed = (double)late - (double)early;
    return passed >= 0.5 * (double)(t->resumed - t->paused) && passed <= 2 * (double)(t->after - t->before);
}

static int judge(const trial *t)
{
    cl_ulong fill, later_fill, marker, later_marker;
    const bool fills =
        end_of(t->events[FILL], &fill) && end_of(t->events[LATER_FILL], &later_fill) && agrees(t, fill, later_fill);
    bool markers = end_of(t->events[MARKER], &marker) && end_of(t->events[LATER_MARKER], &later_marker) &&
                   agrees(t, marker, later_marker);
    if (markers && fills)
        markers = marker + SLACK >= fill && marker <= later_fill + SLACK && later_marker + SLACK >= later_fill;
    return TRIED | (fills ? COMMANDS : 0) | (markers ? MARKERS : 0);
}

static kn_status find_out(kn_device *device)
{
    trial t = {0};
    cl_int error = run(&t, device);
    const int times = error == CL_SUCCESS ? judge(&t) : 0;
    end(&t);
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, device, "trying whether events have times");
    atomic_store(&device->times, times);
    if (!(times & MARKERS) || !(times & COMMANDS))
        kn_log_message(KN_LOG_INFO, "the driver of %s gives no usable times of %s", device->label,
                       times & MARKERS    ? "commands"
                       : times & COMMANDS ? "markers"
                                          : "commands and markers");
    return KN_OK;
}

kn_status kn_timing_try(kn_device *device)
{
    static kn_mutex lock = KN_MUTEX_INIT;
    if (atomic_load_explicit(&device->times, memory_order_acquire) & TRIED)
        return KN_OK;
    kn_lock(&lock);
    kn_status status = atomic_load(&device->times) & TRIED ? KN_OK : find_out(device);
    kn_unlock(&lock);
    return status;
}

bool kn_timing_has_commands(kn_device *device)
{
    KN_PRESERVE_ERROR;
    return kn_timing_try(device) == KN_OK && (atomic_load(&device->times) & COMMANDS);
}

/* --- events ------------------------------------------------------------------------------------------------------- */

cl_int kn_timing_mark(kn_stream *stream, cl_event *event)
{
    const cl_uint zero = 0;
    const int times = atomic_load(&stream->device->times);
    if ((times & MARKERS) || !(times & COMMANDS))
        return kn_stream_mark(stream, event);
    const kn_turn turn = kn_stream_turn(stream);
    *event = NULL;
    return kn_stream_enqueued(
        stream, turn,
        kn_fill_enqueue(turn.queue, stream->fault, &zero, sizeof zero, KN_FAULT_BYTES, sizeof zero, event));
}

bool kn_timing_read(const kn_device *device, cl_event event, cl_ulong *end)
{
    return (atomic_load(&device->times) & (MARKERS | COMMANDS)) && end_of(event, end);
}
