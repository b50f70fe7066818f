/* rt/pool.c - the caching memory pool; rt/pool.h tells the policy. */
#include "rt/pool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "rt/internal.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)
#define MIN_BLOCK 512     /* every size is a multiple; also NVIDIA's alignment of sub-buffers */
#define SMALL_REQUEST MIB /* requests up to this come from small segments */
#define SMALL_SEGMENT (2 * MIB)
#define MEDIUM_REQUEST (10 * MIB)
#define MEDIUM_SEGMENT (20 * MIB)
#define LARGE_ROUND (2 * MIB)
#define GUARD_BYTES 512
#define GUARD_PATTERN 0xA5
#define MAX_OTHER_STREAMS 4

struct kn_segment {
    kn_device *device;
    cl_mem memory;
    size_t size;
    bool small;
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
    kn_event *events[MAX_OTHER_STREAMS]; /* of a pending block: what must pass before it is free */
    kn_stream *others[MAX_OTHER_STREAMS];
    int num_others;
    bool used_widely; /* by more streams than `others` holds: all of them are waited for when it is freed */
};

static size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

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
    return buffer->offset + (kn_buffer_device(buffer)->pool.guard ? GUARD_BYTES : 0);
}

/* --- segments and blocks; the pool's lock is held --------------------------------------------- */

static size_t segment_size_for(size_t size)
{
    if (size <= SMALL_REQUEST)
        return SMALL_SEGMENT;
    return size < MEDIUM_REQUEST ? MEDIUM_SEGMENT : round_up(size, LARGE_ROUND);
}

static void release_segment(kn_pool *pool, kn_segment *segment)
{
    pool->figures.reserved -= segment->size;
    pool->figures.segments--;
    clReleaseMemObject(segment->memory);
    kn_free(segment->first);
    kn_free(segment);
}

static void release_unused_segments(kn_pool *pool)
{
    for (kn_segment **link = &pool->segments; *link;) {
        kn_segment *segment = *link;
        if (segment->first->is_free && !segment->first->after) {
            *link = segment->next;
            release_segment(pool, segment);
        } else {
            link = &segment->next;
        }
    }
}

static kn_status new_segment(kn_buffer **block, kn_stream *stream, size_t size, bool small)
{
    kn_device *device = stream->device;
    kn_pool *pool = &device->pool;
    cl_int error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    kn_segment *segment = kn_calloc(1, sizeof *segment);
    kn_buffer *whole = kn_calloc(1, sizeof *whole);
    if (!segment || !whole)
        goto failed;
    if (!pool->limit || pool->figures.reserved + size <= pool->limit)
        segment->memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE, size, NULL, &error);
    if (error != CL_SUCCESS)
        goto failed;
    *segment = (kn_segment){device, segment->memory, size, small, whole, pool->segments};
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

/* The smallest free block of the stream that is large enough: best fit keeps large blocks whole. */
static kn_buffer *find_free(kn_pool *pool, kn_stream *stream, size_t size, bool small)
{
    kn_buffer *best = NULL;
    for (kn_segment *segment = pool->segments; segment; segment = segment->next) {
        if (segment->small != small)
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
    if (rest < (block->segment->small ? MIN_BLOCK : SMALL_REQUEST + 1))
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

static void make_free(kn_buffer *block)
{
    block->is_free = true;
    merge_right(block);
    if (block->before && block->before->is_free)
        merge_right(block->before);
}

/* Frees the pending blocks whose other streams are done with them; waits for them if `wait`. */
static void process_pending(kn_pool *pool, bool wait)
{
    for (kn_buffer **link = &pool->pending; *link;) {
        kn_buffer *block = *link;
        bool done = true;
        for (int i = 0; i < block->num_others && done; i++)
            done = wait ? kn_event_synchronize(block->events[i]) == KN_OK : kn_event_has_passed(block->events[i]);
        if (!done) {
            link = &block->next_pending;
            continue;
        }
        *link = block->next_pending;
        for (int i = 0; i < block->num_others; i++)
            kn_event_free(block->events[i]);
        block->num_others = 0;
        make_free(block);
    }
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

/* --- guard mode ------------------------------------------------------------------------------- */

static void guard_fill(kn_buffer *block, kn_stream *stream)
{
    const unsigned char pattern = GUARD_PATTERN, poison = 0xFF;
    cl_mem memory = block->segment->memory;
    clEnqueueFillBuffer(stream->queue, memory, &pattern, 1, block->offset, block->size, 0, NULL, NULL);
    clEnqueueFillBuffer(stream->queue, memory, &poison, 1, block->offset + GUARD_BYTES, block->requested, 0, NULL,
                        NULL);
}

static bool guard_is_whole(kn_buffer *block, size_t offset, size_t bytes)
{
    unsigned char zone[GUARD_BYTES + MIN_BLOCK];
    if (bytes > sizeof zone)
        bytes = sizeof zone;
    if (clEnqueueReadBuffer(block->stream->queue, block->segment->memory, CL_TRUE, block->offset + offset, bytes, zone,
                            0, NULL, NULL) != CL_SUCCESS)
        return true;
    for (size_t i = 0; i < bytes; i++)
        if (zone[i] != GUARD_PATTERN)
            return false;
    return true;
}

static void guard_check(kn_pool *pool, kn_buffer *block)
{
    size_t end = GUARD_BYTES + block->requested;
    for (int i = 0; i < block->num_others; i++)
        clFinish(block->others[i]->queue);
    if (guard_is_whole(block, 0, GUARD_BYTES) && guard_is_whole(block, end, block->size - end))
        return;
    pool->figures.guard_violations++;
    kn_log_message(KN_LOG_ERROR, "a kernel wrote outside a buffer of %zu bytes on %s", block->requested,
                   kn_buffer_device(block)->label);
}

/* --- the interface ---------------------------------------------------------------------------- */

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

kn_status kn_buffer_alloc(kn_buffer **buffer, kn_stream *stream, size_t bytes)
{
    kn_device *device = stream->device;
    kn_pool *pool = &device->pool;
    if (bytes > SIZE_MAX / 4)
        return fail_out_of_memory(device, bytes);
    size_t size = round_up((bytes ? bytes : 1) + (pool->guard ? 2 * GUARD_BYTES : 0), MIN_BLOCK);
    bool small = size <= SMALL_REQUEST;
    kn_lock(&pool->lock);
    process_pending(pool, false);
    kn_buffer *block = find_free(pool, stream, size, small);
    kn_status status = KN_OK;
    if (!block)
        status = new_segment(&block, stream, segment_size_for(size), small);
    if (status != KN_OK) { /* give the cache back, then ask once more, for no more than is needed */
        pool->figures.retries++;
        process_pending(pool, true);
        clFinish(stream->queue);
        release_unused_segments(pool);
        block = find_free(pool, stream, size, small);
        status =
            block ? KN_OK : new_segment(&block, stream, small ? SMALL_SEGMENT : round_up(size, LARGE_ROUND), small);
    }
    if (status == KN_OK) {
        split(block, size);
        block->is_free = false;
        block->requested = bytes;
        count_allocation(&pool->figures, block);
        if (pool->guard)
            guard_fill(block, stream);
        *buffer = block;
    } else {
        status = fail_out_of_memory(device, bytes);
    }
    kn_unlock(&pool->lock);
    return status;
}

static void finish_all_streams(kn_device *device)
{
    kn_lock(&device->lock);
    for (kn_stream *stream = device->streams; stream; stream = stream->next)
        clFinish(stream->queue);
    kn_unlock(&device->lock);
}

void kn_buffer_free(kn_buffer *buffer)
{
    if (!buffer)
        return;
    kn_pool *pool = &kn_buffer_device(buffer)->pool;
    kn_lock(&pool->lock);
    pool->figures.blocks--;
    pool->figures.allocated -= buffer->size;
    if (buffer->used_widely)
        finish_all_streams(kn_buffer_device(buffer));
    buffer->used_widely = false;
    if (pool->guard)
        guard_check(pool, buffer);
    int events = 0;
    for (int i = 0; i < buffer->num_others; i++)
        if (kn_event_record(&buffer->events[events], buffer->others[i]) == KN_OK)
            events++;
        else
            clFinish(buffer->others[i]->queue);
    buffer->num_others = events;
    if (events == 0) {
        make_free(buffer);
    } else {
        buffer->next_pending = pool->pending;
        pool->pending = buffer;
    }
    kn_unlock(&pool->lock);
}

void kn_buffer_mark_use(const kn_buffer *used, kn_stream *stream)
{
    if (stream == used->stream)
        return;
    kn_buffer *buffer = (kn_buffer *)(uintptr_t)used; /* the note is the pool's, not the memory's */
    kn_pool *pool = &kn_buffer_device(buffer)->pool;
    kn_lock(&pool->lock);
    bool known = false;
    for (int i = 0; i < buffer->num_others; i++)
        known |= buffer->others[i] == stream;
    if (!known && buffer->num_others < MAX_OTHER_STREAMS)
        buffer->others[buffer->num_others++] = stream;
    else if (!known)
        buffer->used_widely = true;
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
    process_pending(pool, true);
    release_unused_segments(pool);
    kn_unlock(&pool->lock);
    return KN_OK;
}

void kn_pool_adopt_stream(kn_device *device, kn_stream *gone)
{
    kn_pool *pool = &device->pool;
    kn_lock(&pool->lock);
    process_pending(pool, true);
    for (kn_segment *segment = pool->segments; segment; segment = segment->next)
        for (kn_buffer *block = segment->first; block; block = block->after) {
            if (block->stream == gone)
                block->stream = &device->default_stream;
            for (int i = 0; i < block->num_others; i++)
                if (block->others[i] == gone)
                    block->others[i--] = block->others[--block->num_others];
        }
    kn_unlock(&pool->lock);
}
