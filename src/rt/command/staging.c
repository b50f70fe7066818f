/* rt/command/staging.c - a ring of pinned blocks per device. */
#include "rt/command/staging.h"

#include "base/error.h"
#include "base/memory.h"
#include "rt/command/transfer.h"
#include "rt/stream/queue.h"
#include "rt/stream/wait.h"

#define BLOCKS 16
#define SMALL_BLOCK ((size_t)16 << 10) /* labels of batches, scalars; larger blocks are allocated on demand */

struct kn_staging_block {
    kn_pinned *memory;
    size_t size;
    kn_event *copied; /* the copy out of it; NULL: none yet */
    bool taken;
};

struct kn_staging {
    kn_staging_block blocks[BLOCKS];
};

void *kn_staging_data(kn_staging_block *block) { return kn_pinned_data(block->memory); }

static bool is_free(kn_staging_block *block)
{
    return !block->taken && (!block->copied || kn_event_has_passed(block->copied));
}

/* The smallest free block that is large enough; otherwise any free block, to be enlarged. */
static kn_staging_block *find(kn_staging *staging, size_t bytes)
{
    kn_staging_block *best = NULL, *any = NULL;
    for (int i = 0; i < BLOCKS; i++) {
        kn_staging_block *block = &staging->blocks[i];
        if (!is_free(block))
            continue;
        if (block->size >= bytes && (!best || block->size < best->size))
            best = block;
        if (!any || block->size < any->size)
            any = block;
    }
    return best ? best : any;
}

static bool make_large_enough(kn_staging_block *block, kn_device *device, size_t bytes)
{
    if (block->size >= bytes)
        return true;
    size_t size = SMALL_BLOCK;
    while (size < bytes)
        size *= 2;
    kn_pinned_free(block->memory);
    block->memory = NULL;
    block->size = 0;
    if (kn_pinned_alloc(&block->memory, device, size) != KN_OK)
        return false;
    block->size = size;
    return true;
}

kn_staging_block *kn_staging_acquire(kn_device *device, size_t bytes)
{
    if (bytes > KN_STAGED_BYTES)
        return NULL;
    KN_PRESERVE_ERROR; /* without a block the copy waits */
    kn_staging_block *block = NULL;
    kn_lock(&device->staging_lock);
    if (!device->staging)
        device->staging = kn_calloc(1, sizeof *device->staging);
    if (device->staging)
        block = find(device->staging, bytes);
    if (block && !make_large_enough(block, device, bytes))
        block = NULL;
    if (block)
        block->taken = true;
    kn_unlock(&device->staging_lock);
    return block;
}

void kn_staging_release(kn_device *device, kn_staging_block *block, kn_stream *stream)
{
    KN_PRESERVE_ERROR;
    kn_event *copied = NULL;
    if (kn_event_new_recorded(&copied, stream) != KN_OK)
        kn_stream_finish(stream);
    kn_lock(&device->staging_lock);
    kn_event_free(block->copied);
    block->copied = copied;
    block->taken = false;
    kn_unlock(&device->staging_lock);
}
