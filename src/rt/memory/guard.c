/* rt/memory/guard.c - guard mode (KOINE_GUARD=1): writes outside a buffer are detected when it is freed. */
#include <string.h>

#include "base/log.h"
#include "rt/device/fill.h"
#include "rt/memory/blocks.h"
#include "rt/stream/capturing.h"
#include "rt/stream/queue.h"
#include "rt/stream/submit.h"

#define GUARD_PATTERN 0xA5
#define POISON 0xFF /* NaN in every floating-point type */

static void *host_view(const kn_buffer *block) { return kn_segment_shared(block->segment, block->offset); }

static cl_int enqueue_fills(kn_buffer *block, kn_stream *stream)
{
    const unsigned char pattern = GUARD_PATTERN, poison = POISON;
    cl_mem memory = block->segment->memory;
    const kn_turn turn = kn_stream_turn(stream);
    cl_int error = kn_fill_enqueue(turn.queue, memory, &pattern, 1, block->offset, block->size, NULL);
    if (error == CL_SUCCESS)
        kn_fill_enqueue(turn.queue, memory, &poison, 1, block->offset + KN_GUARD_BYTES, block->requested, NULL);
    kn_stream_enqueued(stream, turn, CL_SUCCESS);
    kn_stream_note_busy(stream);
    return error;
}

/* Commands wake the driver's threads: where the host sees the memory and no command is pending, it fills the block. */
void kn_guard_fill(kn_buffer *block, kn_stream *stream)
{
    unsigned char *view = host_view(block);
    block->is_guarded = !kn_stream_has_capture(stream); /* in a graph several blocks may share memory */
    if (!block->is_guarded)
        return;
    kn_submitter_drain(stream);
    if (view && kn_stream_is_known_idle(stream)) {
        memset(view, GUARD_PATTERN, block->size);
        memset(view + KN_GUARD_BYTES, POISON, block->requested);
    } else {
        block->is_guarded = enqueue_fills(block, stream) == CL_SUCCESS;
    }
}

/* The zone's bytes, once the block's stream has passed: in the host's view, or copied to `copy`. NULL: unknown. */
static const unsigned char *read_zone(kn_buffer *block, size_t offset, size_t bytes, unsigned char *copy)
{
    const unsigned char *view = host_view(block);
    kn_stream *stream = block->stream;
    const bool is_destroyed = !atomic_load(&stream->id);
    kn_submitter_drain(stream);
    if (view)
        return is_destroyed || kn_stream_is_known_idle(stream) || kn_stream_finish(stream) == CL_SUCCESS ? view + offset
                                                                                                         : NULL;
    cl_command_queue queue = is_destroyed ? stream->device->service : kn_stream_turn(stream).queue;
    const bool blocks = kn_stream_begin_block(stream);
    const cl_int error =
        clEnqueueReadBuffer(queue, block->segment->memory, blocks, block->offset + offset, bytes, copy, 0, NULL, NULL);
    return kn_stream_end_block(stream, queue, blocks, error) == CL_SUCCESS ? copy : NULL;
}

static bool guard_is_whole(kn_buffer *block, size_t offset, size_t bytes)
{
    unsigned char copy[KN_GUARD_BYTES + KN_MIN_BLOCK];
    if (bytes > sizeof copy)
        bytes = sizeof copy;
    const unsigned char *zone = read_zone(block, offset, bytes, copy);
    for (size_t i = 0; zone && i < bytes; i++)
        if (zone[i] != GUARD_PATTERN)
            return false;
    return true;
}

void kn_guard_check(kn_pool *pool, kn_buffer *block)
{
    size_t end = KN_GUARD_BYTES + block->requested;
    if (!block->is_guarded || kn_device_is_lost(kn_buffer_device(block)))
        return;
    for (int i = 0; i < block->num_others; i++)
        kn_stream_finish(block->others[i]);
    if (guard_is_whole(block, 0, KN_GUARD_BYTES) && guard_is_whole(block, end, block->size - end))
        return;
    pool->figures.guard_violations++;
    kn_log_message(KN_LOG_ERROR, "a kernel wrote outside a buffer of %zu bytes on %s", block->requested,
                   kn_buffer_device(block)->label);
}
