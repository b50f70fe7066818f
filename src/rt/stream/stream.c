/* rt/stream/stream.c - in-order queues: making and destroying them, the current one, waiting for them. */
#include "base/fork.h"
#include "base/memory.h"
#include "rt/device/lost.h"
#include "rt/graph/capture.h"
#include "rt/stream/submit.h"

#include <CL/cl_ext.h>
#include <string.h>

/* The thread's current streams; by id too, since a stream may have been destroyed and its struct used again. */
static _Thread_local struct {
    kn_stream *stream;
    unsigned long long id;
} current[KN_MAX_DEVICES];

static atomic_ullong last_id;

/* --- making ----------------------------------------------------------------------------------- */

static bool has_priorities(const kn_device *device)
{
    return device->limits.opencl_version >= 200 && strstr(device->extensions, "cl_khr_priority_hints") != NULL;
}

/* Profiling is always on: events are then timed on the device's clock. It costs nothing as long as no event is asked
 * for (docs/streams.md). The OpenCL 1.2 call is deprecated but works on every version; no other property: in order. */
static cl_command_queue new_queue(kn_device *device, int priority, cl_int *error)
{
    if (priority != 0) {
        const cl_queue_properties hint = priority < 0 ? CL_QUEUE_PRIORITY_HIGH_KHR : CL_QUEUE_PRIORITY_LOW_KHR;
        const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, CL_QUEUE_PRIORITY_KHR,
                                                  hint, 0};
        return clCreateCommandQueueWithProperties(device->context, device->id, properties, error);
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return clCreateCommandQueue(device->context, device->id, CL_QUEUE_PROFILING_ENABLE, error);
#pragma GCC diagnostic pop
}

static kn_status open_queue(kn_stream *stream, kn_device *device, int priority, cl_command_queue theirs)
{
    cl_int error = CL_SUCCESS;
    if (stream->queue) /* of the stream whose struct this was */
        return KN_OK;
    if (theirs)
        error = clRetainCommandQueue(theirs);
    cl_command_queue queue = theirs ? theirs : new_queue(device, priority, &error);
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, device, "making a stream");
    stream->queue = queue;
    return KN_OK;
}

kn_status kn_stream_open(kn_stream *stream, kn_device *device, int priority, cl_command_queue theirs)
{
    if (!stream->fault) { /* else the struct of a destroyed stream of this device: what another thread may still look
                             at, waiting for the stream that was, stays as it is */
        KN_TRY(kn_fault_record_new(&stream->fault, device));
        kn_mutex_init(&stream->lock);
        stream->device = device;
    }
    KN_TRY(open_queue(stream, device, priority, theirs));
    stream->priority = priority;
    stream->launches = 0;
    atomic_store(&stream->fault_armed, false);
    atomic_store(&stream->busy, false);
    atomic_store(&stream->is_shared, theirs != NULL);
    atomic_store(&stream->id, atomic_fetch_add(&last_id, 1) + 1);
    return KN_OK;
}

void kn_stream_close(kn_stream *stream)
{
    if (stream->queue)
        clReleaseCommandQueue(stream->queue);
    if (stream->fault) {
        clReleaseMemObject(stream->fault);
        kn_mutex_destroy(&stream->lock);
    }
    stream->queue = NULL;
    stream->fault = NULL;
    atomic_store(&stream->id, 0);
}

kn_status kn_stream_priority_range(kn_device *device, int *least, int *greatest)
{
    if (!device || !least || !greatest)
        return kn_fail_argument_null("kn_stream_priority_range", device ? "least or greatest" : "device");
    KN_TRY(kn_device_ensure_open(device));
    bool offered = has_priorities(device);
    *least = offered ? 1 : 0;
    *greatest = offered ? -1 : 0;
    return KN_OK;
}

/* A destroyed stream's struct to use again, taken out of the list; NULL: none fits. Those of our own queues keep them,
 * for drivers (PoCL) do not give back all that a queue took. A queue that the program has a handle of is not one of
 * them: see kn_stream_destroy. */
static kn_stream *take_destroyed(kn_device *device, int priority, cl_command_queue theirs)
{
    kn_lock(&device->lock);
    kn_stream **link = &device->destroyed;
    while (*link && (theirs ? (*link)->queue != NULL : (*link)->queue && (*link)->priority != priority))
        link = &(*link)->next;
    kn_stream *taken = *link;
    if (taken)
        *link = taken->next;
    kn_unlock(&device->lock);
    return taken;
}

/* On a queue of its own, or on `theirs`. */
static kn_status add_stream(kn_stream **stream, kn_device *device, int priority, cl_command_queue theirs)
{
    kn_stream *made = take_destroyed(device, priority, theirs);
    if (!made)
        made = kn_calloc(1, sizeof *made);
    if (!made)
        return KN_ERR_MEMORY;
    kn_status status = kn_stream_open(made, device, priority, theirs);
    if (status != KN_OK && !made->fault) { /* nothing came of it yet */
        kn_free(made);
        return status;
    }
    kn_lock(&device->lock);
    kn_stream **list = status == KN_OK ? &device->streams : &device->destroyed;
    made->next = *list;
    *list = made;
    kn_unlock(&device->lock);
    if (status == KN_OK)
        *stream = made;
    return status;
}

kn_status kn_stream_create_with_priority(kn_stream **stream, kn_device *device, int priority)
{
    int least, greatest;
    if (!stream || !device)
        return kn_fail_argument_null("kn_stream_create", stream ? "device" : "stream");
    KN_TRY(kn_stream_priority_range(device, &least, &greatest));
    priority = priority > least ? least : priority < greatest ? greatest : priority;
    return add_stream(stream, device, priority, NULL);
}

kn_status kn_stream_adopt_queue(kn_stream **stream, kn_device *device, cl_command_queue queue)
{
    return add_stream(stream, device, 0, queue);
}

kn_status kn_stream_create(kn_stream **stream, kn_device *device)
{
    return kn_stream_create_with_priority(stream, device, 0);
}

/* --- destroying ------------------------------------------------------------------------------- */

static kn_status check_destroyable(kn_stream *stream)
{
    const char *label = stream->device->label;
    bool done;
    if (stream->is_default)
        return kn_fail(KN_ERR_ARGUMENT, "kn_stream_destroy: the default stream of %s belongs to the device", label);
    if (kn_stream_has_capture(stream))
        return kn_fail(KN_ERR_STATE, "kn_stream_destroy: a graph is being captured on this stream of %s: end it first",
                       label);
    if (kn_device_is_lost(stream->device)) { /* whatever it was doing is over */
        kn_submitter_drain(stream);
        return KN_OK;
    }
    kn_submitter_drain(stream);
    KN_TRY(kn_stream_is_idle_within(stream, 50000000, &done)); /* what is about to end is no misuse */
    if (!done)
        return kn_fail(KN_ERR_STATE,
                       "kn_stream_destroy: the stream of %s has unfinished work: kn_stream_synchronize it first",
                       label);
    return KN_OK;
}

kn_status kn_stream_destroy(kn_stream *stream)
{
    if (!stream || kn_is_forked())
        return KN_OK;
    KN_TRY(check_destroyable(stream));
    kn_device *device = stream->device;
    kn_stream_await_callbacks(stream);
    kn_status status = kn_submitter_report(stream), fault = kn_stream_check_fault(stream, kn_stream_take_armed(stream));
    if (kn_device_is_lost(device)) /* known */
        status = fault = KN_OK;
    if (current[device->slot].stream == stream)
        current[device->slot].stream = NULL;
    atomic_store(&stream->id, 0);
    kn_lock(&device->lock);
    kn_stream **link = &device->streams;
    while (*link && *link != stream)
        link = &(*link)->next;
    if (*link)
        *link = stream->next;
    kn_unlock(&device->lock);
    kn_pool_leave_stream(device, stream);
    for (int i = 0; i < KN_STREAM_MARKERS; i++) {
        if (stream->markers[i])
            clReleaseEvent(stream->markers[i]);
        stream->markers[i] = NULL;
    }
    if (atomic_load(&stream->is_shared)) { /* others may go on using it */
        clReleaseCommandQueue(stream->queue);
        stream->queue = NULL;
    }
    kn_lock(&device->lock);
    stream->next = device->destroyed;
    device->destroyed = stream;
    kn_unlock(&device->lock);
    return status == KN_OK ? fault : status;
}

/* --- the current stream ----------------------------------------------------------------------- */

kn_stream *kn_stream_default(kn_device *device)
{
    if (!device || kn_device_ensure_open(device) != KN_OK)
        return NULL;
    return &device->default_stream;
}

/* How many guards around the present line could not be entered. */
static _Thread_local int refusals;

void kn_refuse_work(void)
{
    kn_stick(); /* whatever is said inside the block is a consequence */
    refusals++;
}

void kn_accept_work(void)
{
    if (refusals > 0)
        refusals--;
}

kn_stream *kn_stream_current(kn_device *device)
{
    if (!device)
        return NULL;
    if (refusals > 0)
        return kn_fail_null(KN_ERR_STATE, "no work is done here: the guard of this block could not be entered");
    kn_stream *stream = current[device->slot].stream;
    if (!stream)
        return kn_stream_default(device);
    if (atomic_load_explicit(&stream->id, memory_order_relaxed) == current[device->slot].id)
        return stream;
    current[device->slot].stream = NULL;
    return kn_fail_null(KN_ERR_STATE,
                        "the current stream of this thread on %s has been destroyed; its default stream is current now",
                        device->label);
}

kn_status kn_stream_set_current(kn_stream *stream)
{
    if (!stream)
        return kn_fail_argument_null("kn_stream_set_current", "stream");
    unsigned long long id = atomic_load(&stream->id);
    if (id == 0)
        return kn_fail(KN_ERR_STATE, "kn_stream_set_current: the stream has been destroyed");
    current[stream->device->slot].stream = stream;
    current[stream->device->slot].id = id;
    return KN_OK;
}

kn_stream_guard kn_stream_use(kn_stream *stream)
{
    kn_stream_guard guard = {.before = stream ? kn_stream_current(stream->device) : NULL};
    if (!stream)
        kn_fail_argument_null("KN_STREAM", "stream");
    guard.entered = guard.before && kn_stream_set_current(stream) == KN_OK;
    if (!guard.entered)
        kn_refuse_work();
    return guard;
}

void kn_stream_leave(kn_stream_guard *guard)
{
    if (guard->entered)
        kn_stream_set_current(guard->before);
    else
        kn_accept_work();
}

kn_device *kn_stream_device(const kn_stream *stream) { return stream ? stream->device : NULL; }
uint64_t kn_stream_id(const kn_stream *stream) { return stream ? atomic_load(&stream->id) : 0; }
int kn_stream_priority(const kn_stream *stream) { return stream ? stream->priority : 0; }

/* --- waiting ---------------------------------------------------------------------------------- */

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

/* Idle is noted before the wait, so that what another thread enqueues meanwhile makes the stream busy again. */
static cl_int finish(kn_stream *stream, cl_command_queue queue)
{
    kn_submitter_drain(stream);
    if (kn_device_is_lost(stream->device))
        return CL_DEVICE_NOT_AVAILABLE;
    atomic_store(&stream->busy, false);
    return KN_CL(KN_CL_WAIT, clFinish(queue));
}

void kn_stream_settle(kn_stream *stream) { kn_stream_finish(stream); }

cl_int kn_stream_finish(kn_stream *stream) { return finish(stream, stream->queue); }

/* Waits and reports; the count of host waits is the caller's. What another thread captures does not run: only the work
 * before its capture is waited for. */
static kn_status synchronize(kn_stream *stream, cl_command_queue queue)
{
    if (!kn_stream_captured_elsewhere(stream))
        KN_TRY(kn_stream_enter(stream, "kn_stream_synchronize"));
    bool armed = kn_stream_take_armed(stream);
    cl_int error = finish(stream, queue);
    if (error != CL_SUCCESS) {
        atomic_store(&stream->fault_armed, armed);
        return kn_cl_fail(error, stream->device, "waiting for a stream");
    }
    kn_stream_await_callbacks(stream);
    return kn_stream_check_fault(stream, armed);
}

kn_status kn_stream_synchronize(kn_stream *stream)
{
    if (!stream)
        return kn_fail_argument_null("kn_stream_synchronize", "stream");
    KN_TRY(kn_note_host_wait("kn_stream_synchronize"));
    return synchronize(stream, stream->queue);
}

kn_stream *kn_device_next_stream(kn_device *device, unsigned long long *id, cl_command_queue *queue)
{
    kn_stream *found = NULL;
    unsigned long long least = 0;
    kn_lock(&device->lock);
    for (kn_stream *stream = device->streams; stream; stream = stream->next) {
        unsigned long long one = atomic_load(&stream->id); /* 0: it is being destroyed, so nothing is on it */
        if (one <= *id || (found && one > least))
            continue;
        found = stream;
        least = one;
    }
    cl_int error = found && queue ? clRetainCommandQueue(found->queue) : CL_SUCCESS;
    if (found && queue)
        *queue = error == CL_SUCCESS ? found->queue : NULL;
    kn_unlock(&device->lock);
    *id = least;
    return found;
}

kn_status kn_synchronize(kn_device *device)
{
    if (!device)
        return kn_fail_argument_null("kn_synchronize", "device");
    if (!atomic_load(&device->is_open))
        return KN_OK;
    KN_TRY(kn_device_check_lost(device));
    KN_TRY(kn_note_host_wait("kn_synchronize"));
    kn_status status = KN_OK;
    kn_stream *stream;
    cl_command_queue queue;
    unsigned long long id = 0;
    while ((stream = kn_device_next_stream(device, &id, &queue))) {
        kn_status one = queue ? synchronize(stream, queue)
                              : kn_cl_fail(CL_OUT_OF_RESOURCES, device, "taking hold of a stream's queue");
        status = status == KN_OK ? one : status;
        if (queue)
            clReleaseCommandQueue(queue);
    }
    return status;
}
