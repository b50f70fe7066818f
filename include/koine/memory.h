/* koine/memory.h - the caching memory pool of each device, with torch.cuda's figures. All functions are thread-safe;
 * bytes throughout. */
#ifndef KOINE_MEMORY_H
#define KOINE_MEMORY_H

#include <koine/common.h>
#include <koine/status.h>

KN_BEGIN_DECLS

/* Free and total memory of the device. Total is what the driver says, or KOINE_MEMORY_LIMIT (bytes) where that is set.
 * Free is the total less what this process has reserved, or the driver's word where it has one (AMD's do) and that is
 * less: core OpenCL cannot tell what others use. */
KN_API kn_status kn_mem_get_info(kn_device *device, uint64_t *free_bytes, uint64_t *total_bytes);

/* All return 0, with an error, for NULL. */
KN_API uint64_t kn_memory_allocated(kn_device *device);     /* held by live tensors */
KN_API uint64_t kn_max_memory_allocated(kn_device *device); /* the peak of that since start or reset */
KN_API uint64_t kn_memory_reserved(kn_device *device);      /* taken from the driver, in use or cached */
KN_API uint64_t kn_max_memory_reserved(kn_device *device);

/* Gives the cached memory that no tensor uses back to the driver, pinned host memory too. Waits for the device's work.
 * Memory of private pools stays. */
KN_API kn_status kn_empty_cache(kn_device *device);

/* The process may reserve this part of the device's total memory (of KOINE_MEMORY_LIMIT where that is set): above 0, at
 * most 1, which it is from the start. A limit below what is reserved already frees nothing by itself; the next request
 * that needs the driver gives the cache back and fails if that is not enough. */
KN_API kn_status kn_set_per_process_memory_fraction(kn_device *device, double fraction);
KN_API double kn_get_per_process_memory_fraction(kn_device *device);

/* --- figures ---------------------------------------------------------------------------------- *
 * torch.cuda.memory_stats's keys: WHAT.POOL.METRIC with
 *
 *   WHAT    allocation, segment, active, inactive_split, and in bytes allocated_bytes, reserved_bytes, active_bytes,
 *           inactive_split_bytes, requested_bytes
 *   POOL    all, large_pool, small_pool (requests up to 1 MiB)
 *   METRIC  current, peak, allocated (all that was ever added), freed (all that was ever taken away)
 *
 * and num_alloc_retries, num_ooms, num_device_alloc, num_device_free, num_sync_all_streams; max_split_size is -1 and
 * the oversize_* figures are 0, as in PyTorch unless it is told otherwise. */

#define KN_MEMORY_STAT_KEY 48 /* room for the longest key */
#define KN_MEMORY_STATS 128   /* room for all of them */

typedef struct kn_memory_stat_entry {
    char key[KN_MEMORY_STAT_KEY];
    int64_t value;
} kn_memory_stat_entry;

/* Writes up to `capacity` figures in the order of their keys, all of one moment; returns how many there are, 0 with an
 * error for a NULL device. */
KN_API int kn_memory_stats(kn_device *device, kn_memory_stat_entry *entries, int capacity);

/* One of them: kn_memory_stat(device, "allocated_bytes.all.peak", &value). KN_ERR_ARGUMENT for a key there is not. */
KN_API kn_status kn_memory_stat(kn_device *device, const char *key, int64_t *value);

KN_API void kn_reset_peak_memory_stats(kn_device *device);        /* every .peak becomes its .current */
KN_API void kn_reset_accumulated_memory_stats(kn_device *device); /* .allocated, .freed and the num_ figures become 0 */

/* The figures as the table that PyTorch prints. The caller frees the text with kn_free; NULL with an error on failure.
 * Abbreviated, it lacks the rows of the large and the small pool. */
KN_API char *kn_memory_summary(kn_device *device);
KN_API char *kn_memory_summary_abbreviated(kn_device *device);

/* --- pinned host memory ----------------------------------------------------------------------- *
 * The blocks through which batches go to all devices. torch.cuda.host_memory_stats's keys: WHAT.METRIC with
 *
 *   WHAT    allocations and allocated_bytes (blocks that the driver gave, in use or kept for later),
 *           active_requests and active_bytes (those in use; sizes are rounded up to powers of two)
 *
 *   METRIC  current, peak, allocated, freed
 *
 * and num_host_alloc, num_host_free. */
KN_API int kn_host_memory_stats(kn_memory_stat_entry *entries, int capacity); /* as kn_memory_stats */
KN_API kn_status kn_host_memory_stat(const char *key, int64_t *value);        /* as kn_memory_stat */
KN_API void kn_reset_peak_host_memory_stats(void);
KN_API void kn_reset_accumulated_host_memory_stats(void);

/* --- what happened when ----------------------------------------------------------------------- */

/* From now on the last `max_entries` allocations, frees and driver calls are recorded, for snapshots; what was recorded
 * before is forgotten. 0 ends it. About 50 bytes of host memory each. */
KN_API kn_status kn_memory_record_history(kn_device *device, size_t max_entries);

/* Writes the pool as it stands, and the recorded history, as JSON in the form of torch.cuda.memory._snapshot:
 * "segments" with their blocks (state active_allocated, active_pending_free or inactive), "device_traces" with the
 * actions alloc, free_requested, free_completed, segment_alloc, segment_free, oom and snapshot; times in microseconds
 * since 1970, addresses the pool's own (OpenCL tells none), stream 0 the default one. */
KN_API kn_status kn_memory_snapshot(kn_device *device, const char *path);

/* Draws allocated and reserved memory over the recorded history, as .svg or .png by gnuplot (KN_ERR_IO naming the
 * package where it is missing): of the device now, or of a snapshot written before. KN_ERR_STATE when nothing was
 * recorded. */
KN_API kn_status kn_memory_save_plot(kn_device *device, const char *path);
KN_API kn_status kn_memory_snapshot_save_plot(const char *snapshot_path, const char *path);

/* A snapshot's figures, fragmentation among them, as text; the caller frees it with kn_free. NULL with an error when
 * the file is no snapshot. */
KN_API char *kn_memory_snapshot_summary(const char *snapshot_path);

/* --- the allocator as such -------------------------------------------------------------------- */

/* Off, each block is a buffer of its own, from the driver and back to it; for looking for leaks and wild writes with
 * the driver's tools. On from the start. For the whole process; blocks that live keep what they have. */
KN_API void kn_caching_allocator_enable(bool enabled);
KN_API bool kn_caching_allocator_is_enabled(void);

KN_API const char *kn_get_allocator_backend(void); /* "native" */

/* Where the pool's segments come from (torch.cuda.memory.CUDAPluggableAllocator). Both functions are called with the
 * pool locked, by any thread: they may call OpenCL, but nothing of Koine. The struct is copied. */
typedef struct kn_pluggable_allocator {
    /* a cl_mem of the cl_context; NULL when there is no memory */
    void *(*allocate)(void *user, kn_device *device, void *context, size_t bytes);
    /* work enqueued may still use it: clReleaseMemObject takes care of that */
    void (*release)(void *user, kn_device *device, void *memory);
    void *user;
} kn_pluggable_allocator;

/* For all devices, from now on; NULL: the driver again. KN_ERR_STATE while a device has memory reserved. */
KN_API kn_status kn_change_current_allocator(const kn_pluggable_allocator *allocator);

/* Memory from the pool for OpenCL code of one's own (torch.cuda.caching_allocator_alloc): a block of at least `bytes`
 * bytes, for work on `stream`. It is part of a memory object; kernels take that and the offset. `stream` NULL: the
 * calling thread's current one of `device`. KN_ERR_MEMORY when there is none left. */
typedef struct kn_memory_block kn_memory_block;
KN_API kn_status kn_caching_allocator_alloc(kn_memory_block **block, size_t bytes, kn_device *device,
                                            kn_stream *stream);
KN_API void *kn_memory_block_object(const kn_memory_block *block);  /* the cl_mem; the pool's: do not release it */
KN_API size_t kn_memory_block_offset(const kn_memory_block *block); /* bytes into it, a multiple of 512 */

/* Gives the block back. Work enqueued on its stream may still use it; work on other queues must be done, or its stream
 * be told to wait for it. NULL allowed. */
KN_API void kn_caching_allocator_delete(kn_memory_block *block);

/* --- private pools ---------------------------------------------------------------------------- *
 * torch.cuda.MemPool: memory that serves only the allocations directed to it, so that what is freed inside is not
 * handed to others. Graphs replay into one; phases with sizes of their own keep the ordinary pool from breaking up. */

/* Makes an empty private pool of an OpenCL device; the caller destroys it. */
KN_API kn_status kn_mem_pool_create(kn_mem_pool **pool, kn_device *device);

/* Gives the pool up. Its free memory joins the ordinary pool (kn_empty_cache gives it back to the driver); tensors in
 * it stay valid and their memory joins the ordinary pool when they are freed. A pool still in use by a KN_MEM_POOL
 * block or a graph goes when that ends. NULL allowed. */
KN_API void kn_mem_pool_destroy(kn_mem_pool *pool);

/* As kn_memory_snapshot, of the pool's segments only and without a history (torch.cuda.MemPool.snapshot). */
KN_API kn_status kn_mem_pool_snapshot(kn_mem_pool *pool, const char *path);

/* Names the pool in snapshots; from 1, for each device. 0 with an error for NULL. */
KN_API uint64_t kn_mem_pool_id(const kn_mem_pool *pool);

/* How many hold it: its owner, open blocks, graphs (torch.cuda.MemPool.use_count). 0 with an error for NULL. */
KN_API int kn_mem_pool_use_count(kn_mem_pool *pool);

/* From here to the end of the enclosing block, what the calling thread allocates on the pool's device comes from the
 * pool (a guard: koine/common.h). Other threads are not touched. NULL sets an error that sticks, and to the end of the
 * block the thread does no work on any device (kn_refuse_work). */
#define KN_MEM_POOL(pool) KN_GUARD(kn_mem_pool_guard, kn_mem_pool_guard_, kn_mem_pool_enter(pool), kn_mem_pool_leave)

/* What the guard is made of: one leave per enter, in reverse order, on the same thread, also after a failed one. */
typedef struct kn_mem_pool_guard {
    kn_mem_pool *pool, *outer;
} kn_mem_pool_guard;
KN_API kn_mem_pool_guard kn_mem_pool_enter(kn_mem_pool *pool);
KN_API void kn_mem_pool_leave(kn_mem_pool_guard *guard);

KN_END_DECLS

#endif
