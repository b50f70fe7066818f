/* rt/tuning/file.h - the files that hold results. */
#ifndef KN_RT_TUNING_FILE_H
#define KN_RT_TUNING_FILE_H

#include "rt/tuning/list.h"

/* The results of a file about the device: about just this driver and library version, if it is its `own`, else about a
 * device of that name. KN_ERR_FORMAT, with a sentence, for a file that is no tuning file, is damaged, or about another
 * device. */
kn_status kn_tuning_read(kn_tuning_list *list, const kn_device *device, const char *path, bool own);

/* Writes a file; `merge`: with what it holds already that the list does not. */
kn_status kn_tuning_write(const kn_tuning_list *list, const kn_device *device, const char *path, bool merge);

#endif
