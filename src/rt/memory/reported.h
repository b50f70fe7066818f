/* rt/memory/reported.h - free memory of a device beyond what OpenCL and this process know. */
#pragma once

#include "rt/device/device.h"

/* Free bytes over all processes, as a vendor's library or the system's driver reports them; false if none does. Set by
 * the layer that can ask them (watch/usage); NULL without it. */
extern bool (*kn_memory_reported_free)(const kn_device *device, uint64_t *free_bytes);
