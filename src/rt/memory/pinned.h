/* rt/memory/pinned.h - pinned memory, for the runtime; rt/memory/buffer.h has what all layers use. */
#pragma once

#include "rt/memory/buffer.h"
#include "rt/memory/statistics.h"

typedef struct kn_pinned_figures {
    kn_statistic allocations, allocated_bytes; /* blocks allocated by the driver, in use or cached */
    kn_statistic active_requests, active_bytes;
} kn_pinned_figures;

/* Frees the device's unused blocks to the driver. */
void kn_pinned_empty_cache(const kn_device *device);
