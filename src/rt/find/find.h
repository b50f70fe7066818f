/* rt/find/find.h - which devices there are. */
#ifndef KN_RT_FIND_FIND_H
#define KN_RT_FIND_FIND_H

#include <koine/device.h>

/* As kn_device_open, without opening it: no context, no memory of the device is taken. */
kn_status kn_device_find(kn_device **device, const char *name);

/* Looks for all devices and fills rt/device/table.h, at the first call. */
kn_status kn_devices_find(void);

/* Have the devices been looked for? */
bool kn_devices_are_found(void);

/* KN_ERR_DEVICE: there is no device; says which package to install, or which variable hides them. */
kn_status kn_fail_no_device(void);

#endif
