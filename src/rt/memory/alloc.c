/* rt/memory/alloc.c - allocating and freeing buffers, and handling of short memory. */
#include <inttypes.h>
#include <stdio.h>

#include "base/fork.h"
#include "base/text.h"
#include "rt/device/lost.h"
#include "rt/memory/blocks.h"
#include "rt/stream/deferral.h"
#include "rt/stream/open.h"

/* torch.cuda.caching_allocator_enable: when off, each block is allocated from the driver and returned to it. */
static atomic_bool caching = true;

void kn_caching_allocator_enable(bool enabled) { atomic_store(&caching, enabled); }
bool kn_caching_allocator_is_enabled(void) { return atomic_load(&caching); }
const char *kn_get_allocator_backend(void) { return "native"; }

static uint64_t bytes_now(const kn_pool *pool, kn_pool_stat what)
{
    return (uint64_t)pool->figures.stats[what][KN_PART_ALL].current;
}

static kn_status fail_out_of_memory(kn_stream *stream, size_t bytes)
{
    kn_device *device = stream->device;
    kn_pool *pool = device->pool;
    uint64_t used = bytes_now(pool, KN_STAT_ACTIVE_BYTES), reserved = bytes_now(pool, KN_STAT_RESERVED_BYTES);
    uint64_t total = kn_pool_total(device), allowed = kn_pool_allowed(device);
    char asked_text[32], used_text[32], cached_text[32], total_text[32], allowed_text[32], share[80] = "";
    char largest[160] = "";
    const uint64_t most = device->limits.max_allocation;
    const char *remedy = kn_device_larger_buffers(device);
    if (pool->fraction < 1)
        snprintf(share, sizeof share, ", of which this process may have %s",
                 kn_format_bytes(allowed_text, sizeof allowed_text, allowed));
    if (!device->quirks.gives_larger_buffers)
        snprintf(largest, sizeof largest, " (largest single buffer %" PRIu64 " bytes%s%s)", most,
                 remedy && bytes > most ? "; " : "", remedy && bytes > most ? remedy : "");
    pool->figures.ooms++;
    if (pool->trace.limit > 0)
        kn_trace_append(pool, KN_TRACE_OOM, NULL, stream, bytes);
    return kn_fail(KN_ERR_MEMORY,
                   "out of memory on %s: asked for %s; %s in use, %s cached, %s in all%s%s; a smaller batch needs less",
                   device->label, kn_format_bytes(asked_text, sizeof asked_text, bytes),
                   kn_format_bytes(used_text, sizeof used_text, used),
                   kn_format_bytes(cached_text, sizeof cached_text, reserved - used),
                   kn_format_bytes(total_text, sizeof total_text, total), share, largest);
}

/* Waits for queued work, so that its memory is freed, too. */
static void empty_locked(kn_device *device)
{
    KN_PRESERVE_ERROR;
    kn_pool *pool = device->pool;
    pool->figures.syncs++;
    kn_device_finish_streams(device);
    kn_pool_process_pending(pool, true);
    kn_pool_release_unused_segments(pool);
}

/* After a failed driver allocation, or at the limit: frees the cache and tries again, at last with exactly the size
 * needed. */
static kn_status retry(kn_buffer **block, kn_stream *stream, kn_mem_pool *owner, size_t size, kn_segment_kind room)
{
    kn_pool *pool = stream->device->pool;
    pool->figures.retries++;
    empty_locked(stream->device);
    if (room != KN_SEGMENT_EXACT && (*block = kn_pool_alloc_cached(pool, stream, owner, size)))
        return KN_OK;
    if (room == KN_SEGMENT_EXACT)
        return kn_pool_alloc_new(block, stream, owner, size, room);
    {
        KN_PRESERVE_ERROR;
        if (kn_pool_alloc_new(block, stream, owner, size, KN_SEGMENT_ROUNDED) == KN_OK ||
            kn_pool_alloc_new(block, stream, owner, size, KN_SEGMENT_FITTING) == KN_OK)
            return KN_OK;
    }
    *block = kn_pool_alloc_anywhere(pool, stream, owner, size);
    return *block ? KN_OK : KN_ERR_MEMORY;
}

static kn_status take_block(kn_buffer **block, kn_stream *stream, size_t size)
{
    kn_pool *pool = stream->device->pool;
    kn_mem_pool *owner = kn_mem_pool_for(stream);
    /* A private pool keeps its addresses, so it always caches. */
    kn_segment_kind room =
        owner || atomic_load_explicit(&caching, memory_order_relaxed) ? KN_SEGMENT_SHARED : KN_SEGMENT_EXACT;
    if (pool->pending)
        kn_pool_process_pending(pool, false);
    if (room != KN_SEGMENT_EXACT && (*block = kn_pool_alloc_cached(pool, stream, owner, size)))
        return KN_OK;
    {
        KN_PRESERVE_ERROR;
        if (kn_pool_alloc_new(block, stream, owner, size, room) == KN_OK)
            return KN_OK;
    }
    return retry(block, stream, owner, size, room);
}

kn_status kn_buffer_alloc(kn_buffer **buffer, kn_stream *stream, size_t bytes)
{
    kn_pool *pool = stream->device->pool;
    KN_TRY(kn_device_check_lost(stream->device));
    size_t size = bytes > SIZE_MAX / 4 /* no rounding up from there */
                      ? 0
                      : kn_round_up((bytes ? bytes : 1) + (pool->guard ? 2 * KN_GUARD_BYTES : 0), KN_MIN_BLOCK);
    kn_lock(&pool->lock);
    kn_buffer *block;
    kn_status status = size ? take_block(&block, stream, size) : KN_ERR_MEMORY;
    if (status == KN_OK) {
        block->requested = bytes;
        kn_pool_count_one(pool, block->segment, KN_STAT_ALLOCATION, block->size, true);
        kn_pool_count_one(pool, block->segment, KN_STAT_ACTIVE, block->size, true);
        kn_pool_count(pool, block->segment, KN_STAT_REQUESTED_BYTES, bytes, true);
        kn_pool_trace(pool, KN_TRACE_ALLOC, block, block->size);
        if (pool->guard)
            kn_guard_fill(block, stream);
        *buffer = block;
    } else {
        status =
            kn_device_is_lost(stream->device) ? kn_device_fail_lost(stream->device) : fail_out_of_memory(stream, bytes);
    }
    kn_unlock(&pool->lock);
    return status;
}

void kn_buffer_free(kn_buffer *buffer)
{
    if (!buffer || kn_is_forked())
        return;
    KN_PRESERVE_ERROR; /* if other streams' use cannot be marked, waits for them */
    kn_stream *claimant = kn_buffer_claimant(buffer);
    kn_deferral *deferral = claimant ? kn_stream_deferral(claimant) : NULL;
    if (deferral && deferral->keeps(deferral, buffer))
        return;
    kn_pool *pool = buffer->segment->pool;
    kn_lock(&pool->lock);
    if (buffer->watchers)
        kn_pool_tell_watchers(buffer);
    kn_pool_count_one(pool, buffer->segment, KN_STAT_ALLOCATION, buffer->size, false);
    kn_pool_trace(pool, KN_TRACE_FREE_REQUESTED, buffer, buffer->size);
    kn_pool_settle_wide_use(buffer);
    if (pool->guard)
        kn_guard_check(pool, buffer);
    kn_pool_free_when_unused(pool, buffer);
    kn_unlock(&pool->lock);
}

void kn_pool_empty_cache(kn_device *device)
{
    kn_lock(&device->pool->lock);
    empty_locked(device);
    kn_unlock(&device->pool->lock);
}
