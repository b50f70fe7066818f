/* rt/find/twins.c - one GPU that several drivers show, for example a Radeon under ROCm, rusticl and Clover: the
 * vendor's driver is used, then the newer OpenCL. */
#include <string.h>

#include "rt/device/device_struct.h"
#include "rt/device/table.h"
#include "rt/find/left_out.h"
#include "rt/find/rank.h"

static bool are_equal(const char *a, const char *b) { return *a && strcmp(a, b) == 0; }

/* One platform's devices differ, even at one PCI address: the tiles of a GPU. */
static bool are_twins(const kn_device *a, const kn_device *b)
{
    const kn_device_properties *p = &a->properties, *q = &b->properties;
    return a->platform != b->platform && p->type == KN_DEVICE_GPU && q->type == KN_DEVICE_GPU &&
           (are_equal(p->uuid, q->uuid) || are_equal(p->pci_address, q->pci_address));
}

/* At equality the driver found first is better. */
static bool has_better_driver(const kn_device *a, const kn_device *b)
{
    if (a->quirks.drives_any_vendor != b->quirks.drives_any_vendor)
        return b->quirks.drives_any_vendor;
    return a->limits.opencl_version > b->limits.opencl_version;
}

static const kn_device *best_twin(const kn_device *device)
{
    const kn_device *best = device;
    for (int slot = 1; slot < kn_devices.count; slot++) {
        const kn_device *other = kn_devices.devices[slot];
        const bool earlier = other->slot < best->slot;
        if (are_twins(device, other) &&
            (has_better_driver(other, best) || (earlier && !has_better_driver(best, other))))
            best = other;
    }
    return best == device ? NULL : best;
}

static void number_slots(void)
{
    for (int slot = 1; slot < kn_devices.count; slot++)
        kn_devices.devices[slot]->slot = slot;
}

void kn_twins_find(void)
{
    kn_device *twins[KN_MAX_DEVICES];
    int kept = 1, count = 0;
    for (int slot = 1; slot < kn_devices.count; slot++)
        kn_devices.devices[slot]->twin_of = best_twin(kn_devices.devices[slot]);
    for (int slot = 1; slot < kn_devices.count; slot++) {
        kn_device *device = kn_devices.devices[slot];
        if (device->twin_of)
            twins[count++] = device;
        else
            kn_devices.devices[kept++] = device;
    }
    for (int i = 0; i < count; i++)
        kn_devices.devices[kept++] = twins[i];
    number_slots();
}

static bool is_listed(const kn_device *device)
{
    for (int slot = 1; slot < kn_devices.count; slot++)
        if (kn_devices.devices[slot] == device)
            return true;
    return false;
}

void kn_twins_remove(void (*remove)(kn_device *device))
{
    int kept = 1;
    for (int slot = 1; slot < kn_devices.count; slot++) {
        kn_device *device = kn_devices.devices[slot];
        const kn_device_properties *p = &device->properties;
        if (device->twin_of && is_listed(device->twin_of)) {
            kn_leave_out("%s of platform %d (%s) is the GPU that platform %d (%s) shows too, with the better driver: "
                         "KOINE_VISIBLE_DEVICES=%d:%d chooses it",
                         p->name, p->platform_index, p->platform, device->twin_of->properties.platform_index,
                         device->twin_of->properties.platform, p->platform_index, p->device_index);
            remove(device);
            continue;
        }
        device->twin_of = NULL;
        kn_devices.devices[kept++] = device;
    }
    kn_devices.count = kept;
    number_slots();
}
