/* rt/memory/segments.c - segments taken from the driver, and the blocks cut from them: splitting and merging. */
#include "base/error.h"
#include "base/memory.h"
#include "rt/memory/blocks.h"
#include "rt/stream/queue.h"
#include "rt/stream/submit.h"

#define SMALL_SEGMENT (2 * KN_MIB)
#define MEDIUM_REQUEST (10 * KN_MIB)
#define MEDIUM_SEGMENT (20 * KN_MIB)
#define LARGE_ROUND (2 * KN_MIB)
#define MEDIUM_SHARE 16 /* a medium segment is at most this fraction of what may be reserved */

static size_t segment_size_for(size_t size, kn_segment_kind room)
{
    if (room == KN_SEGMENT_EXACT || room == KN_SEGMENT_FITTING)
        return size;
    if (size <= KN_SMALL_REQUEST)
        return SMALL_SEGMENT;
    return room == KN_SEGMENT_SHARED && size < MEDIUM_REQUEST ? MEDIUM_SEGMENT : kn_round_up(size, LARGE_ROUND);
}

/* --- segments --------------------------------------------------------------------------------- */

static void link_segment(kn_pool *pool, kn_segment *segment)
{
    segment->next = pool->segments;
    segment->link = &pool->segments;
    if (segment->next)
        segment->next->link = &segment->next;
    pool->segments = segment;
}

/* The driver keeps the memory until the work enqueued on it is done. */
static void release_segment(kn_pool *pool, kn_segment *segment)
{
    *segment->link = segment->next;
    if (segment->next)
        segment->next->link = segment->link;
    kn_pool_count_one(pool, segment, KN_STAT_SEGMENT, segment->size, false);
    kn_pool_trace(pool, KN_TRACE_SEGMENT_FREE, segment->first, segment->size);
    pool->figures.driver_frees++;
    kn_driver_free(segment);
    kn_free(segment->first);
    kn_free(segment);
}

void kn_pool_release_unused_segments(kn_pool *pool)
{
    for (kn_segment *segment = pool->segments, *next; segment; segment = next) {
        next = segment->next;
        if (!segment->owner && segment->first->is_free && !segment->first->after) {
            kn_free_remove(pool, segment->first);
            release_segment(pool, segment);
        }
    }
}

/* Addresses are artificial, because OpenCL has none: unique and ascending over all devices. They are outside the
 * process's memory, because systems map nothing above 2^47 (arm64: 2^48) unless a program requests it, and below 2^53,
 * so that snapshots hold them exactly. */
static uint64_t next_address(size_t size)
{
    static atomic_uint_fast64_t next = UINT64_C(1) << 52;
    return atomic_fetch_add(&next, kn_round_up(size, LARGE_ROUND));
}

static kn_status new_segment(kn_buffer **block, kn_stream *stream, kn_mem_pool *owner, size_t size, bool small)
{
    kn_device *device = stream->device;
    kn_pool *pool = device->pool;
    kn_segment *segment = kn_calloc(1, sizeof *segment);
    kn_buffer *whole = kn_calloc(1, sizeof *whole);
    if (segment)
        *segment =
            (kn_segment){.device = device, .pool = pool, .size = size, .small = small, .owner = owner, .first = whole};
    if (!segment || !whole || !kn_driver_alloc(segment)) {
        kn_free(segment);
        kn_free(whole);
        return KN_ERR_MEMORY;
    }
    segment->address = next_address(size);
    *whole = (kn_buffer){.segment = segment, .stream = stream, .size = size};
    link_segment(pool, segment);
    pool->figures.driver_allocations++;
    kn_pool_count_one(pool, segment, KN_STAT_SEGMENT, size, true);
    kn_pool_trace(pool, KN_TRACE_SEGMENT_ALLOC, whole, size);
    *block = whole;
    return KN_OK;
}

/* --- blocks ----------------------------------------------------------------------------------- */

/* Splits off a block's bytes beyond `size` as a free block, if these are large enough to be useful. */
static void split(kn_pool *pool, kn_buffer *block, size_t size)
{
    size_t rest = block->size - size;
    if (rest < (block->segment->small ? KN_MIN_BLOCK : KN_SMALL_REQUEST + 1))
        return;
    KN_PRESERVE_ERROR;
    kn_buffer *tail = kn_calloc(1, sizeof *tail);
    if (!tail)
        return; /* the block stays larger than requested: harmless */
    *tail = (kn_buffer){.segment = block->segment,
                        .stream = block->stream,
                        .offset = block->offset + size,
                        .size = rest,
                        .before = block,
                        .after = block->after};
    if (tail->after)
        tail->after->before = tail;
    block->after = tail;
    block->size = size;
    kn_free_insert(pool, tail);
}

/* A destroyed stream has no work left, so its unused memory is free for any stream. Only whole segments: neighbouring
 * blocks merge, so all blocks of a segment belong to one stream. */
void kn_pool_offer_unused(kn_pool *pool, kn_segment *segment)
{
    kn_buffer *whole = segment->first;
    if (!whole->is_free || whole->after || !whole->stream || atomic_load(&whole->stream->id) != 0)
        return;
    kn_free_remove(pool, whole);
    whole->stream = NULL;
    kn_free_insert(pool, whole);
}

static kn_buffer *take_from(kn_pool *pool, kn_stream *stream, const kn_mem_pool *owner, size_t size, bool small)
{
    kn_buffer *block = kn_free_best_fit(pool, stream, owner, size, small);
    if (!block)
        block = kn_free_best_fit(pool, NULL, owner, size, small); /* of destroyed streams */
    if (block) {
        kn_free_remove(pool, block);
        block->stream = stream;
        split(pool, block, size);
    }
    return block;
}

kn_buffer *kn_pool_alloc_cached(kn_pool *pool, kn_stream *stream, const kn_mem_pool *owner, size_t size)
{
    return take_from(pool, stream, owner, size, size <= KN_SMALL_REQUEST);
}

kn_buffer *kn_pool_alloc_anywhere(kn_pool *pool, kn_stream *stream, const kn_mem_pool *owner, size_t size)
{
    kn_buffer *block = take_from(pool, stream, owner, size, true);
    return block ? block : take_from(pool, stream, owner, size, false);
}

static bool is_unused(const kn_segment *segment, const kn_stream *stream)
{
    const kn_buffer *first = segment->first;
    return !segment->owner && first->is_free && !first->after && (!first->stream || first->stream == stream);
}

/* For a private pool, reuses an unused segment of the ordinary one, which gets the segments of earlier private pools:
 * otherwise short-lived pools, such as graphs', would accumulate. It must not be much larger than needed. Waits for the
 * stream's work in it, because a graph's replays may run on any stream. */
static kn_buffer *take_over(kn_stream *stream, kn_mem_pool *owner, size_t size, bool small)
{
    kn_pool *pool = stream->device->pool;
    kn_segment *best = NULL;
    for (kn_segment *segment = pool->segments; segment; segment = segment->next)
        if (is_unused(segment, stream) && segment->small == small && segment->size >= size &&
            segment->size / 2 <= size && (!best || segment->size < best->size))
            best = segment;
    if (!best)
        return NULL;
    if (best->first->stream)
        kn_stream_finish(stream);
    kn_free_remove(pool, best->first);
    best->first->stream = stream;
    best->owner = owner;
    return best->first;
}

kn_status kn_pool_alloc_new(kn_buffer **block, kn_stream *stream, kn_mem_pool *owner, size_t size, kn_segment_kind room)
{
    /* Under a small limit, segments larger than needed would leave too little. */
    if (room == KN_SEGMENT_SHARED && kn_pool_allowed(stream->device) / MEDIUM_SHARE < MEDIUM_SEGMENT)
        room = KN_SEGMENT_ROUNDED;
    const size_t whole = segment_size_for(size, room);
    const bool small = size <= KN_SMALL_REQUEST;
    *block = owner ? take_over(stream, owner, whole, small) : NULL;
    if (*block) {
        split(stream->device->pool, *block, size);
        return KN_OK;
    }
    KN_TRY(new_segment(block, stream, owner, whole, small));
    (*block)->segment->uncached = room == KN_SEGMENT_EXACT;
    if (room != KN_SEGMENT_EXACT)
        split(stream->device->pool, *block, size);
    return KN_OK;
}

/* Merges the next block into `block`. */
static void merge_right(kn_buffer *block)
{
    kn_buffer *right = block->after;
    block->size += right->size;
    block->after = right->after;
    if (block->after)
        block->after->before = block;
    kn_free(right);
}

void kn_pool_free_block(kn_pool *pool, kn_buffer *block)
{
    kn_pool_count_one(pool, block->segment, KN_STAT_ACTIVE, block->size, false);
    kn_pool_count(pool, block->segment, KN_STAT_REQUESTED_BYTES, block->requested, false);
    kn_pool_trace(pool, KN_TRACE_FREE_COMPLETED, block, block->size);
    block->requested = 0;
    if (block->segment->uncached) {
        kn_submitter_drain(block->stream); /* drivers keep released memory only for commands already enqueued */
        kn_driver_keep(block->segment, block->stream);
        release_segment(pool, block->segment);
        return;
    }
    if (block->after && block->after->is_free) {
        kn_free_remove(pool, block->after);
        merge_right(block);
    }
    if (block->before && block->before->is_free) {
        block = block->before;
        kn_free_remove(pool, block);
        merge_right(block);
    }
    kn_free_insert(pool, block);
    kn_pool_offer_unused(pool, block->segment);
}
