/* rt/memory/blocks.h - segments and blocks, shared by the pool's files. Unless stated otherwise, the caller holds the
 * pool's lock. */
#pragma once

#include "rt/memory/place.h"
#include "rt/memory/pool.h"
#include "rt/stream/stream_struct.h"

#define KN_MIB ((size_t)1 << 20)
#define KN_MIN_BLOCK 512        /* every size is a multiple; also NVIDIA's alignment of sub-buffers */
#define KN_SMALL_REQUEST KN_MIB /* requests up to this come from small segments */
#define KN_GUARD_BYTES 512      /* in guard mode, before and after the requested bytes */
#define KN_MAX_OTHER_STREAMS 4

struct kn_segment {
    kn_device *device;
    kn_pool *pool; /* the device's */
    cl_mem memory;
    char *data;                  /* what the host sees of it at any time; NULL: nothing */
    char *start;                 /* its address in kernels, where they get addresses; else NULL */
    kn_pluggable_allocator from; /* the source of the memory; all NULL: the driver */
    size_t size;
    uint64_t address; /* its address in snapshots; also orders by age */
    bool small;
    bool uncached;      /* made for one block and released with it */
    kn_mem_pool *owner; /* the private pool whose allocations it serves; NULL: everyone's */
    kn_buffer *first;
    kn_segment *next, **link; /* the pool's list: the next one, and the pointer to this one */
};

struct kn_buffer {
    kn_segment *segment;
    /* NULL: a whole segment of a destroyed stream, free for any. Written with the lock held, read without it too. */
    _Atomic(kn_stream *) stream;
    size_t offset, size; /* bytes within the segment */
    size_t requested;    /* of a block in use */
    bool is_guarded;     /* in use in guard mode, and not owned by a graph */
    bool is_free;
    bool is_pending;           /* freed, but another stream still uses it */
    bool used_widely;          /* by more streams than `others` holds: freeing it waits for all of the device's */
    kn_buffer *before, *after; /* neighbours within the segment */
    kn_treap_node place;       /* of a free block: in the tree of free.c */
    kn_buffer *next_pending;   /* of a block freed while other streams use it */
    kn_event *events[KN_MAX_OTHER_STREAMS]; /* of a pending block: must pass before it is free */
    kn_stream *others[KN_MAX_OTHER_STREAMS];
    int num_others;
    kn_buffer_watcher *watchers;   /* of a live block */
    _Atomic(kn_stream *) claimant; /* kn_buffer_claim; NULL: none */
};

struct kn_mem_pool {
    kn_device *device;
    uint64_t id; /* from 1 */
    int references;
    kn_free_blocks free_blocks;
};

/* Where the host may read and write the segment's memory at `offset` while no command uses it; NULL: nowhere. */
static inline void *kn_segment_shared(const kn_segment *segment, size_t offset)
{
    return segment->data && segment->device->limits.shares_memory ? segment->data + offset : NULL;
}

static inline size_t kn_round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

/* --- counting --------------------------------------------------------------------------------- */

/* `amount` more of `what`, or fewer. */
static inline void kn_pool_count(kn_pool *pool, const kn_segment *segment, int what, size_t amount, bool more)
{
    const kn_pool_part parts[] = {KN_PART_ALL, segment->small ? KN_PART_SMALL : KN_PART_LARGE};
    for (int i = 0; i < 2; i++)
        (more ? kn_statistic_add : kn_statistic_subtract)(&pool->figures.stats[what][parts[i]], (int64_t)amount);
}

/* One more, or one less, of `what` (KN_STAT_ALLOCATION to KN_STAT_INACTIVE_SPLIT), of that many bytes. */
static inline void kn_pool_count_one(kn_pool *pool, const kn_segment *segment, kn_pool_stat what, size_t bytes,
                                     bool more)
{
    kn_pool_count(pool, segment, what, 1, more);
    kn_pool_count(pool, segment, what + KN_STAT_BYTES, bytes, more);
}

/* --- history.c -------------------------------------------------------------------------------- */

/* "alloc", "free_requested", ...: PyTorch's names. */
const char *kn_trace_action_name(kn_trace_action action);

/* Appends to the recorded history; `block` NULL: the entry has none. */
void kn_trace_append(kn_pool *pool, kn_trace_action action, const kn_buffer *block, const kn_stream *stream,
                     uint64_t size);

/* How traces and snapshots name a stream: 0 for the default one. */
static inline uint64_t kn_stream_trace_id(const kn_stream *stream)
{
    return !stream || stream->is_default ? 0 : atomic_load(&stream->id);
}

static inline void kn_pool_trace(kn_pool *pool, kn_trace_action action, const kn_buffer *block, size_t size)
{
    if (pool->trace.limit > 0)
        kn_trace_append(pool, action, block, block->stream, size);
}

/* --- free.c ----------------------------------------------------------------------------------- */

/* Adds a block to the free ones of its segment's pool, and removes it. Its size, stream and neighbours change only
 * while it is not among them. */
void kn_free_insert(kn_pool *pool, kn_buffer *block);
void kn_free_remove(kn_pool *pool, kn_buffer *block);

/* The smallest sufficient free block of the stream and the owner, in small or in large segments, the oldest among
 * equals: best fit preserves large blocks. NULL if there is none. */
kn_buffer *kn_free_best_fit(kn_pool *pool, const kn_stream *stream, const kn_mem_pool *owner, size_t size, bool small);

/* --- driver.c --------------------------------------------------------------------------------- */

/* Allocates memory for a segment of its size, within the process's limit; false on failure. Frees it. */
bool kn_driver_alloc(kn_segment *segment);
void kn_driver_free(kn_segment *segment);

/* Freed memory is kept for the commands enqueued on the stream so far: for those that are given memory objects, drivers
 * do that, but they do not know what kernels use by its address. */
void kn_driver_keep(const kn_segment *segment, kn_stream *stream);

/* --- segments.c ------------------------------------------------------------------------------- */

/* A free block of the stream and of `owner`'s segments with room for `size` bytes (a multiple of KN_MIN_BLOCK), split
 * if that is worthwhile, and no longer free. NULL if there is none. */
kn_buffer *kn_pool_alloc_cached(kn_pool *pool, kn_stream *stream, const kn_mem_pool *owner, size_t size);

/* The last resort: a small block from a large segment, or a large one from a small. */
kn_buffer *kn_pool_alloc_anywhere(kn_pool *pool, kn_stream *stream, const kn_mem_pool *owner, size_t size);

/* The same from a new segment of `owner`. KN_ERR_MEMORY, without a message, when the driver refuses or the limit is
 * reached. */
typedef enum kn_segment_kind {
    KN_SEGMENT_EXACT,   /* a segment for this block alone, released with it */
    KN_SEGMENT_FITTING, /* as large as the block, but kept when it is freed */
    KN_SEGMENT_ROUNDED, /* only rounded up */
    KN_SEGMENT_SHARED   /* a larger segment, from which later requests are served */
} kn_segment_kind;
kn_status kn_pool_alloc_new(kn_buffer **block, kn_stream *stream, kn_mem_pool *owner, size_t size,
                            kn_segment_kind room);

/* If the segment belongs to a destroyed stream and is entirely free, any stream may use it from now on. */
void kn_pool_offer_unused(kn_pool *pool, kn_segment *segment);

/* Returns a block to the free ones, merged with its free neighbours. */
void kn_pool_free_block(kn_pool *pool, kn_buffer *block);

/* Frees segments without live blocks to the driver; not those of private pools, whose owners rely on their
 * addresses. */
void kn_pool_release_unused_segments(kn_pool *pool);

/* --- mem_pool.c ------------------------------------------------------------------------------- */

/* The private pool for an allocation on the stream by the calling thread: the stream's redirection, otherwise the
 * thread's block, otherwise NULL for the ordinary pool. */
kn_mem_pool *kn_mem_pool_for(const kn_stream *stream);

/* --- streams.c -------------------------------------------------------------------------------- */

/* Waits for all streams if more use the block than it can record. */
void kn_pool_settle_wide_use(kn_buffer *block);

/* Frees the block now, or once the other streams that use it are done. */
void kn_pool_free_when_unused(kn_pool *pool, kn_buffer *block);

/* Frees the blocks whose other streams are done; waits for them if `wait`. */
void kn_pool_process_pending(kn_pool *pool, bool wait);

/* --- watchers.c ------------------------------------------------------------------------------- */

/* The block is freed: notifies and removes its watchers. */
void kn_pool_tell_watchers(kn_buffer *block);

/* --- guard.c ---------------------------------------------------------------------------------- */

/* Sentinels around a new block's bytes, NaN inside. */
void kn_guard_fill(kn_buffer *block, kn_stream *stream);

/* Checks the sentinels; counts and logs it if they were overwritten. */
void kn_guard_check(kn_pool *pool, kn_buffer *block);
