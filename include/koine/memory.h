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

/* A table of the figures, as text; the caller frees it with kn_free. NULL with an error on failure. */
KN_API char *kn_memory_summary(kn_device *device);

KN_END_DECLS

#endif
