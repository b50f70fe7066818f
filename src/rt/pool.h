/* rt/pool.h - the caching memory pool of one device.
 *
 * Memory is taken from the driver in segments and handed out in blocks cut from them, as PyTorch's CUDA allocator does:
 * requests round up to 512 bytes; up to 1 MiB come from 2 MiB segments, up to 10 MiB from 20 MiB segments, larger ones
 * get a segment of their own rounded to 2 MiB. A freed block merges with its free neighbours and serves later requests
 * of the same stream. OpenCL's sub-buffers are not used: a block is a memory object and an offset, which every kernel
 * takes anyway because tensors may be views. */
#ifndef KN_RT_POOL_H
#define KN_RT_POOL_H

#include <CL/cl.h>
#include <koine/memory.h>

#include "base/threads.h"
#include "rt/rt.h"

typedef struct kn_segment kn_segment;

typedef struct kn_pool_figures {
    uint64_t allocated, peak_allocated; /* bytes in live blocks */
    uint64_t reserved, peak_reserved;   /* bytes taken from the driver */
    uint64_t blocks, peak_blocks;       /* live blocks */
    uint64_t segments;
    uint64_t allocations;        /* calls so far */
    uint64_t driver_allocations; /* of which the driver was asked */
    uint64_t retries;            /* times the cache was emptied because the driver refused */
    uint64_t guard_violations;   /* writes outside a buffer found in guard mode */
} kn_pool_figures;

typedef struct kn_pool {
    kn_mutex lock;
    kn_segment *segments;
    kn_buffer *pending; /* freed blocks that another stream may still be using */
    kn_pool_figures figures;
    uint64_t limit; /* bytes that may be reserved (KOINE_MEMORY_LIMIT); 0: what the driver gives */
    bool guard;     /* KOINE_GUARD=1: sentinels around every buffer, NaN inside new ones, checked at free */
} kn_pool;

/* --- private pools; koine/memory.h has the public part -------------------------------------------- */

/* One more reference to a private pool, and one less. The last one gone, its memory joins the ordinary pool: work that
 * other streams still do in its free blocks must have passed by then. NULL allowed. */
kn_mem_pool *kn_mem_pool_retain(kn_mem_pool *pool);
void kn_mem_pool_release(kn_mem_pool *pool);
kn_device *kn_mem_pool_device(const kn_mem_pool *pool);

/* From now on every allocation on the stream, by any thread, comes from `pool` (of the same device), whatever the
 * thread's own block says; NULL ends it. Holds a reference. */
void kn_stream_redirect_allocations(kn_stream *stream, kn_mem_pool *pool);

/* Does the buffer's memory belong to the private pool? NULL stands for the ordinary pool. */
bool kn_buffer_in_pool(const kn_buffer *buffer, const kn_mem_pool *pool);

/* --- watching a buffer ---------------------------------------------------------------------------- *
 * Whoever keeps a buffer's address without owning it (a recorded launch) is told when the buffer is freed. Put the
 * watcher into a larger struct; zero but for `freed`. */

typedef struct kn_buffer_watcher kn_buffer_watcher;
struct kn_buffer_watcher {
    /* Called once, when the buffer is freed, which ends the watch. By the freeing thread, with the pool locked: set a
     * flag, call nothing of the pool. */
    void (*freed)(kn_buffer_watcher *watcher);
    kn_device *device; /* the pool's, from here on */
    kn_buffer_watcher *next, **link;
};

/* A buffer takes any number of watchers, a watcher one buffer: KN_ERR_STATE when it has one. Any thread. */
kn_status kn_buffer_watch(kn_buffer *buffer, kn_buffer_watcher *watcher);
void kn_buffer_unwatch(kn_buffer_watcher *watcher); /* nothing happens when it watches none (any more) */

/* --- the pool itself ------------------------------------------------------------------------------ */

void kn_pool_init(kn_pool *pool);
kn_pool_figures kn_pool_read_figures(kn_device *device);
kn_status kn_pool_empty_cache(kn_device *device);

/* The stream is finished and about to go: its blocks pass to the default stream. */
void kn_pool_adopt_stream(kn_device *device, kn_stream *gone);

#endif
