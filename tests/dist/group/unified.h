/* unified.h - devices whose values are copied, or mapped, made from CPU devices, whose memory groups use itself. */
#pragma once

#include "rt/rt.h"

/* false: the device counts as one with memory of its own. */
static inline void set_unified_memory(kn_device *device, bool unified)
{
    ((kn_limits *)(uintptr_t)kn_device_limits(device))->unified_memory = unified;
}

/* false: its memory has to be mapped. Returns what was. */
static inline bool set_shared_memory(kn_device *device, bool shares)
{
    kn_limits *limits = (kn_limits *)(uintptr_t)kn_device_limits(device);
    const bool before = limits->shares_memory;
    limits->shares_memory = shares;
    return before;
}
