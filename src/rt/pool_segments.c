/* rt/pool_segments.c - segments taken from the driver, and the blocks cut from them: finding, splitting, merging. */
#include "base/memory.h"
#include "rt/lost.h"
#include "rt/pool_blocks.h"

#define SMALL_SEGMENT (2 * KN_MIB)
#define MEDIUM_REQUEST (10 * KN_MIB)
#define MEDIUM_SEGMENT (20 * KN_MIB)
#define LARGE_ROUND (2 * KN_MIB)

static size_t segment_size_for(size_t size, bool room)
{
    if (size <= KN_SMALL_REQUEST)
        return SMALL_SEGMENT;
    return room && size < MEDIUM_REQUEST ? MEDIUM_SEGMENT : kn_round_up(size, LARGE_ROUND);
}

static void release_segment(kn_pool *pool, kn_segment *segment)
{
    pool->figures.reserved -= segment->size;
    pool->figures.segments--;
    clReleaseMemObject(segment->memory);
    kn_free(segment->first);
    kn_free(segment);
}

void kn_pool_release_unused_segments(kn_pool *pool)
{
    for (kn_segment **link = &pool->segments; *link;) {
        kn_segment *segment = *link;
        if (!segment->owner && segment->first->is_free && !segment->first->after) {
            *link = segment->next;
            release_segment(pool, segment);
        } else {
            link = &segment->next;
        }
    }
}

static cl_int create_memory(cl_mem *memory, kn_device *device, size_t size)
{
    cl_int error;
    *memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE, size, NULL, &error);
    return error;
}

static kn_status new_segment(kn_buffer **block, kn_stream *stream, kn_mem_pool *owner, size_t size, bool small)
{
    kn_device *device = stream->device;
    kn_pool *pool = &device->pool;
    cl_int error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    kn_segment *segment = kn_calloc(1, sizeof *segment);
    kn_buffer *whole = kn_calloc(1, sizeof *whole);
    if (!segment || !whole)
        goto failed;
    if (!kn_device_is_lost(device) && (!pool->limit || pool->figures.reserved + size <= pool->limit))
        error = KN_CL(KN_CL_ALLOC, create_memory(&segment->memory, device, size));
    if (error != CL_SUCCESS) {
        kn_device_note_error(device, error, "allocating memory");
        goto failed;
    }
    *segment = (kn_segment){device, segment->memory, size, small, owner, whole, pool->segments};
    *whole = (kn_buffer){.segment = segment, .stream = stream, .size = size, .is_free = true};
    pool->segments = segment;
    pool->figures.segments++;
    pool->figures.driver_allocations++;
    pool->figures.reserved += size;
    if (pool->figures.reserved > pool->figures.peak_reserved)
        pool->figures.peak_reserved = pool->figures.reserved;
    *block = whole;
    return KN_OK;
failed:
    kn_free(segment);
    kn_free(whole);
    return KN_ERR_MEMORY;
}

/* The smallest free block of the stream and the owner that is large enough: best fit keeps large blocks whole. */
static kn_buffer *find_free(kn_pool *pool, kn_stream *stream, const kn_mem_pool *owner, size_t size)
{
    kn_buffer *best = NULL;
    bool small = size <= KN_SMALL_REQUEST;
    for (kn_segment *segment = pool->segments; segment; segment = segment->next) {
        if (segment->small != small || segment->owner != owner)
            continue;
        for (kn_buffer *block = segment->first; block; block = block->after)
            if (block->is_free && block->stream == stream && block->size >= size && (!best || block->size < best->size))
                best = block;
    }
    return best;
}

static void split(kn_buffer *block, size_t size)
{
    size_t rest = block->size - size;
    if (rest < (block->segment->small ? KN_MIN_BLOCK : KN_SMALL_REQUEST + 1))
        return;
    kn_buffer *tail = kn_calloc(1, sizeof *tail);
    if (!tail)
        return; /* the block stays larger than asked: harmless */
    *tail = (kn_buffer){.segment = block->segment,
                        .stream = block->stream,
                        .offset = block->offset + size,
                        .size = rest,
                        .is_free = true,
                        .before = block,
                        .after = block->after};
    if (tail->after)
        tail->after->before = tail;
    block->after = tail;
    block->size = size;
}

kn_buffer *kn_pool_take(kn_pool *pool, kn_stream *stream, const kn_mem_pool *owner, size_t size)
{
    kn_buffer *block = find_free(pool, stream, owner, size);
    if (block) {
        split(block, size);
        block->is_free = false;
    }
    return block;
}

kn_status kn_pool_take_new(kn_buffer **block, kn_stream *stream, kn_mem_pool *owner, size_t size, bool room)
{
    KN_TRY(new_segment(block, stream, owner, segment_size_for(size, room), size <= KN_SMALL_REQUEST));
    split(*block, size);
    (*block)->is_free = false;
    return KN_OK;
}

/* Merges `block` with its right neighbour when both are free. */
static void merge_right(kn_buffer *block)
{
    kn_buffer *right = block->after;
    if (!right || !right->is_free || !block->is_free || right->stream != block->stream)
        return;
    block->size += right->size;
    block->after = right->after;
    if (block->after)
        block->after->before = block;
    kn_free(right);
}

void kn_pool_put(kn_buffer *block)
{
    block->is_free = true;
    merge_right(block);
    if (block->before && block->before->is_free)
        merge_right(block->before);
}
