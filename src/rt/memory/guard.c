/* rt/memory/guard.c - guard mode (KOINE_GUARD=1): writes outside a buffer are detected when it is freed. */
#include "base/log.h"
#include "rt/device/fill.h"
#include "rt/memory/blocks.h"
#include "rt/stream/capturing.h"
#include "rt/stream/queue.h"
#include "rt/stream/submit.h"

#define GUARD_PATTERN 0xA5

void kn_guard_fill(kn_buffer *block, kn_stream *stream)
{
    const unsigned char pattern = GUARD_PATTERN, poison = 0xFF;
    cl_mem memory = block->segment->memory;
    block->is_guarded = !kn_stream_has_capture(stream); /* in a graph several blocks may share memory */
    if (!block->is_guarded)
        return;
    kn_submitter_drain(stream);
    const kn_turn turn = kn_stream_turn(stream);
    block->is_guarded =
        kn_fill_enqueue(turn.queue, memory, &pattern, 1, block->offset, block->size, NULL) == CL_SUCCESS;
    kn_fill_enqueue(turn.queue, memory, &poison, 1, block->offset + KN_GUARD_BYTES, block->requested, NULL);
    kn_stream_enqueued(stream, turn, CL_SUCCESS);
}

static bool guard_is_whole(kn_buffer *block, size_t offset, size_t bytes)
{
    unsigned char zone[KN_GUARD_BYTES + KN_MIN_BLOCK];
    if (bytes > sizeof zone)
        bytes = sizeof zone;
    kn_stream *stream = block->stream;
    kn_submitter_drain(stream);
    /* the stream is destroyed */
    cl_command_queue queue = atomic_load(&stream->id) ? kn_stream_turn(stream).queue : stream->device->service;
    const bool blocks = kn_stream_begin_block(stream);
    const cl_int error =
        clEnqueueReadBuffer(queue, block->segment->memory, blocks, block->offset + offset, bytes, zone, 0, NULL, NULL);
    if (kn_stream_end_block(stream, queue, blocks, error) != CL_SUCCESS)
        return true;
    for (size_t i = 0; i < bytes; i++)
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
