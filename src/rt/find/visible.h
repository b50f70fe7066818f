/* rt/find/visible.h - KOINE_VISIBLE_DEVICES: which devices there are for this process, and in which order.
 *
 * Entries are separated by commas: the index that kn_device_at takes without the variable ("1"), a device string
 * ("gpu:1", "pocl:0", "0:1"), a UUID, or, for all devices that it describes, "gpu", "cpu", a vendor, a platform or part
 * of a name. The devices named are numbered in the order of the entries, the others do not exist. As with
 * CUDA_VISIBLE_DEVICES an entry that matches nothing ends the list; "", "none" and "-1" hide everything. */
#ifndef KN_RT_FIND_VISIBLE_H
#define KN_RT_FIND_VISIBLE_H

#include "rt/device/device.h"

/* Writes the devices that the variable leaves, in its order; returns how many, -1 when it is not set. The devices are
 * all in the table by then, with their usual labels. */
int kn_visible_choose(kn_device *chosen[KN_MAX_DEVICES]);

#endif
