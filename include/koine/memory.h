/* koine/memory.h - the caching memory pool of each device, with torch.cuda's statistics. All functions are thread-safe;
 * all sizes are in bytes. */
#ifndef KOINE_MEMORY_H
#define KOINE_MEMORY_H

#include <koine/common.h>
#include <koine/status.h>

KN_BEGIN_DECLS

/* Free and total memory of the device. The total is that of the driver, or KOINE_MEMORY_LIMIT (bytes) if that is set.
 * Free is the total minus what this process has reserved, or what NVML, sysfs (amdgpu) or an OpenCL extension of AMD's
 * says is free, if that is less: core OpenCL does not report what other processes use. */
KN_API kn_status kn_mem_get_info(kn_device *device, uint64_t *free_bytes, uint64_t *total_bytes);

/* These return 0, with an error, for NULL. */
KN_API uint64_t kn_memory_allocated(kn_device *device);     /* used by live tensors */
KN_API uint64_t kn_max_memory_allocated(kn_device *device); /* its peak since the start or a reset */
KN_API uint64_t kn_memory_reserved(kn_device *device);      /* allocated from the driver, in use or cached */
KN_API uint64_t kn_max_memory_reserved(kn_device *device);

/* Returns cached memory that no tensor uses to the driver, also pinned host memory. Waits for the device's work.
 * Private pools keep their memory. */
KN_API kn_status kn_empty_cache(kn_device *device);

/* Limits what this process may reserve to a fraction of the device's total memory (of KOINE_MEMORY_LIMIT if that is
 * set): above 0 and at most 1, the default. A limit below what is already reserved frees nothing; the next request that
 * needs a driver allocation frees the cache and fails if that is not enough. */
KN_API kn_status kn_set_per_process_memory_fraction(kn_device *device, double fraction);
KN_API double kn_get_per_process_memory_fraction(kn_device *device);

/* --- statistics ------------------------------------------------------------------------------- *
 * torch.cuda.memory_stats's keys: WHAT.POOL.METRIC with
 *
 *   WHAT    allocation, segment, active, inactive_split, and in bytes allocated_bytes, reserved_bytes, active_bytes,
 *           inactive_split_bytes, requested_bytes
 *   POOL    all, large_pool, small_pool (requests up to 1 MiB)
 *   METRIC  current, peak, allocated (total ever added), freed (total ever removed)
 *
 * and num_alloc_retries, num_ooms, num_device_alloc, num_device_free, num_sync_all_streams; max_split_size is -1 and
 * the oversize_* statistics are 0, as in PyTorch by default. */

#define KN_MEMORY_STAT_KEY 48 /* room for the longest key */
#define KN_MEMORY_STATS 128   /* room for all of them */

typedef struct kn_memory_stat_entry {
    char key[KN_MEMORY_STAT_KEY];
    int64_t value;
} kn_memory_stat_entry;

/* Writes up to `capacity` statistics, sorted by key, as a consistent snapshot; returns how many there are, 0 with an
 * error for a NULL device. */
KN_API int kn_memory_stats(kn_device *device, kn_memory_stat_entry *entries, int capacity);

/* One of them: kn_memory_stat(device, "allocated_bytes.all.peak", &value). KN_ERR_ARGUMENT for an unknown key. */
KN_API kn_status kn_memory_stat(kn_device *device, const char *key, int64_t *value);

KN_API void kn_reset_peak_memory_stats(kn_device *device);        /* every .peak becomes its .current */
KN_API void kn_reset_accumulated_memory_stats(kn_device *device); /* .allocated, .freed and num_* become 0 */

/* The statistics as the table that PyTorch prints. The caller frees the text with kn_free; NULL with an error on
 * failure. The abbreviated table omits the rows of the large and the small pool. */
KN_API char *kn_memory_summary(kn_device *device);
KN_API char *kn_memory_summary_abbreviated(kn_device *device);

/* --- pinned host memory ----------------------------------------------------------------------- *
 * The blocks through which batches are copied to all devices. torch.cuda.host_memory_stats's keys: WHAT.METRIC with
 *
 *   WHAT    allocations and allocated_bytes (blocks from the driver, in use or cached),
 *           active_requests and active_bytes (those in use; sizes are rounded up to powers of two)
 *
 *   METRIC  current, peak, allocated, freed
 *
 * and num_host_alloc, num_host_free. */
KN_API int kn_host_memory_stats(kn_memory_stat_entry *entries, int capacity); /* like kn_memory_stats */
KN_API kn_status kn_host_memory_stat(const char *key, int64_t *value);        /* like kn_memory_stat */
KN_API void kn_reset_peak_host_memory_stats(void);
KN_API void kn_reset_accumulated_host_memory_stats(void);

/* --- history ---------------------------------------------------------------------------------- */

/* From now on records the last `max_entries` allocations, frees and driver calls, for snapshots; earlier records are
 * deleted. 0 ends recording. Each entry takes about 50 bytes of host memory. */
KN_API kn_status kn_memory_record_history(kn_device *device, size_t max_entries);

/* Writes the pool's current state and the recorded history as JSON in the format of torch.cuda.memory._snapshot:
 * "segments" with their blocks (state active_allocated, active_pending_free or inactive), "device_traces" with the
 * actions alloc, free_requested, free_completed, segment_alloc, segment_free, oom and snapshot; times in microseconds
 * since 1970, addresses are the pool's own (OpenCL has none), stream 0 is the default stream. */
KN_API kn_status kn_memory_snapshot(kn_device *device, const char *path);

/* Plots allocated and reserved memory over the recorded history with gnuplot, as .svg or .png (KN_ERR_IO names the
 * package if it is missing): of the device now, or of a snapshot file. KN_ERR_STATE if nothing was recorded. */
KN_API kn_status kn_memory_save_plot(kn_device *device, const char *path);
KN_API kn_status kn_memory_snapshot_save_plot(const char *snapshot_path, const char *path);

/* A snapshot's statistics, including fragmentation, as text; the caller frees it with kn_free. NULL with an error if
 * the file is not a snapshot. */
KN_API char *kn_memory_snapshot_summary(const char *snapshot_path);

/* --- the allocator ---------------------------------------------------------------------------- */

/* When off, each block is a separate driver buffer, allocated and freed directly, so that leaks and out-of-bounds
 * writes can be found with the driver's tools. On by default. For the whole process; existing blocks are not
 * affected. */
KN_API void kn_caching_allocator_enable(bool enabled);
KN_API bool kn_caching_allocator_is_enabled(void);

KN_API const char *kn_get_allocator_backend(void); /* "native" */

/* Where the pool's segments come from (torch.cuda.memory.CUDAPluggableAllocator). Both functions are called by any
 * thread, with the pool locked: they may call OpenCL, but no Koine functions. The struct is copied. */
typedef struct kn_pluggable_allocator {
    /* returns a cl_mem of the cl_context; NULL if out of memory */
    void *(*allocate)(void *user, kn_device *device, void *context, size_t bytes);
    /* enqueued work may still use it: clReleaseMemObject handles that */
    void (*release)(void *user, kn_device *device, void *memory);
    void *user;
} kn_pluggable_allocator;

/* For all devices, from now on; NULL restores the driver. KN_ERR_STATE while a device has memory reserved. */
KN_API kn_status kn_change_current_allocator(const kn_pluggable_allocator *allocator);

/* Memory from the pool for other OpenCL code (torch.cuda.caching_allocator_alloc): a block of at least `bytes` bytes,
 * for work on `stream`. It is part of a memory object; pass that and the offset to kernels. `stream` NULL: the calling
 * thread's current stream of `device`. NULL with an error. */
typedef struct kn_memory_block kn_memory_block;
KN_API kn_memory_block *kn_caching_allocator_alloc(size_t bytes, kn_device *device, kn_stream *stream);
KN_API void *kn_memory_block_object(const kn_memory_block *block);  /* the cl_mem; the pool owns it */
KN_API size_t kn_memory_block_offset(const kn_memory_block *block); /* bytes into it, a multiple of 512 */

/* Frees the block. Work enqueued on its stream may still use it; work on other queues must be done, or its stream must
 * wait for it. NULL allowed. */
KN_API void kn_caching_allocator_delete(kn_memory_block *block);

/* --- private pools ---------------------------------------------------------------------------- *
 * torch.cuda.MemPool: memory used only for allocations directed to it, so that its freed memory is not used for others.
 * Graphs use them; phases with unusual sizes can use one to avoid fragmenting the ordinary pool. */

/* A new, empty private pool of an OpenCL device; the caller frees it. NULL with an error. */
KN_API kn_mem_pool *kn_mem_pool_new(kn_device *device);

/* Frees the pool. Its free memory joins the ordinary pool (kn_empty_cache returns it to the driver); its tensors
 * stay valid, and their memory joins the ordinary pool when they are freed. A pool in use by a KN_MEM_POOL block or a
 * graph is freed when that ends. NULL allowed. */
KN_API void kn_mem_pool_free(kn_mem_pool *pool);

/* Like kn_memory_snapshot, for the pool's segments only and without a history (torch.cuda.MemPool.snapshot). */
KN_API kn_status kn_mem_pool_snapshot(kn_mem_pool *pool, const char *path);

/* Identifies the pool in snapshots; numbered from 1 for each device. 0 with an error for NULL. */
KN_API uint64_t kn_mem_pool_id(const kn_mem_pool *pool);

/* The number of its users: its owner, open blocks, graphs (torch.cuda.MemPool.use_count). 0 with an error for NULL. */
KN_API int kn_mem_pool_use_count(kn_mem_pool *pool);

/* To the end of the enclosing block, the calling thread's allocations on the pool's device come from the pool (a guard:
 * koine/common.h). Other threads are not affected. NULL sets a sticky error, and to the end of the block the thread
 * does no work on any device (kn_refuse_work). */
#define KN_MEM_POOL(pool) KN_GUARD(kn_mem_pool_guard, kn_mem_pool_guard_, kn_mem_pool_enter(pool), kn_mem_pool_leave)

/* The guard's functions: call one leave per enter, in reverse order, on the same thread, also after a failed enter. */
typedef struct kn_mem_pool_guard {
    kn_mem_pool *pool, *outer;
} kn_mem_pool_guard;
KN_API kn_mem_pool_guard kn_mem_pool_enter(kn_mem_pool *pool);
KN_API void kn_mem_pool_leave(kn_mem_pool_guard *guard);

KN_END_DECLS

#endif
