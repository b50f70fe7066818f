/* rt/memory/block.c - blocks of the pool for the program's own OpenCL code. A block is a buffer. */
#include <koine/memory.h>

#include "base/error.h"
#include "rt/memory/place.h"
#include "rt/stream/stream_struct.h"

static kn_buffer *buffer_of(const kn_memory_block *block) { return (kn_buffer *)(uintptr_t)block; }

static kn_status check_stream(const kn_stream *stream, const kn_device *device)
{
    if (kn_stream_id(stream) == 0)
        return kn_fail(KN_ERR_STATE, "kn_caching_allocator_alloc: the stream has been freed");
    if (stream->device != device)
        return kn_fail(KN_ERR_DEVICE, "kn_caching_allocator_alloc: the stream is on %s, but the block would be on %s",
                       stream->device->label, device->label);
    return KN_OK;
}

kn_memory_block *kn_caching_allocator_alloc(size_t bytes, kn_device *device, kn_stream *stream)
{
    kn_buffer *buffer;
    if (!device)
        return kn_fail_argument_null("kn_caching_allocator_alloc", "device"), NULL;
    if (!stream && !(stream = kn_stream_current(device)))
        return NULL; /* the host, or a destroyed stream */
    if (check_stream(stream, device) != KN_OK || kn_buffer_alloc(&buffer, stream, bytes) != KN_OK)
        return NULL;
    return (kn_memory_block *)buffer;
}

void kn_caching_allocator_delete(kn_memory_block *block) { kn_buffer_free(buffer_of(block)); }

void *kn_memory_block_object(const kn_memory_block *block)
{
    if (!block)
        kn_fail_argument_null("kn_memory_block_object", "block");
    return block ? kn_buffer_memory(buffer_of(block)) : NULL;
}

size_t kn_memory_block_offset(const kn_memory_block *block)
{
    if (!block)
        kn_fail_argument_null("kn_memory_block_offset", "block");
    return block ? kn_buffer_offset(buffer_of(block)) : 0;
}
