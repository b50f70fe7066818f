/* rt/device/table.h - the devices of this process, by their slots. rt/find fills the table once; it never changes
 * afterwards, and devices are never freed. */
#pragma once

#include "rt/device/device.h"

typedef struct kn_device_table {
    kn_device *devices[KN_MAX_DEVICES]; /* slot 0: the host */
    int count;                          /* 0 before the devices have been enumerated */
    kn_device *hidden[KN_MAX_DEVICES];  /* by KOINE_VISIBLE_DEVICES */
    int num_hidden;
} kn_device_table;

extern kn_device_table kn_devices;

kn_device *kn_device_slot_at(int slot); /* NULL outside */
int kn_device_slots(void);              /* host included */

int kn_devices_hidden(void); /* how many KOINE_VISIBLE_DEVICES hides */
const kn_device *kn_device_hidden_at(int i);
