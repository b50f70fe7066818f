/* rt/stream/stream.c - in-order queues: making and destroying them, waiting for them. */
#include "rt/stream/wait.h"

#include <string.h>

#include "base/fork.h"
#include "base/memory.h"
#include "rt/device/lost.h"
#include "rt/stream/capturing.h"
#include "rt/stream/fault.h"
#include "rt/stream/open.h"
#include "rt/stream/queue.h"
#include "rt/stream/submit.h"

/* --- making ----------------------------------------------------------------------------------- */

static bool has_priorities(const kn_device *device)
{
    return device->limits.opencl_version >= 200 && strstr(device->extensions, "cl_khr_priority_hints") != NULL;
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

/* Takes a destroyed stream's struct from the list for reuse; NULL: none fits. Structs keep their queues, because
 * drivers (PoCL) leak some of a queue's memory; but not queues that the program has a handle of: see kn_stream_free. */
static kn_stream *take_destroyed(kn_device *device, int priority, cl_command_queue theirs)
{
    kn_lock(&device->lock);
    kn_stream **link = &device->destroyed;
    while (*link && (theirs ? (*link)->queues[0] != NULL : (*link)->queues[0] && (*link)->priority != priority))
        link = &(*link)->next;
    kn_stream *taken = *link;
    if (taken)
        *link = taken->next;
    kn_unlock(&device->lock);
    return taken;
}

/* On a new queue, or on the caller's, `theirs`. */
static kn_stream *add_stream(kn_device *device, int priority, cl_command_queue theirs)
{
    kn_stream *made = take_destroyed(device, priority, theirs);
    if (!made)
        made = kn_calloc(1, sizeof *made);
    if (!made)
        return NULL;
    kn_status status = kn_stream_open(made, device, priority, theirs);
    if (status != KN_OK && !made->fault) { /* not initialised yet */
        kn_free(made);
        return NULL;
    }
    kn_lock(&device->lock);
    kn_stream **list = status == KN_OK ? &device->streams : &device->destroyed;
    made->next = *list;
    *list = made;
    kn_unlock(&device->lock);
    return status == KN_OK ? made : NULL;
}

kn_stream *kn_stream_new_with_priority(kn_device *device, int priority)
{
    int least, greatest;
    if (!device)
        return kn_fail_argument_null("kn_stream_new", "device"), NULL;
    if (kn_stream_priority_range(device, &least, &greatest) != KN_OK)
        return NULL;
    return add_stream(device, priority > least ? least : priority < greatest ? greatest : priority, NULL);
}

kn_stream *kn_stream_adopt_queue(kn_device *device, cl_command_queue queue) { return add_stream(device, 0, queue); }

kn_stream *kn_stream_new(kn_device *device) { return kn_stream_new_with_priority(device, 0); }

/* --- destroying ------------------------------------------------------------------------------- */

static kn_status check_destroyable(kn_stream *stream)
{
    const char *label = stream->device->label;
    bool done;
    if (stream->is_default)
        return kn_fail(KN_ERR_ARGUMENT, "kn_stream_free: the default stream of %s belongs to the device", label);
    if (kn_stream_has_capture(stream))
        return kn_fail(KN_ERR_STATE, "kn_stream_free: a graph is being captured on this stream of %s: end it first",
                       label);
    kn_submitter_drain(stream);
    if (kn_device_is_lost(stream->device)) /* its work is over */
        return KN_OK;
    KN_TRY(kn_stream_is_idle_within(stream, 50000000, &done)); /* work that is about to finish is not an error */
    if (!done)
        return kn_fail(KN_ERR_STATE,
                       "kn_stream_free: the stream of %s has unfinished work: kn_stream_synchronize it first", label);
    return KN_OK;
}

kn_status kn_stream_free(kn_stream *stream)
{
    if (!stream || kn_is_forked())
        return KN_OK;
    KN_TRY(check_destroyable(stream));
    kn_device *device = stream->device;
    kn_stream_await_callbacks(stream);
    kn_status status = kn_submitter_report(stream), fault = kn_stream_check_fault(stream, kn_stream_take_armed(stream));
    if (kn_device_is_lost(device)) /* known */
        status = fault = KN_OK;
    kn_stream_forget_current(stream);
    atomic_store(&stream->id, 0);
    kn_lock(&device->lock);
    kn_stream **link = &device->streams;
    while (*link && *link != stream)
        link = &(*link)->next;
    if (*link)
        *link = stream->next;
    kn_unlock(&device->lock);
    device->leave_pool(stream);
    for (int i = 0; i < KN_STREAM_MARKERS; i++) {
        if (stream->markers[i])
            clReleaseEvent(stream->markers[i]);
        stream->markers[i] = NULL;
    }
    kn_lock(&stream->lock);
    if (atomic_load(&stream->is_shared)) /* others may still use one */
        kn_stream_release_queues(stream);
    kn_unlock(&stream->lock);
    kn_lock(&device->lock);
    stream->next = device->destroyed;
    device->destroyed = stream;
    kn_unlock(&device->lock);
    return status == KN_OK ? fault : status;
}

/* --- what it is ------------------------------------------------------------------------------- */

kn_device *kn_stream_device(const kn_stream *stream) { return stream ? stream->device : NULL; }
uint64_t kn_stream_id(const kn_stream *stream) { return stream ? atomic_load(&stream->id) : 0; }
int kn_stream_priority(const kn_stream *stream) { return stream ? stream->priority : 0; }

/* --- waiting ---------------------------------------------------------------------------------- */

/* Waits and reports errors; the caller counts the host wait. */
static kn_status synchronize(kn_stream *stream)
{
    KN_TRY(kn_stream_enter_wait(stream, "kn_stream_synchronize"));
    bool armed = kn_stream_take_armed(stream);
    cl_int error = kn_stream_finish(stream);
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
    return synchronize(stream);
}

kn_status kn_device_synchronize(kn_device *device)
{
    if (!atomic_load(&device->is_open))
        return KN_OK;
    KN_TRY(kn_device_check_lost(device));
    KN_TRY(kn_note_host_wait("kn_synchronize"));
    kn_status status = KN_OK;
    kn_stream *stream;
    unsigned long long id = 0;
    while ((stream = kn_device_next_stream(device, &id))) {
        const kn_status one = synchronize(stream);
        status = status == KN_OK ? one : status;
    }
    return status;
}
