/* rt/command/crossing.c - copies from one device to others through pinned host memory, without making the host wait.
 *
 * OpenCL orders commands by events within one context only, and each device has its own context. So the read that fills
 * the pinned memory has a callback; each write out of it, already enqueued on another device's stream, waits for a user
 * event of its own context, which that callback sets. Both streams keep their order, and the host goes on.
 *
 * Crossings are kept and reused, because pinned memory is expensive to make. One is idle when its read has arrived and
 * all its writes are done. */
#include "rt/command/crossing.h"

#include "base/memory.h"
#include "rt/device/inject.h"
#include "rt/device/lost.h"
#include "rt/memory/place.h"
#include "rt/stream/fault.h"
#include "rt/stream/queue.h"
#include "rt/trace/watch.h"

#define SMALLEST ((size_t)4 << 10)
#define LARGE ((size_t)16 << 20)
#define KEPT ((size_t)256 << 20) /* bytes; above that, idle ones are freed before another is made */

struct kn_crossing {
    kn_device *device; /* the source's: its driver made the memory */
    kn_pinned *memory;
    size_t size;       /* of the memory, in bytes */
    bool held;         /* between start and end; guarded by the list's lock */
    kn_crossing *next; /* in the list of all */
    kn_stream *from;   /* what is under way now */
    size_t bytes;

    kn_mutex lock; /* guards what follows: the callback comes on a thread of the driver's */
    bool arrived;
    cl_int result;                    /* of the read; negative: it failed */
    cl_event waiting[KN_MAX_DEVICES]; /* user events that hold back writes until the read has arrived */
    int num_waiting;
    cl_event written[KN_MAX_DEVICES];
    int num_written;
};

static struct {
    kn_mutex lock;
    kn_crossing *first;
    size_t bytes; /* of all */
} crossings = {.lock = KN_MUTEX_INIT};

/* --- kept for use again; the list's lock is held ----------------------------------------------- */

static bool is_idle(kn_crossing *crossing)
{
    kn_lock(&crossing->lock);
    bool idle = crossing->arrived;
    while (idle && crossing->num_written > 0) {
        cl_event last = crossing->written[crossing->num_written - 1];
        cl_int status = CL_QUEUED;
        clGetEventInfo(last, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
        idle = status <= CL_COMPLETE;
        if (idle) {
            clReleaseEvent(last);
            crossing->num_written--;
        }
    }
    kn_unlock(&crossing->lock);
    return idle;
}

static kn_crossing *find_idle(const kn_device *device, size_t bytes)
{
    kn_crossing *best = NULL;
    for (kn_crossing *one = crossings.first; one; one = one->next)
        if (!one->held && one->device == device && one->size >= bytes && (!best || one->size < best->size) &&
            is_idle(one))
            best = one;
    return best;
}

/* Removes idle ones, which were too small, from the list until it holds at most KEPT bytes. */
static kn_crossing *take_idle_beyond(size_t bytes)
{
    kn_crossing *taken = NULL;
    for (kn_crossing **link = &crossings.first; *link && crossings.bytes + bytes > KEPT;) {
        kn_crossing *one = *link;
        if (one->held || !is_idle(one)) {
            link = &one->next;
            continue;
        }
        *link = one->next;
        crossings.bytes -= one->size;
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

static kn_status make(kn_crossing **crossing, kn_device *device, size_t bytes)
{
    kn_crossing *made = kn_calloc(1, sizeof *made);
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
    *crossing = made;
    return KN_OK;
}

static void free_list(kn_crossing *list)
{
    while (list) {
        kn_crossing *next = list->next;
        kn_pinned_free(list->memory);
        kn_mutex_destroy(&list->lock);
        kn_free(list);
        list = next;
    }
}

static kn_status acquire(kn_crossing **crossing, kn_device *device, size_t bytes)
{
    kn_lock(&crossings.lock);
    *crossing = find_idle(device, bytes);
    if (*crossing)
        (*crossing)->held = true;
    kn_crossing *surplus = *crossing ? NULL : take_idle_beyond(bytes);
    kn_unlock(&crossings.lock);
    free_list(surplus);
    if (*crossing)
        return KN_OK;
    KN_TRY(make(crossing, device, bytes));
    kn_lock(&crossings.lock);
    (*crossing)->held = true;
    (*crossing)->next = crossings.first;
    crossings.first = *crossing;
    crossings.bytes += (*crossing)->size;
    kn_unlock(&crossings.lock);
    return KN_OK;
}

void kn_crossing_end(kn_crossing *crossing)
{
    if (!crossing)
        return;
    kn_lock(&crossings.lock);
    crossing->held = false;
    kn_unlock(&crossings.lock);
}

/* --- from the source to the memory ------------------------------------------------------------- */

static void set_event(cl_event event, cl_int result)
{
    const cl_int state = result < 0 ? result : CL_COMPLETE;
    if (clSetUserEventStatus(event, state) != CL_SUCCESS)
        clSetUserEventStatus(event, state); /* whatever waits for it would wait forever */
    clReleaseEvent(event);
}

static void CL_CALLBACK arrive(cl_event event, cl_int result, void *user)
{
    (void)event;
    kn_crossing *crossing = user;
    cl_event waiting[KN_MAX_DEVICES];
    kn_lock(&crossing->lock);
    int count = crossing->num_waiting;
    for (int i = 0; i < count; i++)
        waiting[i] = crossing->waiting[i];
    crossing->num_waiting = 0;
    crossing->result = result;
    crossing->arrived = true;
    kn_unlock(&crossing->lock);
    for (int i = 0; i < count; i++)
        set_event(waiting[i], result);
}

/* Tells the profiler; the event stays ours. */
static void show(kn_stream *stream, kn_command_kind kind, size_t bytes, cl_event event)
{
    if (!kn_is_watched() || clRetainEvent(event) != CL_SUCCESS)
        return;
    kn_watch(stream, event, .kind = kind, .operation = "between devices", .bytes = bytes);
}

static cl_int enqueue_read(kn_crossing *crossing, kn_stream *from, const kn_buffer *source, size_t offset)
{
    cl_event read;
    kn_buffer_mark_use(source, from);
    cl_int error = KN_CL(KN_CL_READ, clEnqueueReadBuffer(from->queue, kn_buffer_memory(source), CL_FALSE,
                                                         kn_buffer_offset(source) + offset, crossing->bytes,
                                                         kn_pinned_data(crossing->memory), 0, NULL, &read));
    if (error != CL_SUCCESS)
        return error;
    show(from, KN_COMMAND_READ, crossing->bytes, read);
    crossing->arrived = false; /* nobody else sees the crossing yet */
    error = clSetEventCallback(read, CL_COMPLETE, arrive, crossing);
    if (error != CL_SUCCESS) { /* there can be no callback: the host waits instead */
        error = clWaitForEvents(1, &read);
        arrive(read, error, crossing);
    } else {
        error = clFlush(from->queue); /* what waits for the read must not wait for a command never submitted */
    }
    clReleaseEvent(read);
    return error;
}

kn_status kn_crossing_start(kn_crossing **crossing, kn_stream *from, const kn_buffer *source, size_t offset,
                            size_t bytes)
{
    kn_crossing *taken;
    KN_TRY(kn_stream_enter(from, "copying to another device"));
    KN_TRY(acquire(&taken, from->device, bytes));
    taken->from = from;
    taken->bytes = bytes;
    cl_int error = bytes > 0 ? enqueue_read(taken, from, source, offset) : CL_SUCCESS;
    kn_status status = error == CL_SUCCESS
                           ? kn_stream_count_launch(from)
                           : kn_cl_fail(error, from->device, "reading %zu bytes for another device", bytes);
    if (status != KN_OK) {
        kn_crossing_end(taken);
        return status;
    }
    *crossing = taken;
    return KN_OK;
}

/* --- from the memory to a destination ---------------------------------------------------------- */

/* Sets the event when the read has arrived, or leaves that to its callback. */
static void hold_back(kn_crossing *crossing, cl_event gate)
{
    kn_lock(&crossing->lock);
    bool arrived = crossing->arrived;
    if (!arrived)
        crossing->waiting[crossing->num_waiting++] = gate;
    kn_unlock(&crossing->lock);
    if (arrived)
        set_event(gate, crossing->result);
}

static cl_int enqueue_write(kn_crossing *crossing, kn_stream *to, kn_buffer *destination, size_t offset)
{
    cl_int error;
    cl_event gate = clCreateUserEvent(to->device->context, &error), written;
    if (error != CL_SUCCESS)
        return error;
    kn_buffer_mark_use(destination, to);
    error = KN_CL(KN_CL_WRITE, clEnqueueWriteBuffer(to->queue, kn_buffer_memory(destination), CL_FALSE,
                                                    kn_buffer_offset(destination) + offset, crossing->bytes,
                                                    kn_pinned_data(crossing->memory), 1, &gate, &written));
    if (error != CL_SUCCESS) {
        clReleaseEvent(gate);
        return error;
    }
    show(to, KN_COMMAND_WRITE, crossing->bytes, written);
    kn_lock(&crossing->lock);
    crossing->written[crossing->num_written++] = written;
    kn_unlock(&crossing->lock);
    hold_back(crossing, gate);
    return clFlush(to->queue);
}

kn_status kn_crossing_deliver(kn_crossing *crossing, kn_stream *to, kn_buffer *destination, size_t offset)
{
    KN_TRY(kn_stream_enter(to, "copying from another device"));
    if (crossing->num_written == KN_MAX_DEVICES)
        return kn_fail(KN_ERR_INTERNAL, "more than %d deliveries from one device", KN_MAX_DEVICES);
    cl_int error = crossing->bytes > 0 ? enqueue_write(crossing, to, destination, offset) : CL_SUCCESS;
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, to->device, "writing %zu bytes from another device", crossing->bytes);
    kn_stream_hear_faults(to, crossing->from);
    return kn_stream_count_launch(to);
}
