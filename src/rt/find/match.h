/* rt/find/match.h - which of the devices found a string means. */
#ifndef KN_RT_FIND_MATCH_H
#define KN_RT_FIND_MATCH_H

#include "rt/device/device.h"

/* Number `index` of a type's devices; NULL: there are fewer. */
kn_device *kn_match_type(kn_device_type type, int index);

/* The device that a string of kn_device_open means, "auto" apart; NULL: none. */
kn_device *kn_match_name(const char *text);

/* The devices that an entry of KOINE_VISIBLE_DEVICES means, in their order; returns how many. */
int kn_match_all(const char *entry, kn_device *matches[KN_MAX_DEVICES]);

#endif
