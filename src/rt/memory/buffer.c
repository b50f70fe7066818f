/* rt/memory/buffer.c - a buffer's size, device and place. */
#include "rt/memory/buffer.h"

#include "rt/memory/blocks.h"
#include "rt/stream/deferral.h"

cl_mem kn_buffer_memory(const kn_buffer *buffer) { return buffer->segment->memory; }
kn_device *kn_buffer_device(const kn_buffer *buffer) { return buffer->segment->device; }
size_t kn_buffer_size(const kn_buffer *buffer) { return buffer->requested; }

size_t kn_buffer_offset(const kn_buffer *buffer)
{
    return buffer->offset + (buffer->segment->pool->guard ? KN_GUARD_BYTES : 0);
}

char *kn_buffer_start(const kn_buffer *buffer) { return buffer->segment->start; }
void *kn_buffer_shared(const kn_buffer *buffer) { return kn_segment_shared(buffer->segment, kn_buffer_offset(buffer)); }

uint64_t kn_buffer_address(const kn_buffer *buffer) { return buffer->segment->address + kn_buffer_offset(buffer); }

void *kn_buffer_native(const kn_buffer *buffer, size_t *byte_offset)
{
    *byte_offset = kn_buffer_offset(buffer);
    return kn_buffer_memory(buffer);
}

bool kn_buffer_claim(kn_buffer *buffer, kn_stream *stream)
{
    kn_stream *none = NULL;
    return atomic_compare_exchange_strong(&buffer->claimant, &none, stream) || none == stream;
}

void kn_buffer_unclaim(kn_buffer *buffer) { atomic_store(&buffer->claimant, NULL); }

kn_stream *kn_buffer_claimant(const kn_buffer *buffer)
{
    return atomic_load_explicit(&((kn_buffer *)(uintptr_t)buffer)->claimant, memory_order_acquire);
}
