/* rt/stream.c - in-order queues, events, and the faults that kernels report. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "rt/internal.h"

struct kn_event {
    kn_device *device;
    cl_event handle;
};

static _Thread_local kn_stream *current[KN_MAX_DEVICES];

/* --- faults ----------------------------------------------------------------------------------- */

#define FAULT_INTS 4
#define MAX_OPERATIONS 512

static struct {
    kn_mutex lock;
    const char *names[MAX_OPERATIONS];
    int count;
} operations = {.lock = KN_MUTEX_INIT};

/* Names are string constants, so the pointer is compared first and kept. */
int kn_operation_number(const char *name)
{
    kn_lock(&operations.lock);
    int number = 0;
    while (number < operations.count && operations.names[number] != name && strcmp(operations.names[number], name) != 0)
        number++;
    if (number == operations.count && number < MAX_OPERATIONS)
        operations.names[operations.count++] = name;
    kn_unlock(&operations.lock);
    return number;
}

static const char *operation_name(int number)
{
    kn_lock(&operations.lock);
    const char *name = number >= 0 && number < operations.count ? operations.names[number] : "an operation";
    kn_unlock(&operations.lock);
    return name;
}

/* Reads the stream's fault record if a launch may have written it; clears it and reports. The stream's work is done by
 * then. */
kn_status kn_stream_check_fault(kn_stream *stream)
{
    if (!atomic_exchange(&stream->fault_armed, false))
        return KN_OK;
    cl_int record[FAULT_INTS];
    cl_int error = clEnqueueReadBuffer(stream->queue, stream->fault, CL_TRUE, 0, sizeof record, record, 0, NULL, NULL);
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, stream->device, "reading the fault record");
    if (record[0] == 0)
        return KN_OK;
    const cl_int zeros[FAULT_INTS] = {0};
    error = clEnqueueWriteBuffer(stream->queue, stream->fault, CL_TRUE, 0, sizeof zeros, zeros, 0, NULL, NULL);
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, stream->device, "clearing the fault record");
    return kn_fail(KN_ERR_ARGUMENT, "%s: index %d is out of range for size %d (found by the kernel on %s)",
                   operation_name(record[3]), record[1], record[2], stream->device->label);
}

/* --- streams ---------------------------------------------------------------------------------- */

kn_status kn_stream_open(kn_stream *stream, kn_device *device)
{
    cl_int error;
    *stream = (kn_stream){.device = device};
    kn_mutex_init(&stream->lock);
    /* The OpenCL 1.2 call is deprecated but works on every version; no property: in order. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    stream->queue = clCreateCommandQueue(device->context, device->id, 0, &error);
#pragma GCC diagnostic pop
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, device, "making a stream");
    cl_int zeros[FAULT_INTS] = {0};
    stream->fault =
        clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof zeros, zeros, &error);
    if (error != CL_SUCCESS) {
        clReleaseCommandQueue(stream->queue);
        return kn_cl_fail(error, device, "making a stream's fault record");
    }
    return KN_OK;
}

kn_status kn_stream_count_launch(kn_stream *stream)
{
    cl_event oldest = NULL;
    cl_int error = CL_SUCCESS;
    kn_lock(&stream->lock);
    if (++stream->launches >= KN_LAUNCHES_PER_MARKER) {
        cl_event *slot = &stream->markers[stream->next_marker++ % KN_STREAM_MARKERS];
        oldest = *slot;
        *slot = NULL;
        stream->launches = 0;
        error = clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, slot);
        if (error == CL_SUCCESS)
            error = clFlush(stream->queue);
    }
    kn_unlock(&stream->lock);
    if (oldest) {
        if (error == CL_SUCCESS)
            error = clWaitForEvents(1, &oldest);
        clReleaseEvent(oldest);
    }
    return error == CL_SUCCESS ? KN_OK : kn_cl_fail(error, stream->device, "waiting for a full queue");
}

static void release_markers(kn_stream *stream)
{
    for (int i = 0; i < KN_STREAM_MARKERS; i++)
        if (stream->markers[i])
            clReleaseEvent(stream->markers[i]);
}

kn_status kn_stream_create(kn_stream **stream, kn_device *device)
{
    if (!stream || !device)
        return kn_fail_argument_null("kn_stream_create", stream ? "device" : "stream");
    KN_TRY(kn_device_ensure_open(device));
    kn_stream *made = kn_calloc(1, sizeof *made);
    if (!made)
        return KN_ERR_MEMORY;
    kn_status status = kn_stream_open(made, device);
    if (status != KN_OK) {
        kn_free(made);
        return status;
    }
    kn_lock(&device->lock);
    made->next = device->streams;
    device->streams = made;
    kn_unlock(&device->lock);
    *stream = made;
    return KN_OK;
}

kn_status kn_stream_destroy(kn_stream *stream)
{
    if (!stream)
        return KN_OK;
    if (stream->is_default)
        return kn_fail(KN_ERR_ARGUMENT, "kn_stream_destroy: the default stream of %s belongs to the device",
                       stream->device->label);
    kn_device *device = stream->device;
    kn_status status = kn_stream_synchronize(stream);
    if (current[device->slot] == stream)
        current[device->slot] = NULL;
    kn_lock(&device->lock);
    kn_stream **link = &device->streams;
    while (*link && *link != stream)
        link = &(*link)->next;
    if (*link)
        *link = stream->next;
    kn_unlock(&device->lock);
    kn_pool_adopt_stream(device, stream);
    release_markers(stream);
    kn_mutex_destroy(&stream->lock);
    clReleaseMemObject(stream->fault);
    clReleaseCommandQueue(stream->queue);
    kn_free(stream);
    return status;
}

kn_stream *kn_stream_default(kn_device *device)
{
    if (!device || kn_device_ensure_open(device) != KN_OK)
        return NULL;
    return &device->default_stream;
}

kn_stream *kn_stream_current(kn_device *device)
{
    if (!device)
        return NULL;
    return current[device->slot] ? current[device->slot] : kn_stream_default(device);
}

kn_status kn_stream_set_current(kn_stream *stream)
{
    if (!stream)
        return kn_fail_argument_null("kn_stream_set_current", "stream");
    current[stream->device->slot] = stream;
    return KN_OK;
}

kn_device *kn_stream_device(const kn_stream *stream) { return stream->device; }

kn_status kn_stream_synchronize(kn_stream *stream)
{
    if (!stream)
        return kn_fail_argument_null("kn_stream_synchronize", "stream");
    cl_int error = clFinish(stream->queue);
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, stream->device, "waiting for a stream");
    return kn_stream_check_fault(stream);
}

kn_status kn_synchronize(kn_device *device)
{
    if (!device)
        return kn_fail_argument_null("kn_synchronize", "device");
    if (!atomic_load(&device->is_open))
        return KN_OK;
    kn_status status = KN_OK;
    kn_lock(&device->lock);
    for (kn_stream *stream = device->streams; stream; stream = stream->next) {
        kn_status one = kn_stream_synchronize(stream);
        status = status == KN_OK ? one : status;
    }
    kn_unlock(&device->lock);
    return status;
}

/* --- events ----------------------------------------------------------------------------------- */

kn_status kn_event_record(kn_event **event, kn_stream *stream)
{
    kn_event *made = kn_calloc(1, sizeof *made);
    if (!made)
        return KN_ERR_MEMORY;
    made->device = stream->device;
    cl_int error = clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &made->handle);
    if (error == CL_SUCCESS)
        error =
            clFlush(stream->queue); /* another queue that waits for it must not wait for a command never submitted */
    if (error != CL_SUCCESS) {
        kn_event_free(made);
        return kn_cl_fail(error, stream->device, "recording an event");
    }
    *event = made;
    return KN_OK;
}

kn_status kn_stream_wait_event(kn_stream *stream, kn_event *event)
{
    if (event->device != stream->device)
        return kn_fail(KN_ERR_DEVICE, "a stream of %s cannot wait for an event of %s", stream->device->label,
                       event->device->label);
    cl_int error = clEnqueueBarrierWithWaitList(stream->queue, 1, &event->handle, NULL);
    return error == CL_SUCCESS ? KN_OK : kn_cl_fail(error, stream->device, "making a stream wait for an event");
}

kn_status kn_event_synchronize(kn_event *event)
{
    cl_int error = clWaitForEvents(1, &event->handle);
    return error == CL_SUCCESS ? KN_OK : kn_cl_fail(error, event->device, "waiting for an event");
}

bool kn_event_has_passed(kn_event *event)
{
    cl_int status = CL_QUEUED;
    clGetEventInfo(event->handle, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    return status <= CL_COMPLETE;
}

void kn_event_free(kn_event *event)
{
    if (!event)
        return;
    if (event->handle)
        clReleaseEvent(event->handle);
    kn_free(event);
}

kn_status kn_stream_wait_stream(kn_stream *stream, kn_stream *other)
{
    if (!stream || !other)
        return kn_fail_argument_null("kn_stream_wait_stream", stream ? "other" : "stream");
    kn_event *event;
    KN_TRY(kn_event_record(&event, other));
    kn_status status = kn_stream_wait_event(stream, event);
    kn_event_free(event);
    return status;
}
