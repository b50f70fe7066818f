/* rt/stream/event.c - points in a stream's work: other streams and the host wait for them, and they have device
 * timestamps. */
#include "rt/stream/wait.h"

#include <sched.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/memory.h"
#include "rt/device/await.h"
#include "rt/device/inject.h"
#include "rt/device/lost.h"
#include "rt/stream/capturing.h"
#include "rt/stream/open.h"
#include "rt/stream/queue.h"
#include "rt/stream/submit.h"
#include "rt/stream/timing.h"

struct kn_event {
    kn_device *device;
    cl_event handle; /* NULL: never recorded, or on an idle stream */
    bool is_timed, is_recorded;
};

static kn_event *new_event(kn_device *device, bool timed)
{
    kn_event *event = kn_calloc(1, sizeof *event);
    if (!event)
        return NULL;
    *event = (kn_event){.device = device, .is_timed = timed};
    if (timed)
        kn_timing_begin();
    return event;
}

kn_event *kn_event_new(kn_device *device)
{
    if (!device)
        return kn_fail_argument_null("kn_event_new", "device"), NULL;
    if (kn_device_ensure_open(device) != KN_OK || kn_timing_try(device) != KN_OK)
        return NULL;
    return new_event(device, true);
}

kn_event *kn_event_new_without_timing(kn_device *device)
{
    if (!device)
        return kn_fail_argument_null("kn_event_new_without_timing", "device"), NULL;
    return kn_device_ensure_open(device) == KN_OK ? new_event(device, false) : NULL;
}

void kn_event_free(kn_event *event)
{
    if (!event)
        return;
    if (event->handle && !kn_is_forked())
        clReleaseEvent(event->handle);
    if (event->is_timed)
        kn_timing_end();
    kn_free(event);
}

static void set_handle(kn_event *event, cl_event handle)
{
    if (event->handle)
        clReleaseEvent(event->handle);
    event->handle = handle;
    event->is_recorded = true;
}

/* NULL where nothing is left to wait for. */
static cl_int make_mark(const kn_event *event, kn_stream *stream, cl_event *handle)
{
    *handle = NULL;
    if (event->is_timed)
        return kn_timing_mark(stream, handle);
    return kn_stream_rests(stream) ? KN_CL(KN_CL_MARK, CL_SUCCESS) : kn_stream_mark(stream, handle);
}

/* Uses the queue even during a capture: the pool's markers are not part of the recording. */
static kn_status mark(kn_event *event, kn_stream *stream)
{
    cl_event handle;
    kn_submitter_drain(stream);
    cl_int error = make_mark(event, stream, &handle);
    if (error == CL_SUCCESS && handle) /* else a waiter could wait for a command that was never submitted */
        error = clFlush(kn_stream_turn(stream).queue);
    if (error != CL_SUCCESS) {
        if (handle)
            clReleaseEvent(handle);
        return kn_cl_fail(error, stream->device, "recording an event");
    }
    set_handle(event, handle);
    return KN_OK;
}

kn_status kn_event_new_recorded(kn_event **event, kn_stream *stream)
{
    kn_event *made;
    KN_TRY(kn_status_of(made = kn_event_new_without_timing(stream->device)));
    kn_status status = mark(made, stream);
    if (status == KN_OK)
        *event = made;
    else
        kn_event_free(made);
    return status;
}

static kn_status check_device(const kn_event *event, const kn_stream *stream, const char *what)
{
    if (event->device == stream->device)
        return KN_OK;
    return kn_fail(KN_ERR_DEVICE, "%s: the event is on %s, but the stream on %s: an event orders work on one device",
                   what, event->device->label, stream->device->label);
}

kn_status kn_event_record(kn_event *event, kn_stream *stream)
{
    if (!event)
        return kn_fail_argument_null("kn_event_record", "event");
    if (!stream)
        stream = kn_stream_current(event->device);
    if (!stream)
        return kn_error_status();
    KN_TRY(check_device(event, stream, "kn_event_record"));
    bool idle;
    KN_TRY(event->is_timed ? kn_stream_enter(stream, "recording an event")
                           : kn_stream_enter_unless_idle(stream, "recording an event", &idle));
    return mark(event, stream);
}

kn_status kn_stream_wait_event(kn_stream *stream, kn_event *event)
{
    if (!stream || !event)
        return kn_fail_argument_null("kn_stream_wait_event", stream ? "event" : "stream");
    KN_TRY(check_device(event, stream, "kn_stream_wait_event"));
    if (!event->is_recorded)
        return KN_OK;
    if (!kn_stream_has_capture(stream) && kn_event_has_passed(event) && !kn_event_has_failed(event))
        return KN_OK;
    kn_stream_note_others(stream);
    KN_TRY(kn_stream_enter(stream, "waiting for an event"));
    const kn_turn turn = kn_stream_turn(stream);
    cl_int error = kn_stream_enqueued(
        stream, turn, KN_CL(KN_CL_MARK, clEnqueueBarrierWithWaitList(turn.queue, 1, &event->handle, NULL)));
    kn_stream_note_busy(stream);
    kn_stream_note_others(stream);
    return error == CL_SUCCESS ? KN_OK : kn_cl_fail(error, stream->device, "making a stream wait for an event");
}

kn_status kn_stream_wait_stream(kn_stream *stream, kn_stream *other)
{
    if (!stream || !other)
        return kn_fail_argument_null("kn_stream_wait_stream", stream ? "other" : "stream");
    bool idle;
    KN_TRY(kn_stream_enter_unless_idle(other, "another stream's waiting for this one", &idle));
    kn_event *event;
    KN_TRY(kn_event_new_recorded(&event, other));
    kn_status status = kn_stream_wait_event(stream, event);
    kn_event_free(event);
    return status;
}

/* --- looking ---------------------------------------------------------------------------------- */

static kn_status progress(const kn_event *event, bool *done)
{
    cl_int state = CL_QUEUED;
    *done = true;
    if (!event->handle)
        return KN_OK;
    KN_TRY(kn_device_check_lost(event->device));
    cl_int error = clGetEventInfo(event->handle, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    if (error == CL_SUCCESS && state < 0)
        error = state; /* the commands before it ended with that error */
    *done = state == CL_COMPLETE;
    return error == CL_SUCCESS ? KN_OK : kn_cl_fail(error, event->device, "the work before an event");
}

kn_status kn_event_query(kn_event *event, bool *done)
{
    if (!event || !done)
        return kn_fail_argument_null("kn_event_query", event ? "done" : "event");
    return progress(event, done);
}

bool kn_event_has_failed(const kn_event *event)
{
    cl_int state = CL_QUEUED;
    if (!event->handle || kn_device_is_lost(event->device))
        return event->handle != NULL;
    return clGetEventInfo(event->handle, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL) != CL_SUCCESS ||
           state < 0;
}

bool kn_event_has_passed(kn_event *event)
{
    cl_int state = CL_QUEUED;
    if (!event->handle || kn_device_is_lost(event->device))
        return true;
    clGetEventInfo(event->handle, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    return state <= CL_COMPLETE; /* failed work is over, too */
}

/* OpenCL cannot query whether a queue is idle, and a marker needs a moment to pass even an idle one. */
static kn_status progress_within(const kn_event *event, long nanoseconds, bool *done)
{
    const int64_t start = kn_clock_now();
    for (;;) {
        KN_TRY(progress(event, done));
        if (*done || kn_clock_now() - start > nanoseconds)
            return KN_OK;
        sched_yield();
    }
}

kn_status kn_stream_is_idle_within(kn_stream *stream, long nanoseconds, bool *done)
{
    *done = kn_stream_rests(stream);
    if (*done)
        return KN_OK;
    KN_TRY(kn_stream_enter(stream, "querying whether a stream is idle"));
    kn_event *event = NULL;
    const unsigned others = kn_stream_begin_wait(stream); /* first: what is enqueued after the event is not over then */
    kn_status status = kn_event_new_recorded(&event, stream);
    if (status == KN_OK)
        status = progress_within(event, nanoseconds, done);
    kn_stream_end_wait(stream, others, *done);
    kn_event_free(event);
    return status;
}

kn_status kn_stream_query(kn_stream *stream, bool *done)
{
    if (!stream || !done)
        return kn_fail_argument_null("kn_stream_query", stream ? "done" : "stream");
    return kn_stream_is_idle_within(stream, 100000, done);
}

kn_status kn_event_await(kn_event *event)
{
    KN_TRY(kn_device_check_lost(event->device));
    cl_int error = event->handle ? KN_CL(KN_CL_WAIT, kn_await_event(event->handle)) : CL_SUCCESS;
    return error == CL_SUCCESS ? KN_OK : kn_cl_fail(error, event->device, "waiting for an event");
}

kn_status kn_event_synchronize(kn_event *event)
{
    if (!event)
        return kn_fail_argument_null("kn_event_synchronize", "event");
    if (event->handle)
        KN_TRY(kn_note_host_wait("kn_event_synchronize"));
    return kn_event_await(event);
}

static kn_status time_of(const kn_event *event, const char *which, cl_ulong *time)
{
    bool done;
    if (!event->is_timed)
        return kn_fail(KN_ERR_STATE, "kn_event_elapsed_time: the %s event was made by kn_event_new_without_timing",
                       which);
    KN_TRY(progress(event, &done));
    if (!event->handle || !done)
        return kn_fail(KN_ERR_STATE, "kn_event_elapsed_time: the %s event %s", which,
                       done ? "was never recorded" : "is not done yet: call kn_event_synchronize first");
    if (kn_timing_read(event->device, event->handle, time))
        return KN_OK;
    return kn_fail(
        KN_ERR_DEVICE,
        "kn_event_elapsed_time: %s gives the %s event no time: its driver has no usable ones, or the stream's "
        "queue, made by the program, lacks CL_QUEUE_PROFILING_ENABLE; kn_synchronize and the host's clock "
        "do without",
        event->device->label, which);
}

kn_status kn_event_elapsed_time(kn_event *start, kn_event *end, double *milliseconds)
{
    if (!start || !end || !milliseconds)
        return kn_fail_argument_null("kn_event_elapsed_time", !start ? "start" : !end ? "end" : "milliseconds");
    if (start->device != end->device)
        return kn_fail(KN_ERR_DEVICE,
                       "kn_event_elapsed_time: one event is on %s, the other on %s, and their clocks differ",
                       start->device->label, end->device->label);
    cl_ulong times[2];
    KN_TRY(time_of(start, "start", &times[0]));
    KN_TRY(time_of(end, "end", &times[1]));
    *milliseconds = (times[1] >= times[0] ? (double)(times[1] - times[0]) : -(double)(times[0] - times[1])) * 1e-6;
    return KN_OK;
}
