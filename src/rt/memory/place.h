/* rt/memory/place.h - a buffer's memory object and offset, for enqueueing commands. */
#pragma once

#include "rt/device/opencl.h"
#include "rt/memory/buffer.h"

cl_mem kn_buffer_memory(const kn_buffer *buffer);
size_t kn_buffer_offset(const kn_buffer *buffer); /* in the memory object, in bytes */

/* The memory object's address in kernels that get addresses (cl/common/gathered.clh); NULL where kernels do not. */
char *kn_buffer_start(const kn_buffer *buffer);

/* Its first byte for the host, which may use it between commands without mapping; NULL: it must be mapped. */
void *kn_buffer_shared(const kn_buffer *buffer);
