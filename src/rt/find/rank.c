/* rt/find/rank.c - numbers and labels the devices: GPUs by their estimated speed. */
#include "rt/find/rank.h"

#include <stdio.h>

#include "rt/device/device_struct.h"
#include "rt/device/table.h"

/* Multiply-adds per second, about; drivers report no such figure. A GPU's own memory counts more than any difference
 * between processors: integrated ones share the host's. */
static double score(const kn_device *device)
{
    const kn_limits *limits = &device->limits;
    const double clock = limits->clock_mhz > 0 ? limits->clock_mhz : 1;
    return limits->compute_units * (double)limits->lanes_per_unit * clock * (limits->unified_memory ? 1 : 100);
}

static bool comes_before(const kn_device *a, const kn_device *b, bool ordered)
{
    if (!a->twin_of != !b->twin_of)
        return !a->twin_of;
    return !ordered && score(a) > score(b);
}

static kn_device *best_unranked(bool ordered)
{
    kn_device *best = NULL;
    for (int slot = 1; slot < kn_devices.count; slot++) {
        kn_device *device = kn_devices.devices[slot];
        if (device->properties.type == KN_DEVICE_GPU && device->gpu_rank < 0 &&
            (!best || comes_before(device, best, ordered)))
            best = device;
    }
    return best;
}

void kn_rank_devices(bool ordered)
{
    int cpus = 0, rank = 0;
    for (int slot = 1; slot < kn_devices.count; slot++) {
        kn_device *device = kn_devices.devices[slot];
        device->gpu_rank = -1;
        if (device->properties.type == KN_DEVICE_CPU)
            snprintf(device->label, sizeof device->label, "cpu:%d", cpus++);
        else if (device->properties.type == KN_DEVICE_ACCELERATOR)
            snprintf(device->label, sizeof device->label, "%d:%d", device->properties.platform_index,
                     device->properties.device_index);
    }
    for (kn_device *best; (best = best_unranked(ordered)); rank++) {
        best->gpu_rank = rank;
        snprintf(best->label, sizeof best->label, "gpu:%d", rank);
    }
}
