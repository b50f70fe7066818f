/* rt/pool.h - the caching memory pool of one device.
 *
 * Memory is taken from the driver in segments and handed out in blocks cut from them, as PyTorch's CUDA allocator does:
 * requests round up to 512 bytes; up to 1 MiB come from 2 MiB segments, up to 10 MiB from 20 MiB segments, larger ones
 * get a segment of their own rounded to 2 MiB. A freed block merges with its free neighbours and serves later requests
 * of the same stream. OpenCL's sub-buffers are not used: a block is a memory object and an offset, which every kernel
 * takes anyway because tensors may be views. */
#ifndef KN_RT_POOL_H
#define KN_RT_POOL_H

#include <CL/cl.h>

#include "base/threads.h"
#include "rt/rt.h"

typedef struct kn_segment kn_segment;

typedef struct kn_pool_figures {
    uint64_t allocated, peak_allocated; /* bytes in live blocks */
    uint64_t reserved, peak_reserved;   /* bytes taken from the driver */
    uint64_t blocks, peak_blocks;       /* live blocks */
    uint64_t segments;
    uint64_t allocations;        /* calls so far */
    uint64_t driver_allocations; /* of which the driver was asked */
    uint64_t retries;            /* times the cache was emptied because the driver refused */
    uint64_t guard_violations;   /* writes outside a buffer found in guard mode */
} kn_pool_figures;

typedef struct kn_pool {
    kn_mutex lock;
    kn_segment *segments;
    kn_buffer *pending; /* freed blocks that another stream may still be using */
    kn_pool_figures figures;
    uint64_t limit; /* bytes that may be reserved (KOINE_MEMORY_LIMIT); 0: what the driver gives */
    bool guard;     /* KOINE_GUARD=1: sentinels around every buffer, NaN inside new ones, checked at free */
} kn_pool;

void kn_pool_init(kn_pool *pool);
kn_pool_figures kn_pool_read_figures(kn_device *device);
kn_status kn_pool_empty_cache(kn_device *device);

/* The stream is finished and about to go: its blocks pass to the default stream. */
void kn_pool_adopt_stream(kn_device *device, kn_stream *gone);

#endif
