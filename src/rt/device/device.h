/* rt/device/device.h - device queries for all layers, in addition to koine/device.h. */
#pragma once

#include <koine/device.h>

#include "rt/device/limits.h"

#define KN_MAX_DEVICES 64 /* the host included */

const kn_limits *kn_device_limits(const kn_device *device);
bool kn_device_is_host(const kn_device *device);
int kn_device_slot(const kn_device *device);               /* 0 for the host, 1 + index for the others */
const char *kn_device_extensions(const kn_device *device); /* OpenCL's list, separated by blanks */

/* How to get buffers larger than limits.max_allocation, for a message; NULL if impossible. */
const char *kn_device_larger_buffers(const kn_device *device);
