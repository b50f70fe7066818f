/* koine/memory.h - the caching memory pool of each device, with torch.cuda's figures. All functions are thread-safe;
 * bytes throughout. */
#ifndef KOINE_MEMORY_H
#define KOINE_MEMORY_H

#include <koine/common.h>
#include <koine/status.h>

KN_BEGIN_DECLS

/* Free and total memory of the device. Where the driver cannot tell what is free (plain OpenCL cannot), free is the
 * total less what this process has reserved. */
KN_API kn_status kn_mem_get_info(kn_device *device, uint64_t *free_bytes, uint64_t *total_bytes);

KN_API uint64_t kn_memory_allocated(kn_device *device);     /* held by live tensors */
KN_API uint64_t kn_max_memory_allocated(kn_device *device); /* the peak of that since start or reset */
KN_API uint64_t kn_memory_reserved(kn_device *device);      /* taken from the driver, in use or cached */
KN_API uint64_t kn_max_memory_reserved(kn_device *device);
KN_API void kn_reset_peak_memory_stats(kn_device *device);

/* Gives the cached memory that no tensor uses back to the driver. */
KN_API kn_status kn_empty_cache(kn_device *device);

/* --- private pools ---------------------------------------------------------------------------- *
 * torch.cuda.MemPool: memory that serves only the allocations directed to it, so that what is freed inside is not
 * handed to others. Graphs replay into one; phases with sizes of their own keep the ordinary pool from breaking up. */

typedef struct kn_mem_pool kn_mem_pool;

/* Makes an empty private pool of an OpenCL device; the caller destroys it. */
KN_API kn_status kn_mem_pool_create(kn_mem_pool **pool, kn_device *device);

/* Gives the pool up. Its free memory joins the ordinary pool (kn_empty_cache gives it back to the driver); tensors in
 * it stay valid and their memory joins the ordinary pool when they are freed. A pool still in use by a KN_MEM_POOL
 * block or a graph goes when that ends. NULL allowed. */
KN_API void kn_mem_pool_destroy(kn_mem_pool *pool);

/* Inside the block, what the calling thread allocates on the pool's device comes from the pool. Blocks nest; other
 * threads are not touched. It ends however the block is left (see KN_SCOPE). NULL sets an error that sticks, and the
 * block is not run.
 *
 *     KN_MEM_POOL(pool) { y = kn_retain(kn_forward(net, x)); }
 */
#define KN_MEM_POOL(pool) KN_MEM_POOL_NAMED(pool, KN_UNIQUE(kn_mem_pool_))
#define KN_MEM_POOL_NAMED(pool_, name)                                                                                 \
    for (kn_mem_pool_use name KN_CLEANUP(kn_mem_pool_leave) = kn_mem_pool_enter(pool_); name.pool;                     \
         kn_mem_pool_leave(&name))

/* What the macro is made of: one leave per enter, in reverse order, on the same thread. */
typedef struct kn_mem_pool_use {
    kn_mem_pool *pool, *outer;
} kn_mem_pool_use;
KN_API kn_mem_pool_use kn_mem_pool_enter(kn_mem_pool *pool);
KN_API void kn_mem_pool_leave(kn_mem_pool_use *use);

/* --- tables ----------------------------------------------------------------------------------- */

/* A table of the figures, as text; the caller frees it with kn_free. NULL with an error on failure. */
KN_API char *kn_memory_summary(kn_device *device);

KN_END_DECLS

#endif
