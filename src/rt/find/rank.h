/* rt/find/rank.h - the order of GPUs, and GPUs that several drivers show. */
#pragma once

#include "rt/device/device.h"

/* Numbers and labels the devices of the table: GPUs best first, or in the table's order if that is the user's. Copies
 * of a GPU come after all others. */
void kn_rank_devices(bool ordered);

/* Marks GPUs that another platform's driver shows too (same UUID or PCI address), all but the best driver's, and moves
 * them to the end of the table, where names and KOINE_VISIBLE_DEVICES still reach them. */
void kn_twins_find(void);

/* Removes from the table the marked GPUs whose better copy is still there; `remove` frees a device. */
void kn_twins_remove(void (*remove)(kn_device *device));
