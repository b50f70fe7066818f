/* dist/replicate.h - a module's replicas on other devices. */
#pragma once

#include "dist/collective.h"
#include "nn/replica.h"

/* Sets replicas[i] for devices[i], i >= first; parameters and buffers must be on devices[0]. Free each with
 * kn_module_free. `function` is for messages. */
kn_status kn_replicate(const char *function, kn_module *module, kn_device *const *devices, int num_devices, int first,
                       kn_module **replicas);
