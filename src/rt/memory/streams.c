/* rt/memory/streams.c - blocks used by other streams are reused only when those streams are done. */
#include "base/error.h"
#include "rt/memory/blocks.h"
#include "rt/stream/open.h"
#include "rt/stream/queue.h"
#include "rt/stream/wait.h"

void kn_pool_process_pending(kn_pool *pool, bool wait)
{
    KN_PRESERVE_ERROR;
    for (kn_buffer **link = &pool->pending; *link;) {
        kn_buffer *block = *link;
        bool done = true;
        for (int i = 0; i < block->num_others && done; i++)
            done = (wait && kn_event_await(block->events[i]) == KN_OK) || kn_event_has_passed(block->events[i]);
        if (!done) {
            link = &block->next_pending;
            continue;
        }
        *link = block->next_pending;
        for (int i = 0; i < block->num_others; i++)
            kn_event_free(block->events[i]);
        block->num_others = 0;
        block->is_pending = false;
        kn_pool_free_block(pool, block);
    }
}

void kn_pool_settle_wide_use(kn_buffer *block)
{
    if (!block->used_widely)
        return;
    kn_device_finish_streams(kn_buffer_device(block));
    block->used_widely = false;
    block->num_others = 0;
}

void kn_pool_free_when_unused(kn_pool *pool, kn_buffer *block)
{
    int events = 0;
    for (int i = 0; i < block->num_others; i++)
        if (kn_event_new_recorded(&block->events[events], block->others[i]) == KN_OK)
            events++;
        else
            kn_stream_finish(block->others[i]);
    block->num_others = events;
    if (events == 0) {
        kn_pool_free_block(pool, block);
    } else {
        block->is_pending = true;
        block->next_pending = pool->pending;
        pool->pending = block;
    }
}

void kn_buffer_mark_use(const kn_buffer *used, kn_stream *stream)
{
    if (stream == atomic_load_explicit(&used->stream, memory_order_relaxed))
        return;
    kn_buffer *buffer = (kn_buffer *)(uintptr_t)used; /* changes the pool's record, not the memory */
    kn_pool *pool = buffer->segment->pool;
    kn_lock(&pool->lock);
    bool known = false;
    for (int i = 0; i < buffer->num_others; i++)
        known |= buffer->others[i] == stream;
    if (!known && buffer->num_others < KN_MAX_OTHER_STREAMS)
        buffer->others[buffer->num_others++] = stream;
    else if (!known)
        buffer->used_widely = true;
    kn_unlock(&pool->lock);
}

void kn_pool_leave_stream(kn_stream *gone)
{
    kn_pool *pool = gone->device->pool;
    kn_stream_redirect_allocations(gone, NULL);
    kn_lock(&pool->lock);
    kn_pool_process_pending(pool, true);
    for (kn_segment *segment = pool->segments; segment; segment = segment->next) {
        kn_pool_offer_unused(pool, segment);
        for (kn_buffer *block = segment->first; block; block = block->after)
            for (int i = 0; i < block->num_others && !block->is_pending; i++) /* else its events count */
                if (block->others[i] == gone)
                    block->others[i--] = block->others[--block->num_others];
    }
    kn_unlock(&pool->lock);
}
