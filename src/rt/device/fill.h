/* rt/device/fill.h - filling memory with a pattern. */
#pragma once

#include "rt/device/opencl.h"

/* Enqueues a fill in pieces: NVIDIA's driver hangs or fails at 2 GiB and more
 * (https://github.com/inducer/pyopencl/issues/395, https://github.com/inducer/pyopencl/issues/396). `event` is the last
 * piece's, or NULL. */
cl_int kn_fill_enqueue(cl_command_queue queue, cl_mem memory, const void *pattern, size_t pattern_bytes, size_t offset,
                       size_t bytes, cl_event *event);

/* Fills the host's memory. */
void kn_fill_memory(void *memory, const void *pattern, size_t pattern_bytes, size_t bytes);
