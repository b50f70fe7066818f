/* rt/device/driver_cache.h - PoCL compiles into files. Without a folder for them it shows no device, and with one that
 * it cannot write to it builds no kernel; neither error message says so. */
#ifndef KN_RT_DEVICE_DRIVER_CACHE_H
#define KN_RT_DEVICE_DRIVER_CACHE_H

#include <koine/common.h>

/* Before the first call of OpenCL: where POCL_CACHE_DIR is not set and PoCL's usual place (a folder pocl in
 * $XDG_CACHE_HOME or ~/.cache) cannot be written, sets it to a place that can: in Koine's own cache, else in $TMPDIR or
 * /tmp, for this user alone. */
void kn_driver_cache_prepare(void);

/* PoCL's place now, into a string of the caller's; NULL: it has none. */
char *kn_driver_cache_folder(void);

/* May this process write there, or make it? */
bool kn_driver_cache_is_usable(const char *folder);

#endif
