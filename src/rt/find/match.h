/* rt/find/match.h - matching device strings with the devices found. */
#pragma once

#include "rt/device/device.h"

/* Number `index` of a type's devices; NULL: there are fewer. */
kn_device *kn_match_type(kn_device_type type, int index);

/* The device that a string means (see kn_device_open), except "auto"; NULL: none. */
kn_device *kn_match_name(const char *text);

/* KOINE_VISIBLE_DEVICES: which devices are visible to this process, and in which order.
 *
 * Entries are separated by commas: the index that kn_device_at takes without the variable ("1"), a device string
 * ("gpu:1", "pocl:0", "0:1"), a UUID, or, for all devices that it describes, "gpu", "cpu", a vendor, a platform or part
 * of a name. The named devices are numbered in the order of the entries, others are hidden. As with
 * CUDA_VISIBLE_DEVICES, an entry that matches nothing ends the list; "", "none" and "-1" hide everything.
 *
 * Writes the visible devices, in order; returns their number, or -1 if the variable is not set. The table already has
 * all devices, with their usual labels. */
int kn_visible_choose(kn_device *chosen[KN_MAX_DEVICES]);
