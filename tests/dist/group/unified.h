/* unified.h - devices whose values are copied, made from CPU devices, whose memory groups use itself. */
#pragma once

#include "rt/rt.h"

/* false: the device counts as one with memory of its own. */
static inline void set_unified_memory(kn_device *device, bool unified)
{
    ((kn_limits *)(uintptr_t)kn_device_limits(device))->unified_memory = unified;
}
