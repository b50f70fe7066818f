/* rt/memory/pool.h - the caching memory pool of one device.
 *
 * Memory is allocated from the driver in segments and divided into blocks, as in PyTorch's CUDA allocator: requests
 * round up to 512 bytes; up to 1 MiB come from 2 MiB segments, up to 10 MiB from 20 MiB segments, larger ones get a
 * separate segment, rounded to 2 MiB. A freed block merges with its free neighbours and serves later requests of the
 * same stream. OpenCL's sub-buffers are not used: a block is a memory object and an offset, which every kernel takes
 * anyway because tensors may be views. */
#pragma once

#include <koine/memory.h>

#include "base/threads.h"
#include "base/treap.h"
#include "rt/memory/buffer.h"
#include "rt/memory/statistics.h"

typedef struct kn_segment kn_segment;

/* What is counted: for all blocks, and separately for those of small and of large segments. First counts, then,
 * KN_STAT_BYTES later, their bytes. */
typedef enum kn_pool_stat {
    KN_STAT_ALLOCATION,     /* blocks handed out */
    KN_STAT_SEGMENT,        /* taken from the driver */
    KN_STAT_ACTIVE,         /* handed out, or freed while another stream still uses them */
    KN_STAT_INACTIVE_SPLIT, /* free, but part of a segment in use, so they cannot go back to the driver */
    KN_STAT_ALLOCATED_BYTES,
    KN_STAT_RESERVED_BYTES,
    KN_STAT_ACTIVE_BYTES,
    KN_STAT_INACTIVE_SPLIT_BYTES,
    KN_STAT_REQUESTED_BYTES, /* requested sizes of active blocks, before rounding */
    KN_POOL_STATS,
    KN_STAT_BYTES = KN_STAT_ALLOCATED_BYTES
} kn_pool_stat;

typedef enum kn_pool_part { KN_PART_ALL, KN_PART_LARGE, KN_PART_SMALL, KN_POOL_PARTS } kn_pool_part;

typedef struct kn_pool_figures {
    kn_statistic stats[KN_POOL_STATS][KN_POOL_PARTS];
    uint64_t driver_allocations, driver_frees;
    uint64_t retries;          /* how often the cache was freed because the driver refused */
    uint64_t ooms;             /* requests that failed */
    uint64_t syncs;            /* waits for all streams */
    uint64_t guard_violations; /* writes outside a buffer found in guard mode */
} kn_pool_figures;

/* The recorded history: what was allocated and freed when. */
typedef enum kn_trace_action {
    KN_TRACE_ALLOC,
    KN_TRACE_FREE_REQUESTED,
    KN_TRACE_FREE_COMPLETED,
    KN_TRACE_SEGMENT_ALLOC,
    KN_TRACE_SEGMENT_FREE,
    KN_TRACE_OOM,
    KN_TRACE_SNAPSHOT,
    KN_TRACE_ACTIONS
} kn_trace_action;

typedef struct kn_trace_entry {
    uint64_t address; /* of KN_TRACE_OOM: the bytes that were still free */
    uint64_t size;
    uint64_t stream; /* 0: the default one */
    uint64_t pool;   /* id of the private pool; 0: the ordinary one */
    int64_t time_us; /* since 1970 */
    kn_trace_action action;
} kn_trace_entry;

/* A growable ring of up to `limit` entries, which overwrites the oldest when full. Zero while nothing is recorded. */
typedef struct kn_memory_trace {
    kn_trace_entry *entries;
    size_t limit, capacity, count;
    size_t next; /* the next slot once it is full */
} kn_memory_trace;

/* The free blocks of the ordinary pool, or of a private one: a tree for large segments and one for small (free.c). */
typedef struct kn_free_blocks {
    kn_treap_node *roots[2];
} kn_free_blocks;

typedef struct kn_pool {
    kn_mutex lock;
    kn_segment *segments;
    kn_free_blocks free_blocks; /* of segments without an owner */
    kn_buffer *pending;         /* freed blocks that another stream may still be using */
    kn_pool_figures figures;
    kn_memory_trace trace;
    uint64_t next_id; /* of private pools */
    uint64_t limit;   /* bytes of the device (KOINE_MEMORY_LIMIT); 0: the driver's value */
    double fraction;  /* the share of it that may be reserved */
    bool guard;       /* KOINE_GUARD=1: sentinels around every buffer, NaN inside new ones, checked at free */
} kn_pool;

/* --- private pools; koine/memory.h has the public part -------------------------------------------- */

/* Adds and drops a reference to a private pool. With the last one its memory joins the ordinary pool: other streams'
 * work in its free blocks must be done by then. NULL allowed. */
kn_mem_pool *kn_mem_pool_retain(kn_mem_pool *pool);
void kn_mem_pool_release(kn_mem_pool *pool);
kn_device *kn_mem_pool_device(const kn_mem_pool *pool);

/* From now on every allocation on the stream, by the thread that captures it or else by any, comes from `pool` (of the
 * same device), even inside a KN_MEM_POOL block; NULL ends it. Holds a reference. */
void kn_stream_redirect_allocations(kn_stream *stream, kn_mem_pool *pool);

/* Does the buffer's memory belong to the private pool? NULL stands for the ordinary pool. */
bool kn_buffer_in_pool(const kn_buffer *buffer, const kn_mem_pool *pool);

/* --- watching a buffer ---------------------------------------------------------------------------- *
 * Notifies a holder of a buffer's address that does not own it (a recorded launch) when the buffer is freed. Embed the
 * watcher in a larger struct, zeroed except for `freed`. */

typedef struct kn_buffer_watcher kn_buffer_watcher;
struct kn_buffer_watcher {
    /* Called once, when the buffer is freed, which ends the watch. By the freeing thread, with the pool locked: only
     * set a flag, do not call the pool. */
    void (*freed)(kn_buffer_watcher *watcher);
    kn_device *device; /* the pool's, from here on */
    kn_buffer_watcher *next, **link;
};

/* A buffer takes any number of watchers, a watcher one buffer: KN_ERR_STATE if it has one already. Any thread. */
kn_status kn_buffer_watch(kn_buffer *buffer, kn_buffer_watcher *watcher);
void kn_buffer_unwatch(kn_buffer_watcher *watcher); /* no effect if it watches none (any more) */

/* --- the pool itself ------------------------------------------------------------------------------ */

/* Makes a pool with the environment's settings; NULL with an error. */
kn_pool *kn_pool_new(void);

kn_pool_figures kn_pool_read_figures(kn_device *device);

/* The device's memory in bytes: KOINE_MEMORY_LIMIT, otherwise the driver's value; and how much may be reserved:
 * UINT64_MAX if the driver decides. */
uint64_t kn_pool_total(const kn_device *device);
uint64_t kn_pool_allowed(const kn_device *device);

/* Waits for the work of all streams, not for callbacks, and frees unused memory to the driver. Reports no errors and
 * does not count as a host wait. Used by the runtime when memory is short. */
void kn_pool_empty_cache(kn_device *device);

/* Frees the device's unused blocks of pinned memory to the driver. */
void kn_pinned_empty_cache(const kn_device *device);

/* A finished stream is being destroyed: any stream may use its segments without live blocks from now on. The others
 * keep belonging to it until their last block is freed, or until another stream reuses the struct. */
void kn_pool_leave_stream(kn_stream *gone);
