/* rt/memory/mem_pool.c - private pools: memory only for allocations directed to it.
 *
 * A private pool owns segments of the device's pool. A thread's open KN_MEM_POOL block, or a stream's redirection,
 * selects the pool of an allocation. References are held by the user, open blocks, redirected streams and callers of
 * kn_mem_pool_retain. When the last one is released the segments join the ordinary pool, including blocks still in use.
 * The device's pool lock guards everything here except the thread's current pool. */
#include "base/error.h"
#include "base/fork.h"
#include "base/memory.h"
#include "rt/memory/blocks.h"
#include "rt/stream/deferral.h"
#include "rt/stream/stream_struct.h"

static _Thread_local kn_mem_pool *current[KN_MAX_DEVICES];

kn_mem_pool *kn_mem_pool_new(kn_device *device)
{
    if (!device)
        return kn_fail_argument_null("kn_mem_pool_new", "device"), NULL;
    if (kn_device_is_host(device))
        return kn_fail(KN_ERR_DEVICE, "kn_mem_pool_new: the host has no memory pool; name an OpenCL device"), NULL;
    kn_mem_pool *pool = kn_malloc(sizeof *pool);
    if (!pool)
        return NULL;
    kn_lock(&device->pool->lock);
    *pool = (kn_mem_pool){.device = device, .id = ++device->pool->next_id, .references = 1};
    kn_unlock(&device->pool->lock);
    return pool;
}

kn_mem_pool *kn_mem_pool_retain(kn_mem_pool *pool)
{
    if (pool) {
        kn_lock(&pool->device->pool->lock);
        pool->references++;
        kn_unlock(&pool->device->pool->lock);
    }
    return pool;
}

/* Moves the segment to the ordinary pool, and its free blocks to that pool's tree. */
static void disown(kn_pool *pool, kn_segment *segment)
{
    kn_mem_pool *owner = segment->owner;
    for (kn_buffer *block = segment->first; block; block = block->after)
        if (block->is_free) {
            segment->owner = owner;
            kn_free_remove(pool, block);
            segment->owner = NULL;
            kn_free_insert(pool, block);
        }
    segment->owner = NULL;
}

void kn_mem_pool_release(kn_mem_pool *pool)
{
    if (!pool || kn_is_forked())
        return;
    kn_pool *whole = pool->device->pool;
    kn_lock(&whole->lock);
    bool last = --pool->references == 0;
    for (kn_segment *segment = last ? whole->segments : NULL; segment; segment = segment->next)
        if (segment->owner == pool)
            disown(whole, segment);
    kn_unlock(&whole->lock);
    if (last)
        kn_free(pool);
}

void kn_mem_pool_free(kn_mem_pool *pool) { kn_mem_pool_release(pool); }
kn_device *kn_mem_pool_device(const kn_mem_pool *pool) { return pool->device; }

uint64_t kn_mem_pool_id(const kn_mem_pool *pool)
{
    if (!pool)
        kn_fail_argument_null("kn_mem_pool_id", "pool");
    return pool ? pool->id : 0;
}

int kn_mem_pool_use_count(kn_mem_pool *pool)
{
    if (!pool)
        return kn_fail_argument_null("kn_mem_pool_use_count", "pool"), 0;
    kn_lock(&pool->device->pool->lock);
    int count = pool->references;
    kn_unlock(&pool->device->pool->lock);
    return count;
}

kn_mem_pool_guard kn_mem_pool_enter(kn_mem_pool *pool)
{
    if (!pool) {
        kn_fail_argument_null("KN_MEM_POOL", "pool");
        kn_refuse_work();
        return (kn_mem_pool_guard){0};
    }
    int slot = pool->device->slot;
    kn_mem_pool_guard guard = {.pool = kn_mem_pool_retain(pool), .outer = current[slot]};
    current[slot] = pool;
    return guard;
}

void kn_mem_pool_leave(kn_mem_pool_guard *guard)
{
    if (!guard)
        return;
    if (!guard->pool) {
        kn_accept_work();
        return;
    }
    current[guard->pool->device->slot] = guard->outer;
    kn_mem_pool_release(guard->pool);
}

kn_mem_pool *kn_mem_pool_for(const kn_stream *stream)
{
    kn_mem_pool *redirected = atomic_load(&((kn_stream *)(uintptr_t)stream)->redirected_to);
    return redirected && !kn_stream_captured_elsewhere(stream) ? redirected : current[stream->device->slot];
}

void kn_stream_redirect_allocations(kn_stream *stream, kn_mem_pool *pool)
{
    kn_mem_pool_retain(pool);
    kn_lock(&stream->device->pool->lock);
    kn_mem_pool *before = atomic_exchange(&stream->redirected_to, pool);
    kn_unlock(&stream->device->pool->lock);
    kn_mem_pool_release(before);
}

bool kn_buffer_in_pool(const kn_buffer *buffer, const kn_mem_pool *pool)
{
    kn_pool *whole = buffer->segment->pool;
    kn_lock(&whole->lock);
    bool inside = buffer->segment->owner == pool;
    kn_unlock(&whole->lock);
    return inside;
}
