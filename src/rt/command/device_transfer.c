/* rt/command/device_transfer.c - copies from one device to others through pinned host memory, asynchronous to the host.
 *
 * OpenCL orders commands by events within one context only, and each device has its own context. So the read that fills
 * the pinned memory has a callback; each write out of it, already enqueued on another device's stream, waits for a user
 * event of its own context, which a thread of the library sets after that callback. Both streams keep their order, and
 * the host does not wait.
 *
 * Transfers are kept and reused, because pinned memory is expensive to make. One is idle when its read has arrived and
 * all its writes are done. */
#include "rt/command/device_transfer.h"

#include "base/memory.h"
#include "rt/device/inject.h"
#include "rt/device/lost.h"
#include "rt/memory/place.h"
#include "rt/stream/executor.h"
#include "rt/stream/fault.h"
#include "rt/stream/queue.h"
#include "rt/trace/watch.h"

#define SMALLEST ((size_t)4 << 10)
#define LARGE ((size_t)16 << 20)
#define KEPT ((size_t)256 << 20) /* bytes; above that, idle transfers are freed before another is created */

struct kn_device_transfer {
    kn_posted arrival; /* first, so that it is the transfer's address */
    kn_device *device; /* the source's: its driver made the memory */
    kn_pinned *memory;
    size_t size;              /* of the memory, in bytes */
    bool held;                /* between start and end; guarded by the list's lock */
    kn_device_transfer *next; /* in the list of all */
    kn_stream *from;          /* the current transfer */
    size_t bytes;

    kn_mutex lock; /* guards the rest, which the executor's thread uses too */
    bool arrived;
    cl_int result;                    /* of the read; negative: it failed */
    cl_event waiting[KN_MAX_DEVICES]; /* user events that hold back writes until the read has arrived */
    int num_waiting;
    cl_event written[KN_MAX_DEVICES];
    int num_written;
};

static struct {
    kn_mutex lock;
    kn_device_transfer *first;
    size_t bytes; /* of all */
} transfers = {.lock = KN_MUTEX_INIT};

/* --- kept for use again; the list's lock is held ----------------------------------------------- */

static bool is_idle(kn_device_transfer *transfer)
{
    kn_lock(&transfer->lock);
    bool idle = transfer->arrived;
    while (idle && transfer->num_written > 0) {
        cl_event last = transfer->written[transfer->num_written - 1];
        cl_int status = CL_QUEUED;
        clGetEventInfo(last, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
        idle = status <= CL_COMPLETE;
        if (idle) {
            clReleaseEvent(last);
            transfer->num_written--;
        }
    }
    kn_unlock(&transfer->lock);
    return idle;
}

static kn_device_transfer *find_idle(const kn_device *device, size_t bytes)
{
    kn_device_transfer *best = NULL;
    for (kn_device_transfer *one = transfers.first; one; one = one->next)
        if (!one->held && one->device == device && one->size >= bytes && (!best || one->size < best->size) &&
            is_idle(one))
            best = one;
    return best;
}

/* Removes idle transfers, which were too small, from the list until it has at most KEPT bytes. */
static kn_device_transfer *take_idle_beyond(size_t bytes)
{
    kn_device_transfer *taken = NULL;
    for (kn_device_transfer **link = &transfers.first; *link && transfers.bytes + bytes > KEPT;) {
        kn_device_transfer *one = *link;
        if (one->held || !is_idle(one)) {
            link = &one->next;
            continue;
        }
        *link = one->next;
        transfers.bytes -= one->size;
        one->next = taken;
        taken = one;
    }
    return taken;
}

/* --- making ------------------------------------------------------------------------------------ */

/* Only a few sizes, so that later copies fit: powers of two, then multiples of LARGE. */
static size_t size_for(size_t bytes)
{
    size_t size = SMALLEST;
    if (bytes > LARGE)
        return (bytes + LARGE - 1) / LARGE * LARGE;
    while (size < bytes)
        size *= 2;
    return size;
}

static kn_status make(kn_device_transfer **transfer, kn_device *device, size_t bytes)
{
    kn_device_transfer *made = kn_calloc(1, sizeof *made);
    if (!made)
        return KN_ERR_MEMORY;
    made->device = device;
    made->arrived = true;
    made->size = size_for(bytes);
    kn_status status = kn_pinned_alloc(&made->memory, device, made->size);
    if (status != KN_OK) {
        kn_free(made);
        return status;
    }
    kn_mutex_init(&made->lock);
    *transfer = made;
    return KN_OK;
}

static void free_list(kn_device_transfer *list)
{
    while (list) {
        kn_device_transfer *next = list->next;
        kn_pinned_free(list->memory);
        kn_mutex_destroy(&list->lock);
        kn_free(list);
        list = next;
    }
}

static kn_status acquire(kn_device_transfer **transfer, kn_device *device, size_t bytes)
{
    kn_lock(&transfers.lock);
    *transfer = find_idle(device, bytes);
    if (*transfer)
        (*transfer)->held = true;
    kn_device_transfer *surplus = *transfer ? NULL : take_idle_beyond(bytes);
    kn_unlock(&transfers.lock);
    free_list(surplus);
    if (*transfer)
        return KN_OK;
    KN_TRY(make(transfer, device, bytes));
    kn_lock(&transfers.lock);
    (*transfer)->held = true;
    (*transfer)->next = transfers.first;
    transfers.first = *transfer;
    transfers.bytes += (*transfer)->size;
    kn_unlock(&transfers.lock);
    return KN_OK;
}

void kn_device_transfer_end(kn_device_transfer *transfer)
{
    if (!transfer)
        return;
    kn_lock(&transfers.lock);
    transfer->held = false;
    kn_unlock(&transfers.lock);
}

/* --- from the source to the memory ------------------------------------------------------------- */

static void set_event(cl_event event, cl_int result)
{
    const cl_int state = result < 0 ? result : CL_COMPLETE;
    if (clSetUserEventStatus(event, state) != CL_SUCCESS)
        clSetUserEventStatus(event, state); /* otherwise waiters would wait forever */
    clReleaseEvent(event);
}

static void arrive(kn_posted *arrival)
{
    kn_device_transfer *transfer = (kn_device_transfer *)arrival;
    cl_event waiting[KN_MAX_DEVICES];
    kn_lock(&transfer->lock);
    int count = transfer->num_waiting;
    for (int i = 0; i < count; i++)
        waiting[i] = transfer->waiting[i];
    transfer->num_waiting = 0;
    transfer->arrived = true;
    const cl_int result = transfer->result;
    kn_unlock(&transfer->lock);
    for (int i = 0; i < count; i++)
        set_event(waiting[i], result);
}

static void CL_CALLBACK read_done(cl_event event, cl_int result, void *user)
{
    (void)event;
    kn_device_transfer *transfer = user;
    transfer->result = result;
    kn_executor_post(KN_EXECUTOR_RUNTIME, &transfer->arrival);
}

/* Reports to the profiler; keeps ownership of the event. */
static void show(kn_stream *stream, kn_command_kind kind, size_t bytes, cl_event event)
{
    if (!kn_is_watched() || clRetainEvent(event) != CL_SUCCESS)
        return;
    kn_watch(stream, event, .kind = kind, .operation = "between devices", .bytes = bytes);
}

static cl_int enqueue_read(kn_device_transfer *transfer, kn_stream *from, const kn_buffer *source, size_t offset)
{
    cl_event read;
    kn_buffer_mark_use(source, from);
    const kn_turn turn = kn_stream_turn(from);
    cl_int error =
        kn_stream_enqueued(from, turn,
                           KN_CL(KN_CL_READ, clEnqueueReadBuffer(turn.queue, kn_buffer_memory(source), CL_FALSE,
                                                                 kn_buffer_offset(source) + offset, transfer->bytes,
                                                                 kn_pinned_data(transfer->memory), 0, NULL, &read)));
    if (error != CL_SUCCESS)
        return error;
    show(from, KN_COMMAND_READ, transfer->bytes, read);
    transfer->arrival.run = arrive;
    transfer->arrived = false; /* no other thread can access the transfer yet */
    error = clSetEventCallback(read, CL_COMPLETE, read_done, transfer);
    if (error != CL_SUCCESS) { /* no callback possible: the host waits instead */
        error = transfer->result = clWaitForEvents(1, &read);
        arrive(&transfer->arrival);
    } else {
        error = clFlush(turn.queue); /* waiters must not wait for a command that was never submitted */
    }
    clReleaseEvent(read);
    return error;
}

kn_status kn_device_transfer_start(kn_device_transfer **transfer, kn_stream *from, const kn_buffer *source,
                                   size_t offset, size_t bytes)
{
    kn_device_transfer *taken;
    KN_TRY(kn_stream_enter(from, "copying to another device"));
    KN_TRY(kn_executor_start(KN_EXECUTOR_RUNTIME));
    KN_TRY(acquire(&taken, from->device, bytes));
    taken->from = from;
    taken->bytes = bytes;
    cl_int error = bytes > 0 ? enqueue_read(taken, from, source, offset) : CL_SUCCESS;
    kn_status status = error == CL_SUCCESS
                           ? kn_stream_count_launch(from)
                           : kn_cl_fail(error, from->device, "reading %zu bytes for another device", bytes);
    if (status != KN_OK) {
        kn_device_transfer_end(taken);
        return status;
    }
    *transfer = taken;
    return KN_OK;
}

/* --- from the memory to a destination ---------------------------------------------------------- */

/* Sets the event when the read has arrived, or leaves that to its callback. */
static void hold_back(kn_device_transfer *transfer, cl_event gate)
{
    kn_lock(&transfer->lock);
    bool arrived = transfer->arrived;
    if (!arrived)
        transfer->waiting[transfer->num_waiting++] = gate;
    kn_unlock(&transfer->lock);
    if (arrived)
        set_event(gate, transfer->result);
}

static cl_int enqueue_write(kn_device_transfer *transfer, kn_stream *to, kn_buffer *destination, size_t offset)
{
    cl_int error;
    cl_event gate = clCreateUserEvent(to->device->context, &error), written;
    if (error != CL_SUCCESS || (error = clRetainEvent(gate)) != CL_SUCCESS)
        return error;
    /* First, because some drivers wait here until the write is done, though it is said not to block. */
    hold_back(transfer, gate);
    kn_buffer_mark_use(destination, to);
    const kn_turn turn = kn_stream_turn(to);
    error = kn_stream_enqueued(
        to, turn,
        KN_CL(KN_CL_WRITE, clEnqueueWriteBuffer(turn.queue, kn_buffer_memory(destination), CL_FALSE,
                                                kn_buffer_offset(destination) + offset, transfer->bytes,
                                                kn_pinned_data(transfer->memory), 1, &gate, &written)));
    clReleaseEvent(gate);
    if (error != CL_SUCCESS)
        return error;
    show(to, KN_COMMAND_WRITE, transfer->bytes, written);
    kn_lock(&transfer->lock);
    transfer->written[transfer->num_written++] = written;
    kn_unlock(&transfer->lock);
    return clFlush(turn.queue);
}

kn_status kn_device_transfer_deliver(kn_device_transfer *transfer, kn_stream *to, kn_buffer *destination, size_t offset)
{
    KN_TRY(kn_stream_enter(to, "copying from another device"));
    kn_stream_note_others(to);
    if (transfer->num_written == KN_MAX_DEVICES)
        return kn_fail(KN_ERR_INTERNAL, "more than %d deliveries of one transfer", KN_MAX_DEVICES);
    cl_int error = transfer->bytes > 0 ? enqueue_write(transfer, to, destination, offset) : CL_SUCCESS;
    kn_stream_note_others(to);
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, to->device, "writing %zu bytes from another device", transfer->bytes);
    kn_stream_collect_faults(to, transfer->from);
    return kn_stream_count_launch(to);
}
