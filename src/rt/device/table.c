/* rt/device/table.c - see rt/device/table.h. */
#include "rt/device/table.h"

#include "rt/device/device_struct.h"

kn_device_table kn_devices;

kn_device *kn_device_slot_at(int slot)
{
    return slot >= 0 && slot < kn_devices.count ? kn_devices.devices[slot] : NULL;
}

int kn_device_slots(void) { return kn_devices.count; }
int kn_devices_hidden(void) { return kn_devices.num_hidden; }
const kn_device *kn_device_hidden_at(int i) { return kn_devices.hidden[i]; }
