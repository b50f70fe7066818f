/* rt/find/match.h - matching device strings with the devices found. */
#pragma once

#include "rt/device/device.h"

/* Number `index` of a type's devices; NULL: there are fewer. */
kn_device *kn_match_type(kn_device_type type, int index);

/* The device that a string means (see kn_device_open), except "auto"; NULL: none. */
kn_device *kn_match_name(const char *text);

/* The devices that an entry of KOINE_VISIBLE_DEVICES means, in their order; returns how many. */
int kn_match_all(const char *entry, kn_device *matches[KN_MAX_DEVICES]);
