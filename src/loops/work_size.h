/* loops/work_size.h - the number of work-items for a loop. */
#pragma once

#include "rt/rt.h"

/* local 0: chosen by the driver, on CPU devices. */
typedef struct kn_work_size {
    size_t global, local;
} kn_work_size;

/* For `count` cheap elements: a few work-items per core with long loops on CPU devices, elsewhere enough to fill the
 * device. Kernels loop over the rest (KN_FOR). */
kn_work_size kn_work_for(const kn_limits *limits, int64_t count);

/* On CPU devices: the work-items for streaming through `count` elements, each a contiguous part. A few per core, for
 * long tensors more, of some ten thousand elements: then the cores work on neighbouring memory, and none waits long
 * for another at the end. */
size_t kn_streaming_items(const kn_limits *limits, int64_t count);

/* The same for kernels that read and write `bytes` per element: one per core where it finds in its own cache what it
 * wrote in the launch before. */
size_t kn_streaming_items_in_place(const kn_limits *limits, int64_t count, size_t bytes);

/* Should a kernel that reads and writes so many bytes store its results past the caches (cl/common/bypass.clh)? If the
 * largest one cannot hold them all, the first results are gone from it when somebody reads them. */
static inline bool kn_bypasses_caches(const kn_limits *limits, uint64_t bytes)
{
    return limits->is_cpu && limits->global_cache > 0 && bytes > limits->global_cache;
}
