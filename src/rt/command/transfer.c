/* rt/command/transfer.c - copies between host and device, in stream order. */
#include "rt/command/transfer.h"

#include <string.h>

#include "rt/command/launch_now.h"
#include "rt/command/recorder.h"
#include "rt/command/rehearsing.h"
#include "rt/command/staging.h"
#include "rt/device/fill.h"
#include "rt/device/inject.h"
#include "rt/device/lost.h"
#include "rt/direct/direct.h"
#include "rt/memory/place.h"
#include "rt/memory/pool.h"
#include "rt/program/cold.h"
#include "rt/stream/fault.h"
#include "rt/stream/queue.h"
#include "rt/stream/settle.h"
#include "rt/stream/submit.h"
#include "rt/stream/wait.h"
#include "rt/trace/watch.h"

static kn_status fail(cl_int error, const kn_stream *stream, const char *what, size_t bytes)
{
    return error == CL_SUCCESS ? KN_OK : kn_cl_fail(error, stream->device, "%s %zu bytes", what, bytes);
}

/* --- from and to the host --------------------------------------------------------------------- */

/* In a rehearsal nothing is copied. */
static bool is_rehearsed(void *destination, size_t bytes)
{
    const bool rehearsed = kn_rehearsal_current() != NULL;
    if (rehearsed && destination)
        memset(destination, 0, bytes);
    return rehearsed;
}

/* The buffer's byte at the offset, if the host can copy at once what the stream would otherwise do in its turn
 * (rt/direct/direct.h); else NULL. */
static kn_status find_direct(kn_stream *stream, const kn_buffer *buffer, size_t offset, char **direct)
{
    char *start = kn_buffer_start(buffer);
    *direct = NULL;
    if (!start || kn_stream_has_capture(stream))
        return KN_OK;
    KN_TRY(kn_device_check_lost(stream->device));
    KN_TRY(kn_stream_settle(stream));
    if (kn_direct_may_copy(stream, start))
        *direct = start + kn_buffer_offset(buffer) + offset;
    return KN_OK;
}

static void copy_directly(kn_stream *stream, kn_command_kind kind, void *to, const void *from, size_t bytes)
{
    static const char *const names[] = {
        [KN_COMMAND_READ] = "read", [KN_COMMAND_WRITE] = "write", [KN_COMMAND_COPY] = "copy"};
    const int64_t began = kn_watch_direct_begin();
    memcpy(to, from, bytes);
    kn_watch_direct(stream, began, .kind = kind, .operation = names[kind], .bytes = bytes);
}

/* The rest of a copy that the host waits for: `blocks` is from kn_stream_begin_block, `status` that of enqueueing. */
static kn_status end_waiting(kn_stream *stream, cl_bool blocks, kn_status status, const char *what, size_t bytes)
{
    const cl_int error = kn_stream_end_block(stream, kn_stream_turn(stream).queue, blocks,
                                             status == KN_OK ? CL_SUCCESS : CL_INVALID_OPERATION);
    return status == KN_OK ? fail(error, stream, what, bytes) : status;
}

static kn_status enqueue_read(kn_stream *stream, const kn_buffer *buffer, size_t offset, void *destination,
                              size_t bytes, cl_bool wait)
{
    cl_event event;
    kn_buffer_mark_use(buffer, stream);
    const kn_turn turn = kn_stream_turn(stream);
    cl_int error =
        kn_stream_enqueued(stream, turn,
                           KN_CL(KN_CL_READ, clEnqueueReadBuffer(turn.queue, kn_buffer_memory(buffer), wait,
                                                                 kn_buffer_offset(buffer) + offset, bytes, destination,
                                                                 0, NULL, kn_watch_event(turn, &event))));
    KN_TRY(fail(error, stream, "reading", bytes));
    kn_watch(stream, event, .kind = KN_COMMAND_READ, .operation = "read", .bytes = bytes);
    return KN_OK;
}

kn_status kn_buffer_read(kn_stream *stream, const kn_buffer *buffer, size_t offset, void *destination, size_t bytes)
{
    char *direct;
    if (is_rehearsed(destination, bytes))
        return KN_OK;
    KN_TRY(find_direct(stream, buffer, offset, &direct));
    if (!direct)
        KN_TRY(kn_stream_enter(stream, "reading a tensor"));
    KN_TRY(kn_note_host_wait("reading a tensor"));
    bool armed = bytes > 0 && kn_stream_take_armed(stream);
    if (bytes > 0 && direct) {
        copy_directly(stream, KN_COMMAND_READ, destination, direct, bytes);
    } else if (bytes > 0) {
        const unsigned others = kn_stream_begin_wait(stream);
        const cl_bool blocks = kn_stream_begin_block(stream);
        kn_status status = enqueue_read(stream, buffer, offset, destination, bytes, blocks);
        status = end_waiting(stream, blocks, status, "reading", bytes);
        kn_stream_end_wait(stream, others, status == KN_OK);
        if (status != KN_OK && armed)
            atomic_store(&stream->fault_armed, true);
        KN_TRY(status);
    }
    /* A blocking read has waited for all that was enqueued before: report what its kernels found. */
    return kn_stream_check_fault(stream, armed);
}

#define LARGE_COPY "a large copy from host memory that is not pinned"

static kn_status enqueue_write(kn_stream *stream, kn_buffer *buffer, size_t offset, const void *source, size_t bytes,
                               cl_bool wait)
{
    cl_event event;
    kn_buffer_mark_use(buffer, stream);
    const kn_turn turn = kn_stream_turn(stream);
    cl_int error =
        kn_stream_enqueued(stream, turn,
                           KN_CL(KN_CL_WRITE, clEnqueueWriteBuffer(turn.queue, kn_buffer_memory(buffer), wait,
                                                                   kn_buffer_offset(buffer) + offset, bytes, source, 0,
                                                                   NULL, kn_watch_event(turn, &event))));
    KN_TRY(fail(error, stream, "writing", bytes));
    kn_watch(stream, event, .kind = KN_COMMAND_WRITE, .operation = "write", .bytes = bytes);
    return KN_OK;
}

/* Small writes go through staging memory, so that the host need not wait until the stream reaches the copy. */
kn_status kn_buffer_write(kn_stream *stream, kn_buffer *buffer, size_t offset, const void *source, size_t bytes)
{
    char *direct;
    if (bytes == 0 || is_rehearsed(NULL, 0))
        return KN_OK;
    KN_TRY(find_direct(stream, buffer, offset, &direct));
    if (direct) {
        if (bytes > KN_STAGED_BYTES) /* on devices where it waits programs may forbid it: here they are told, too */
            KN_TRY(kn_note_host_wait(LARGE_COPY));
        copy_directly(stream, KN_COMMAND_WRITE, direct, source, bytes);
        return KN_OK;
    }
    KN_TRY(kn_stream_enter(stream, "copying from host memory"));
    kn_staging_block *block = kn_staging_acquire(stream->device, bytes);
    if (!block) {
        KN_TRY(kn_note_host_wait(LARGE_COPY));
        const cl_bool blocks = kn_stream_begin_block(stream);
        kn_status status = enqueue_write(stream, buffer, offset, source, bytes, blocks);
        return end_waiting(stream, blocks, status, "writing", bytes);
    }
    memcpy(kn_staging_data(block), source, bytes);
    kn_status status = enqueue_write(stream, buffer, offset, kn_staging_data(block), bytes, CL_FALSE);
    kn_staging_release(stream->device, block, stream);
    return status == KN_OK ? kn_stream_count_launch(stream) : status;
}

kn_status kn_buffer_write_pinned(kn_stream *stream, kn_buffer *buffer, size_t offset, kn_pinned *source,
                                 size_t source_offset, size_t bytes)
{
    const char *from = (char *)kn_pinned_data(source) + source_offset;
    char *direct;
    if (bytes == 0 || is_rehearsed(NULL, 0))
        return KN_OK;
    KN_TRY(find_direct(stream, buffer, offset, &direct));
    if (direct) {
        copy_directly(stream, KN_COMMAND_WRITE, direct, from, bytes);
        return KN_OK;
    }
    KN_TRY(kn_stream_enter(stream, "copying from host memory"));
    KN_TRY(enqueue_write(stream, buffer, offset, from, bytes, CL_FALSE));
    kn_stream_note_busy(stream);
    return fail(clFlush(kn_stream_turn(stream).queue), stream, "writing from pinned memory", bytes);
}

kn_status kn_buffer_read_pinned(kn_stream *stream, const kn_buffer *buffer, size_t offset, kn_pinned *destination,
                                size_t destination_offset, size_t bytes)
{
    char *to = (char *)kn_pinned_data(destination) + destination_offset, *direct;
    if (bytes == 0 || is_rehearsed(to, bytes))
        return KN_OK;
    KN_TRY(find_direct(stream, buffer, offset, &direct));
    if (direct) {
        copy_directly(stream, KN_COMMAND_READ, to, direct, bytes);
        return KN_OK;
    }
    KN_TRY(kn_stream_enter(stream, "copying to host memory"));
    KN_TRY(enqueue_read(stream, buffer, offset, to, bytes, CL_FALSE));
    kn_stream_note_busy(stream);
    return fail(clFlush(kn_stream_turn(stream).queue), stream, "reading into pinned memory", bytes);
}

/* --- without a copy --------------------------------------------------------------------------- */

/* Other devices that share the host's memory may copy at a mapping, and other streams use the same memory object. */
bool kn_can_map(const kn_device *device) { return device->limits.is_cpu && device->limits.unified_memory; }

static cl_int enqueue_map(kn_turn turn, const kn_buffer *buffer, size_t offset, size_t bytes, cl_bool wait,
                          void **memory)
{
    cl_int error;
    *memory = clEnqueueMapBuffer(turn.queue, kn_buffer_memory(buffer), wait, CL_MAP_READ | CL_MAP_WRITE,
                                 kn_buffer_offset(buffer) + offset, bytes, 0, NULL, NULL, &error);
    return error;
}

kn_status kn_buffer_map(kn_stream *stream, const kn_buffer *buffer, size_t offset, size_t bytes, void **memory)
{
    char *shared = kn_buffer_shared(buffer);
    if (shared) {
        *memory = shared + offset;
        return kn_stream_come_to_rest(stream, "using a tensor's memory");
    }
    KN_TRY(kn_stream_enter(stream, "mapping a tensor"));
    kn_buffer_mark_use(buffer, stream);
    const cl_bool blocks = kn_stream_begin_block(stream);
    const kn_turn turn = kn_stream_turn(stream);
    const cl_int error = KN_CL(KN_CL_READ, enqueue_map(turn, buffer, offset, bytes, blocks, memory));
    const kn_status status = fail(kn_stream_enqueued(stream, turn, error), stream, "mapping", bytes);
    return end_waiting(stream, blocks, status, "mapping", bytes);
}

kn_status kn_buffer_unmap(kn_stream *stream, const kn_buffer *buffer, void *memory)
{
    if (kn_buffer_shared(buffer))
        return KN_OK;
    const kn_turn turn = kn_stream_turn(stream);
    KN_TRY(fail(kn_stream_enqueued(
                    stream, turn, clEnqueueUnmapMemObject(turn.queue, kn_buffer_memory(buffer), memory, 0, NULL, NULL)),
                stream, "unmapping", 0));
    return kn_stream_count_launch(stream);
}

/* --- on the device ---------------------------------------------------------------------------- */

cl_int kn_transfer_enqueue(kn_stream *stream, kn_command_kind kind, const kn_transfer *t, cl_event *event)
{
    const kn_turn turn = kn_stream_turn(stream);
    cl_event *watched = kn_watch_event(turn, event);
    cl_int error;
    if (kind == KN_COMMAND_FILL)
        error = kn_fill_enqueue(turn.queue, t->to, t->pattern, t->pattern_bytes, t->to_offset, t->bytes, watched);
    else
        error = KN_CL(KN_CL_COPY, clEnqueueCopyBuffer(turn.queue, t->from, t->to, t->from_offset, t->to_offset,
                                                      t->bytes, 0, NULL, watched));
    return kn_stream_enqueued(stream, turn, error);
}

bool kn_transfer_directly(kn_stream *stream, kn_command_kind kind, const kn_transfer *t)
{
    if ((kind == KN_COMMAND_COPY && !t->from_start) || !kn_direct_may_copy(stream, t->to_start))
        return false;
    char *to = t->to_start + t->to_offset;
    if (kind == KN_COMMAND_COPY) {
        copy_directly(stream, kind, to, t->from_start + t->from_offset, t->bytes);
        return true;
    }
    const int64_t began = kn_watch_direct_begin();
    kn_fill_memory(to, t->pattern, t->pattern_bytes, t->bytes);
    kn_watch_direct(stream, began, .kind = kind, .operation = "fill", .bytes = t->bytes);
    return true;
}

kn_status kn_transfer_now(kn_stream *stream, kn_command_kind kind, const kn_transfer *t)
{
    const bool fills = kind == KN_COMMAND_FILL;
    cl_event event;
    if (kn_transfer_directly(stream, kind, t))
        return KN_OK;
    KN_TRY(kn_stream_enter_settled(stream, fills ? "a fill" : "a copy"));
    cl_int error = kn_transfer_enqueue(stream, kind, t, &event);
    if (kn_cl_is_out_of_memory(error) && !kn_is_submitter()) { /* as for a launch */
        kn_pool_empty_cache(stream->device);
        error = kn_transfer_enqueue(stream, kind, t, &event);
    }
    KN_TRY(fail(error, stream, fills ? "filling" : "copying", t->bytes));
    kn_watch(stream, event, .kind = kind, .operation = fills ? "fill" : "copy", .bytes = t->bytes);
    return kn_stream_count_launch(stream);
}

/* Enqueues or records a copy, or a fill: then `from` is NULL. */
static kn_status transfer(kn_stream *stream, const kn_transfer *t, const kn_buffer *from, const kn_buffer *to)
{
    const kn_command_kind kind = from ? KN_COMMAND_COPY : KN_COMMAND_FILL;
    const kn_buffer *used[] = {to, from ? from : to};
    kn_capture *capture = NULL;
    if (kn_stream_has_capture(stream) && !(capture = kn_stream_require_capture(stream)))
        return KN_ERR_STATE;
    KN_TRY(kn_stream_settle_for(stream, used, 2));
    if (capture)
        return capture->recorder->transfer(capture, stream, kind, t, from, to);
    if (from)
        kn_buffer_mark_use(from, stream);
    kn_buffer_mark_use(to, stream);
    return kn_device_is_cold(stream->device) && stream->device->cold->takes_transfer(stream)
               ? stream->device->cold->transfer(stream, kind, t)
               : kn_transfer_now(stream, kind, t);
}

kn_status kn_buffer_copy(kn_stream *stream, const kn_buffer *source, size_t source_offset, kn_buffer *destination,
                         size_t destination_offset, size_t bytes)
{
    if (bytes == 0 || is_rehearsed(NULL, 0))
        return KN_OK;
    const kn_transfer t = {.from = kn_buffer_memory(source),
                           .to = kn_buffer_memory(destination),
                           .from_start = kn_buffer_start(source),
                           .to_start = kn_buffer_start(destination),
                           .from_offset = kn_buffer_offset(source) + source_offset,
                           .to_offset = kn_buffer_offset(destination) + destination_offset,
                           .bytes = bytes};
    return transfer(stream, &t, source, destination);
}

kn_status kn_buffer_fill(kn_stream *stream, kn_buffer *buffer, size_t offset, const void *pattern, size_t pattern_bytes,
                         size_t bytes)
{
    if (bytes == 0 || is_rehearsed(NULL, 0))
        return KN_OK;
    kn_transfer t = {.to = kn_buffer_memory(buffer),
                     .to_start = kn_buffer_start(buffer),
                     .to_offset = kn_buffer_offset(buffer) + offset,
                     .bytes = bytes,
                     .pattern_bytes = pattern_bytes};
    memcpy(t.pattern, pattern, pattern_bytes);
    return transfer(stream, &t, NULL, buffer);
}
