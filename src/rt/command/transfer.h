/* rt/command/transfer.h - copies between host and device, and on a device.
 *
 * Offsets and sizes in bytes. In stream order. */
#pragma once

#include "rt/memory/buffer.h"

/* waits */
kn_status kn_buffer_read(kn_stream *stream, const kn_buffer *buffer, size_t offset, void *destination, size_t bytes);
/* the source may be reused on return; waits for the stream only if it is larger than KN_STAGED_BYTES */
#define KN_STAGED_BYTES ((size_t)1 << 20)
kn_status kn_buffer_write(kn_stream *stream, kn_buffer *buffer, size_t offset, const void *source, size_t bytes);
kn_status kn_buffer_copy(kn_stream *stream, const kn_buffer *source, size_t source_offset, kn_buffer *destination,
                         size_t destination_offset, size_t bytes);
kn_status kn_buffer_fill(kn_stream *stream, kn_buffer *buffer, size_t offset, const void *pattern, size_t pattern_bytes,
                         size_t bytes);

/* returns at once: do not change the source before a later event has completed */
kn_status kn_buffer_write_pinned(kn_stream *stream, kn_buffer *buffer, size_t offset, kn_pinned *source,
                                 size_t source_offset, size_t bytes);
/* returns at once: the values are valid once a later event has completed */
kn_status kn_buffer_read_pinned(kn_stream *stream, const kn_buffer *buffer, size_t offset, kn_pinned *destination,
                                size_t destination_offset, size_t bytes);

/* On a CPU device, whose memory is the host's (kn_can_map): `bytes` bytes of the buffer, once the stream has come so
 * far; waits, not counted as a host wait. Until the unmapping, in stream order, no command may use them. Memory that is
 * shared (kn_buffer_shared) is not mapped, and does not wait for a stream that is idle. */
bool kn_can_map(const kn_device *device);
kn_status kn_buffer_map(kn_stream *stream, const kn_buffer *buffer, size_t offset, size_t bytes, void **memory);
kn_status kn_buffer_unmap(kn_stream *stream, const kn_buffer *buffer, void *memory);
