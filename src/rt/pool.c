/* rt/pool.c - the caching memory pool's interface; rt/pool.h tells the policy. */
#include "rt/pool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "rt/lost.h"
#include "rt/pool_blocks.h"

void kn_pool_init(kn_pool *pool)
{
    kn_mutex_init(&pool->lock);
    const char *limit = getenv("KOINE_MEMORY_LIMIT");
    pool->limit = limit ? strtoull(limit, NULL, 10) : 0;
    const char *guard = getenv("KOINE_GUARD");
    pool->guard = guard && strcmp(guard, "0") != 0 && *guard;
}

cl_mem kn_buffer_memory(const kn_buffer *buffer) { return buffer->segment->memory; }
kn_device *kn_buffer_device(const kn_buffer *buffer) { return buffer->segment->device; }
size_t kn_buffer_size(const kn_buffer *buffer) { return buffer->requested; }

size_t kn_buffer_offset(const kn_buffer *buffer)
{
    return buffer->offset + (kn_buffer_device(buffer)->pool.guard ? KN_GUARD_BYTES : 0);
}

static kn_status fail_out_of_memory(kn_device *device, size_t bytes)
{
    char asked[32], used[32], cached[32], total[32];
    const kn_pool_figures *f = &device->pool.figures;
    uint64_t whole = device->pool.limit ? device->pool.limit : device->limits.global_memory;
    kn_format_bytes(asked, sizeof asked, bytes);
    kn_format_bytes(used, sizeof used, f->allocated);
    kn_format_bytes(cached, sizeof cached, f->reserved - f->allocated);
    kn_format_bytes(total, sizeof total, whole);
    return kn_fail(KN_ERR_MEMORY,
                   "out of memory on %s: asked for %s; %s in use, %s cached, %s in all (largest single buffer %" PRIu64
                   " bytes); a smaller batch needs less",
                   device->label, asked, used, cached, total, device->limits.max_allocation);
}

static void count_allocation(kn_pool_figures *f, const kn_buffer *block)
{
    f->allocations++;
    f->blocks++;
    f->allocated += block->size;
    if (f->blocks > f->peak_blocks)
        f->peak_blocks = f->blocks;
    if (f->allocated > f->peak_allocated)
        f->peak_allocated = f->allocated;
}

/* From the cache, else from the driver; when the driver refuses, the cache is given back and it is asked once more, for
 * no more than is needed. */
static kn_status take_block(kn_buffer **block, kn_stream *stream, size_t size)
{
    kn_pool *pool = &stream->device->pool;
    kn_mem_pool *owner = kn_mem_pool_for(stream);
    kn_pool_process_pending(pool, false);
    if ((*block = kn_pool_take(pool, stream, owner, size)) ||
        kn_pool_take_new(block, stream, owner, size, true) == KN_OK)
        return KN_OK;
    pool->figures.retries++;
    kn_pool_process_pending(pool, true);
    kn_stream_finish(stream);
    kn_pool_release_unused_segments(pool);
    return (*block = kn_pool_take(pool, stream, owner, size)) ? KN_OK
                                                              : kn_pool_take_new(block, stream, owner, size, false);
}

kn_status kn_buffer_alloc(kn_buffer **buffer, kn_stream *stream, size_t bytes)
{
    kn_device *device = stream->device;
    kn_pool *pool = &device->pool;
    KN_TRY(kn_device_check_lost(device));
    if (bytes > SIZE_MAX / 4)
        return fail_out_of_memory(device, bytes);
    size_t size = kn_round_up((bytes ? bytes : 1) + (pool->guard ? 2 * KN_GUARD_BYTES : 0), KN_MIN_BLOCK);
    kn_lock(&pool->lock);
    kn_buffer *block;
    kn_status status = take_block(&block, stream, size);
    if (status == KN_OK) {
        block->requested = bytes;
        count_allocation(&pool->figures, block);
        if (pool->guard)
            kn_guard_fill(block, stream);
        *buffer = block;
    } else {
        status = kn_device_is_lost(device) ? kn_device_fail_lost(device) : fail_out_of_memory(device, bytes);
    }
    kn_unlock(&pool->lock);
    return status;
}

void kn_buffer_free(kn_buffer *buffer)
{
    if (!buffer)
        return;
    kn_pool *pool = &kn_buffer_device(buffer)->pool;
    kn_lock(&pool->lock);
    if (buffer->watchers)
        kn_pool_tell_watchers(buffer);
    pool->figures.blocks--;
    pool->figures.allocated -= buffer->size;
    kn_pool_settle_wide_use(buffer);
    if (pool->guard)
        kn_guard_check(pool, buffer);
    kn_pool_put_when_unused(pool, buffer);
    kn_unlock(&pool->lock);
}

kn_pool_figures kn_pool_read_figures(kn_device *device)
{
    kn_lock(&device->pool.lock);
    kn_pool_figures figures = device->pool.figures;
    kn_unlock(&device->pool.lock);
    return figures;
}

kn_status kn_pool_empty_cache(kn_device *device)
{
    kn_pool *pool = &device->pool;
    KN_TRY(kn_synchronize(device));
    kn_lock(&pool->lock);
    kn_pool_process_pending(pool, true);
    kn_pool_release_unused_segments(pool);
    kn_unlock(&pool->lock);
    return KN_OK;
}
