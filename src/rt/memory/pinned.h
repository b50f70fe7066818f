/* rt/memory/pinned.h - what the runtime knows of pinned blocks beyond rt/rt.h. */
#ifndef KN_RT_MEMORY_PINNED_H
#define KN_RT_MEMORY_PINNED_H

#include "rt/memory/statistics.h"
#include "rt/rt.h"

typedef struct kn_pinned_figures {
    kn_statistic allocations, allocated_bytes; /* blocks that the driver gave: in use or kept */
    kn_statistic active_requests, active_bytes;
} kn_pinned_figures;

/* Gives the device's blocks that nobody uses back to the driver. */
void kn_pinned_empty_cache(const kn_device *device);

#endif
