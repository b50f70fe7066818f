/* rt/pool_blocks.h - segments and blocks as the pool's files share them. Unless a function says otherwise, the caller
 * holds the pool's lock. */
#ifndef KN_RT_POOL_BLOCKS_H
#define KN_RT_POOL_BLOCKS_H

#include "rt/internal.h"

#define KN_MIB ((size_t)1 << 20)
#define KN_MIN_BLOCK 512        /* every size is a multiple; also NVIDIA's alignment of sub-buffers */
#define KN_SMALL_REQUEST KN_MIB /* requests up to this come from small segments */
#define KN_GUARD_BYTES 512      /* in guard mode, before and after what was asked for */
#define KN_MAX_OTHER_STREAMS 4

struct kn_segment {
    kn_device *device;
    cl_mem memory;
    size_t size;
    bool small;
    kn_mem_pool *owner; /* the private pool whose allocations it serves; NULL: everyone's */
    kn_buffer *first;
    kn_segment *next;
};

struct kn_buffer {
    kn_segment *segment;
    kn_stream *stream;
    size_t offset, size; /* bytes within the segment */
    size_t requested;
    bool is_free;
    kn_buffer *before, *after; /* neighbours within the segment */
    kn_buffer *next_pending;
    kn_event *events[KN_MAX_OTHER_STREAMS]; /* of a pending block: what must pass before it is free */
    kn_stream *others[KN_MAX_OTHER_STREAMS];
    int num_others;
    kn_buffer_watcher *watchers; /* of a live block */
    bool used_widely;            /* by more streams than `others` holds: all of them are waited for when it is freed */
};

static inline size_t kn_round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

/* --- pool_segments.c -------------------------------------------------------------------------- */

/* A free block of the stream and of `owner`'s segments with room for `size` bytes (a multiple of KN_MIN_BLOCK), cut to
 * size where that pays and no longer free. NULL when there is none. */
kn_buffer *kn_pool_take(kn_pool *pool, kn_stream *stream, const kn_mem_pool *owner, size_t size);

/* The same from a new segment of `owner`. KN_ERR_MEMORY, without a message, when the driver refuses or the limit is
 * reached. `room` allows a segment larger than the request, for later ones. */
kn_status kn_pool_take_new(kn_buffer **block, kn_stream *stream, kn_mem_pool *owner, size_t size, bool room);

/* Back to the free blocks, merged with its free neighbours. */
void kn_pool_put(kn_buffer *block);

/* Gives the segments that hold no live block back to the driver; not those of private pools, whose owners count on
 * their addresses. */
void kn_pool_release_unused_segments(kn_pool *pool);

/* --- mem_pool.c ------------------------------------------------------------------------------- */

/* Where an allocation on the stream by the calling thread comes from: the stream's redirection, else the thread's
 * block, else NULL for the ordinary pool. */
kn_mem_pool *kn_mem_pool_for(const kn_stream *stream);

/* --- pool_streams.c --------------------------------------------------------------------------- */

/* Waits for all streams of the device when the block is used by more of them than it can note. */
void kn_pool_settle_wide_use(kn_buffer *block);

/* Frees the block now, or when the other streams that use it are done with it. */
void kn_pool_put_when_unused(kn_pool *pool, kn_buffer *block);

/* Frees the blocks whose other streams are done with them; waits for them if `wait`. */
void kn_pool_process_pending(kn_pool *pool, bool wait);

/* --- pool_watch.c ----------------------------------------------------------------------------- */

/* The block is freed: ends its watches, telling each watcher. */
void kn_pool_tell_watchers(kn_buffer *block);

/* --- pool_guard.c ----------------------------------------------------------------------------- */

/* Sentinels around a new block's bytes, NaN inside. */
void kn_guard_fill(kn_buffer *block, kn_stream *stream);

/* Counts and logs it when the sentinels are no longer whole. */
void kn_guard_check(kn_pool *pool, kn_buffer *block);

#endif
