/* rt/memory/buffer.h - device memory, for all layers.
 *
 * A buffer is a block of memory from the device's caching pool. It belongs to the stream that it was allocated on: once
 * freed, later work on that stream may reuse it immediately. Launches and transfers on other streams are recorded, and
 * the block waits for them before it is reused. */
#pragma once

#include <koine/status.h>
#include <stdint.h>

typedef struct kn_buffer kn_buffer;

/* 0 bytes gives a valid, minimal buffer */
kn_status kn_buffer_alloc(kn_buffer **buffer, kn_stream *stream, size_t bytes);
void kn_buffer_free(kn_buffer *buffer); /* NULL allowed */
kn_device *kn_buffer_device(const kn_buffer *buffer);
size_t kn_buffer_size(const kn_buffer *buffer);

/* Where a buffer is: its memory object (a cl_mem) and its first byte in it. */
void *kn_buffer_native(const kn_buffer *buffer, size_t *byte_offset);

/* The address of its first byte in snapshots, outside the process's address space (segments.c). */
uint64_t kn_buffer_address(const kn_buffer *buffer);

/* Notes that `stream` uses the buffer, if it is not the buffer's own. */
void kn_buffer_mark_use(const kn_buffer *buffer, kn_stream *stream);

/* Pinned host memory: the device copies from it without staging by the driver (mapped CL_MEM_ALLOC_HOST_PTR). */
typedef struct kn_pinned kn_pinned;
kn_status kn_pinned_alloc(kn_pinned **pinned, kn_device *device, size_t bytes);
void *kn_pinned_data(kn_pinned *pinned);
void kn_pinned_free(kn_pinned *pinned); /* NULL allowed; no copy from it may be in flight */
