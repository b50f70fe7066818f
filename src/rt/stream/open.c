/* rt/stream/open.c - see rt/stream/open.h. */
#include "rt/stream/open.h"

#include <stdlib.h>

#include "base/fork.h"
#include "base/memory.h"
#include "rt/device/inject.h"
#include "rt/device/lost.h"
#include "rt/device/table.h"
#include "rt/stream/calls.h"
#include "rt/stream/fault.h"
#include "rt/stream/submit.h"

static atomic_ullong last_id;

/* --- a stream --------------------------------------------------------------------------------- */

static kn_status open_queue(kn_stream *stream, kn_device *device, int priority, cl_command_queue theirs)
{
    cl_int error = CL_SUCCESS;
    if (stream->queues[0]) /* kept from the struct's previous stream */
        return KN_OK;
    if (theirs)
        error = clRetainCommandQueue(theirs);
    cl_command_queue queue = theirs ? theirs : kn_queue_new(device, priority, false, &error);
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, device, "creating a stream");
    stream->queues[0] = queue;
    return KN_OK;
}

static kn_status open_calls(kn_stream *stream, const kn_device *device)
{
    if (device->limits.has_entries)
        stream->calls = kn_calls_new();
    return !device->limits.has_entries || stream->calls ? KN_OK : KN_ERR_MEMORY;
}

static void close_calls(kn_stream *stream)
{
    kn_calls_free(stream->calls);
    stream->calls = NULL;
}

kn_status kn_stream_open(kn_stream *stream, kn_device *device, int priority, cl_command_queue theirs)
{
    /* The struct of a destroyed stream keeps these: another thread may still be waiting for that stream. */
    if (!stream->fault) {
        kn_status status = open_calls(stream, device);
        if (status == KN_OK && (status = kn_fault_record_new(stream, device)) != KN_OK)
            close_calls(stream);
        KN_TRY(status);
        kn_mutex_init(&stream->lock);
        stream->device = device;
    }
    KN_TRY(open_queue(stream, device, priority, theirs));
    stream->priority = priority;
    stream->launches = 0;
    atomic_store(&stream->fault_armed, false);
    atomic_store(&stream->busy, false);
    atomic_store(&stream->others_over, atomic_load(&stream->others));
    atomic_store(&stream->is_shared, theirs != NULL);
    atomic_store(&stream->id, atomic_fetch_add(&last_id, 1) + 1);
    return KN_OK;
}

void kn_stream_release_queues(kn_stream *stream)
{
    for (int i = 0; i < 2; i++) {
        if (stream->queues[i])
            clReleaseCommandQueue(stream->queues[i]);
        stream->queues[i] = NULL;
    }
    atomic_store(&stream->switches, 0);
}

/* Reverses kn_stream_open, for a device that could not be opened, whose context is released. */
static void close_stream(kn_stream *stream)
{
    kn_stream_release_queues(stream);
    if (stream->fault) {
        kn_fault_record_free(stream);
        close_calls(stream);
        kn_mutex_destroy(&stream->lock);
    }
    atomic_store(&stream->id, 0);
}

/* --- a device --------------------------------------------------------------------------------- */

/* Unlocked: what it waits for may ask for the lock (a submitter's first launch, rt/direct/direct.c). */
void kn_device_finish_streams(kn_device *device)
{
    unsigned long long id = 0;
    for (kn_stream *stream; (stream = kn_device_next_stream(device, &id));)
        kn_stream_finish(stream);
}

/* At exit: queued work must finish before the drivers are unloaded. */
static void finish_all_devices(void)
{
    if (kn_is_forked()) /* the queues exist, the driver's threads do not */
        return;
    for (int slot = 1; slot < kn_device_slots(); slot++) {
        kn_device *device = kn_device_slot_at(slot);
        if (atomic_load(&device->is_open))
            kn_device_finish_streams(device);
    }
}

void kn_finish_at_exit(void) { atexit(finish_all_devices); }

static void drain_all_devices(void *unused)
{
    (void)unused;
    if (kn_is_forked())
        return;
    for (int slot = 1; slot < kn_device_slots(); slot++) {
        kn_device *device = kn_device_slot_at(slot);
        unsigned long long id = 0;
        for (kn_stream *stream; (stream = kn_device_next_stream(device, &id));)
            kn_submitter_drain(stream);
    }
}

void kn_drain_at_exit(void)
{
    static _Thread_local bool is_registered;
    if (!is_registered)
        is_registered = kn_at_thread_exit(drain_all_devices, NULL);
}

static kn_status open_service(kn_device *device)
{
    cl_int error;
    device->service = kn_queue_new(device, 0, false, &error);
    return error == CL_SUCCESS ? KN_OK : kn_cl_fail(error, device, "creating a queue for host memory");
}

static kn_status open_default_stream(kn_device *device)
{
    kn_stream *stream = device->default_stream;
    if (!stream && !(stream = kn_calloc(1, sizeof *stream)))
        return KN_ERR_MEMORY;
    device->default_stream = stream;
    KN_TRY(kn_stream_open(stream, device, 0, NULL));
    stream->is_default = true;
    device->probe = stream->fault;
    return KN_OK;
}

static void close_default_stream(kn_device *device)
{
    if (device->default_stream)
        close_stream(device->default_stream);
    device->probe = NULL;
}

static kn_status open_locked(kn_device *device)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    cl_int error;
    cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)device->platform, 0};
    device->context = clCreateContext(properties, 1, &device->id, NULL, NULL, &error);
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, device, "creating an OpenCL context");
    kn_status status = open_default_stream(device);
    if (status == KN_OK)
        status = open_service(device);
    if (status != KN_OK) { /* released completely: a later attempt makes a new context */
        close_default_stream(device);
        clReleaseContext(device->context);
        device->context = NULL;
        return status;
    }
    device->streams = device->default_stream;
    atomic_store_explicit(&device->is_open, true, memory_order_release);
    pthread_once(&once, kn_finish_at_exit);
    kn_inject_from_environment();
    return KN_OK;
}

kn_status kn_device_ensure_open(kn_device *device)
{
    if (atomic_load_explicit(&device->is_open, memory_order_acquire))
        return kn_device_check_lost(device);
    if (kn_device_is_host(device))
        return kn_fail(KN_ERR_DEVICE,
                       "the host runs no operations: move the tensor to a device first, kn_to(tensor, device)");
    KN_TRY(kn_device_check_lost(device)); /* by fork */
    kn_lock(&device->lock);
    kn_status status = atomic_load(&device->is_open) ? KN_OK : open_locked(device);
    kn_unlock(&device->lock);
    return status;
}

kn_stream *kn_device_next_stream(kn_device *device, unsigned long long *id)
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
    kn_unlock(&device->lock);
    *id = least;
    return found;
}
