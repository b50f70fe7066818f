/* rt/device/driver_cache.h - PoCL compiles to files. Without a folder for them it offers no device, and if the folder
 * is not writable it compiles no kernels; its error messages do not explain that. */
#pragma once

#include <koine/common.h>

/* Call before the first OpenCL call: if POCL_CACHE_DIR is not set and PoCL's default (pocl in $XDG_CACHE_HOME or
 * ~/.cache) is not writable, sets it to a writable folder: in Koine's cache, otherwise in $TMPDIR or /tmp, private to
 * this user. */
void kn_driver_cache_prepare(void);

/* PoCL's current folder, written to the caller's string; NULL: none. */
char *kn_driver_cache_folder(void);

/* May this process write to it, or create it? */
bool kn_driver_cache_is_usable(const char *folder);

/* Has PoCL kept nothing there yet? */
bool kn_driver_cache_is_empty(void);
