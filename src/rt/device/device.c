/* rt/device/device.c - the devices, and a device's name and properties. */
#include "rt/device/table.h"

#include "base/error.h"
#include "rt/device/device_struct.h"

kn_device_table kn_devices;

kn_device *kn_device_slot_at(int slot)
{
    return slot >= 0 && slot < kn_devices.count ? kn_devices.devices[slot] : NULL;
}

int kn_device_slots(void) { return kn_devices.count; }
int kn_devices_hidden(void) { return kn_devices.num_hidden; }
const kn_device *kn_device_hidden_at(int i) { return kn_devices.hidden[i]; }

int kn_device_index(const kn_device *device) { return device ? device->slot - 1 : -1; }

const char *kn_device_name(const kn_device *device) { return device ? device->properties.name : "no device"; }
const char *kn_device_string(const kn_device *device) { return device ? device->label : "no device"; }
kn_device_type kn_device_get_type(const kn_device *device) { return device ? device->properties.type : KN_DEVICE_HOST; }

kn_status kn_device_get_properties(const kn_device *device, kn_device_properties *properties)
{
    if (!device || !properties)
        return kn_fail_argument_null("kn_device_get_properties", device ? "properties" : "device");
    *properties = device->properties;
    return KN_OK;
}

kn_status kn_device_capability(const kn_device *device, int *major, int *minor)
{
    if (!device || !major || !minor)
        return kn_fail_argument_null("kn_device_capability", device ? "major or minor" : "device");
    *major = device->limits.capability_major;
    *minor = device->limits.capability_minor;
    return KN_OK;
}

const kn_limits *kn_device_limits(const kn_device *device) { return &device->limits; }
bool kn_device_is_host(const kn_device *device) { return device->slot == 0; }
int kn_device_slot(const kn_device *device) { return device->slot; }
const char *kn_device_extensions(const kn_device *device) { return device->extensions; }

const char *kn_device_larger_buffers(const kn_device *device)
{
    return kn_quirk_larger_buffers(&device->quirks, device->limits.max_allocation, device->limits.global_memory);
}
