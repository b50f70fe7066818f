/* rt/memory/snapshot.h - snapshots of a pool. */
#pragma once

#include <cjson/cJSON.h>
#include <koine/memory.h>

/* The pool of the device (only the segments of a private one, unless it is NULL) as PyTorch's snapshot. The caller
 * deletes it; NULL with an error when host memory is exhausted. */
cJSON *kn_memory_snapshot_json(kn_device *device, const kn_mem_pool *only);
