/* rt/tuning/file.h - files of tuning results. */
#pragma once

#include "rt/tuning/list.h"

/* Reads a file of results: for exactly this driver and library version if it is the device's `own` file, otherwise for
 * any device of that name. KN_ERR_FORMAT for a file that is not a tuning file, is damaged, or is about another
 * device. */
kn_status kn_tuning_read(kn_tuning_list *list, const kn_device *device, const char *path, bool own);

/* How long a lock of another process is waited for. Tests shorten it. */
extern int kn_tuning_lock_seconds;

/* Writes a file; with `merge` it keeps results that the list does not have. */
kn_status kn_tuning_write(const kn_tuning_list *list, const kn_device *device, const char *path, bool merge);
