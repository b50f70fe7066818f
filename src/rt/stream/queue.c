/* rt/stream/queue.c - see rt/stream/queue.h. */
#include "rt/stream/queue.h"

#include <time.h>

#include "rt/device/await.h"
#include "rt/device/inject.h"
#include "rt/device/lost.h"
#include "rt/stream/capturing.h"
#include "rt/stream/settle.h"
#include "rt/stream/submit.h"
#include "rt/stream/wait.h"

kn_status kn_stream_enter(kn_stream *stream, const char *what)
{
    if (!kn_stream_has_capture(stream))
        KN_TRY(kn_stream_settle(stream));
    return kn_stream_enter_settled(stream, what);
}

kn_status kn_stream_enter_settled(kn_stream *stream, const char *what)
{
    KN_TRY(kn_device_check_lost(stream->device));
    KN_TRY(kn_stream_refuse_capture(stream, what));
    kn_stream_note_busy(stream);
    if (atomic_load_explicit(&stream->submitter, memory_order_acquire)) {
        kn_submitter_drain(stream);
        KN_TRY(kn_submitter_report(stream));
    }
    return kn_stream_follow_timing(stream);
}

kn_status kn_stream_enter_wait(kn_stream *stream, const char *what)
{
    KN_TRY(kn_device_check_lost(stream->device));
    KN_TRY(kn_stream_refuse_own_capture(stream, what));
    KN_TRY(kn_stream_settle(stream));
    kn_submitter_drain(stream);
    return kn_submitter_report(stream);
}

kn_status kn_stream_enter_unless_idle(kn_stream *stream, const char *what, bool *idle)
{
    *idle = false;
    if (!kn_stream_has_capture(stream)) {
        KN_TRY(kn_stream_settle(stream));
        *idle = kn_stream_rests(stream);
    }
    return *idle ? kn_device_check_lost(stream->device) : kn_stream_enter(stream, what);
}

/* --- the two queues; the stream's lock is held while they change -------------------------------------------------- */

atomic_int kn_timings;

void kn_timing_begin(void) { atomic_fetch_add(&kn_timings, 1); }
void kn_timing_end(void) { atomic_fetch_sub(&kn_timings, 1); }

/* The OpenCL 1.2 call is deprecated but works on every version; no other property: in order. */
cl_command_queue kn_queue_new(kn_device *device, int priority, bool timed, cl_int *error)
{
    const cl_command_queue_properties profiling = timed ? CL_QUEUE_PROFILING_ENABLE : 0;
    if (priority != 0) {
        const cl_queue_properties hint = priority < 0 ? CL_QUEUE_PRIORITY_HIGH_KHR : CL_QUEUE_PRIORITY_LOW_KHR;
        const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, profiling, CL_QUEUE_PRIORITY_KHR, hint, 0};
        return clCreateCommandQueueWithProperties(device->context, device->id, properties, error);
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return clCreateCommandQueue(device->context, device->id, profiling, error);
#pragma GCC diagnostic pop
}

static cl_int order_after(cl_command_queue queue, cl_command_queue before)
{
    cl_event last;
    cl_int error = KN_CL(KN_CL_MARK, kn_mark_queue(before, &last));
    if (error != CL_SUCCESS)
        return error;
    error = KN_CL(KN_CL_MARK, clEnqueueBarrierWithWaitList(queue, 1, &last, NULL));
    clReleaseEvent(last);
    return error;
}

static cl_command_queue queue_now(kn_stream *stream) { return stream->queues[atomic_load(&stream->switches) >> 1 & 1]; }

/* `switches` is odd before the marker is enqueued: a command enqueued on the old queue after the marker is noticed by
 * its thread, which compares the count only then. */
static cl_int change(kn_stream *stream, bool timed)
{
    const unsigned switches = atomic_load(&stream->switches);
    cl_int error = CL_SUCCESS;
    if ((switches >> 1 & 1) == timed || atomic_load(&stream->is_shared))
        return CL_SUCCESS;
    if (!stream->queues[timed])
        stream->queues[timed] = kn_queue_new(stream->device, stream->priority, timed, &error);
    if (error != CL_SUCCESS)
        return error;
    atomic_store(&stream->switches, switches + 1);
    error = order_after(stream->queues[timed], stream->queues[!timed]);
    atomic_store(&stream->switches, error == CL_SUCCESS ? switches + 2 : switches);
    return error;
}

static kn_status fail_change(cl_int error, const kn_stream *stream)
{
    return kn_cl_fail(error, stream->device, "changing a stream's queue");
}

kn_status kn_stream_change_queue(kn_stream *stream, bool timed)
{
    if (atomic_load(&stream->is_shared))
        return KN_OK;
    kn_lock(&stream->lock);
    cl_int error = change(stream, timed);
    kn_unlock(&stream->lock);
    return error == CL_SUCCESS ? KN_OK : fail_change(error, stream);
}

kn_status kn_stream_share_queue(kn_stream *stream, cl_command_queue *queue)
{
    kn_lock(&stream->lock);
    cl_int error = change(stream, true); /* its events may be timed later */
    if (error == CL_SUCCESS)
        atomic_store(&stream->is_shared, true);
    *queue = queue_now(stream);
    kn_unlock(&stream->lock);
    return error == CL_SUCCESS ? KN_OK : fail_change(error, stream);
}

unsigned kn_stream_await_change(kn_stream *stream)
{
    kn_lock(&stream->lock);
    const unsigned switches = atomic_load(&stream->switches);
    kn_unlock(&stream->lock);
    return switches;
}

cl_int kn_stream_rejoin(kn_stream *stream, kn_turn turn)
{
    kn_lock(&stream->lock);
    cl_command_queue now = queue_now(stream);
    cl_int error = now == turn.queue || !now ? CL_SUCCESS : order_after(now, turn.queue);
    kn_unlock(&stream->lock);
    return error;
}

cl_int kn_stream_mark(kn_stream *stream, cl_event *event)
{
    const kn_turn turn = kn_stream_turn(stream);
    *event = NULL;
    return kn_stream_enqueued(stream, turn, KN_CL(KN_CL_MARK, clEnqueueMarkerWithWaitList(turn.queue, 0, NULL, event)));
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

/* Of threads that block, who have all that is in the queue before them, but may also wait for an event of the user's
 * that this thread is to complete: so not for ever. */
enum { MOST_WAYS_GIVEN = 60000 };
#define PAUSE 1000000 /* nanoseconds */
/* Of threads that enter: drivers' locks are not fair. */
enum { MOST_ENTRIES_AWAITED = 20 };
#define SHORT_PAUSE 50000

static void rest(long nanoseconds) { nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL); }

static void give_way(kn_stream *stream)
{
    while (atomic_load(&stream->blocked) > 0 && atomic_fetch_add(&stream->ways_given, 1) < MOST_WAYS_GIVEN)
        rest(PAUSE);
    for (int i = 0; i < MOST_ENTRIES_AWAITED && atomic_load(&stream->entering) > 0; i++)
        rest(SHORT_PAUSE);
}

bool kn_stream_begin_block(kn_stream *stream)
{
    kn_stream_note_worker(stream);
    if (!kn_awaits_itself() && !atomic_load(&stream->has_workers)) {
        atomic_fetch_add(&stream->blocked, 1);
        if (!atomic_load(&stream->has_workers))
            return true;
        atomic_fetch_sub(&stream->blocked, 1);
    }
    atomic_fetch_add(&stream->entering, 1);
    return false;
}

cl_int kn_stream_end_block(kn_stream *stream, cl_command_queue queue, bool blocked, cl_int error)
{
    cl_event last;
    if (blocked) {
        atomic_fetch_sub(&stream->blocked, 1);
        return error;
    }
    if (error == CL_SUCCESS)
        error = kn_mark_queue(queue, &last);
    atomic_fetch_sub(&stream->entering, 1);
    if (error != CL_SUCCESS)
        return error;
    error = KN_CL(KN_CL_WAIT, kn_await_event(last));
    clReleaseEvent(last);
    return error;
}

kn_status kn_stream_count_launch(kn_stream *stream)
{
    cl_event oldest = NULL;
    cl_int error = CL_SUCCESS;
    kn_stream_note_busy(stream);
    kn_stream_note_worker(stream);
    if (atomic_load(&stream->has_workers))
        give_way(stream);
    kn_lock(&stream->lock);
    if (++stream->launches >= KN_LAUNCHES_PER_MARKER) {
        cl_event *slot = &stream->markers[stream->next_marker++ % KN_STREAM_MARKERS];
        oldest = *slot;
        *slot = NULL;
        stream->launches = 0;
        cl_command_queue queue = queue_now(stream);
        error = KN_CL(KN_CL_MARK, clEnqueueMarkerWithWaitList(queue, 0, NULL, slot));
        if (error == CL_SUCCESS)
            error = clFlush(queue);
    }
    kn_unlock(&stream->lock);
    if (oldest) {
        if (error == CL_SUCCESS)
            error = KN_CL(KN_CL_WAIT, kn_await_event(oldest));
        clReleaseEvent(oldest);
    }
    return error == CL_SUCCESS ? KN_OK : kn_cl_fail(error, stream->device, "waiting for a full queue");
}

/* Another thread may destroy the stream meanwhile: NULL if its queue is gone already. */
static cl_int retain_queue(kn_stream *stream, cl_command_queue *queue)
{
    kn_lock(&stream->lock);
    *queue = queue_now(stream);
    const cl_int error = *queue ? clRetainCommandQueue(*queue) : CL_SUCCESS;
    kn_unlock(&stream->lock);
    return error;
}

static cl_int finish_queue(kn_stream *stream, cl_command_queue queue)
{
    const bool blocks = kn_stream_begin_block(stream);
    const cl_int error = blocks ? KN_CL(KN_CL_WAIT, clFinish(queue)) : CL_SUCCESS;
    return kn_stream_end_block(stream, queue, blocks, error);
}

/* The queue is the stream's after jobs were enqueued, which may change it, and after the stream was marked idle: what
 * other threads enqueue on another queue from then on marks it busy again. */
cl_int kn_stream_finish(kn_stream *stream)
{
    cl_command_queue queue;
    kn_submitter_drain(stream);
    if (kn_device_is_lost(stream->device))
        return CL_DEVICE_NOT_AVAILABLE;
    const unsigned others = kn_stream_begin_wait(stream);
    cl_int error = retain_queue(stream, &queue);
    if (error == CL_SUCCESS && queue) {
        error = finish_queue(stream, queue);
        clReleaseCommandQueue(queue);
    }
    kn_stream_end_wait(stream, others, error == CL_SUCCESS);
    return error;
}

kn_status kn_stream_come_to_rest(kn_stream *stream, const char *what)
{
    bool idle;
    KN_TRY(kn_stream_enter_unless_idle(stream, what, &idle));
    if (idle)
        return KN_OK;
    cl_int error = kn_stream_finish(stream);
    return error == CL_SUCCESS ? KN_OK : kn_cl_fail(error, stream->device, "waiting for a stream");
}

void kn_stream_drain(kn_stream *stream) { kn_stream_finish(stream); }
