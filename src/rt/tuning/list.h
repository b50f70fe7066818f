/* rt/tuning/list.h - lists of results, found by their questions, and their files. */
#pragma once

#include "base/name_index.h"
#include "rt/tuning/tuning.h"

#define KN_TUNING_MAX_RESULTS 20000 /* of a list, and so of a file */

typedef struct kn_tuning_list {
    kn_tuning_result *results;
    int count, capacity;
    kn_name_index index; /* of the questions */
} kn_tuning_list;

kn_tuning_result *kn_tuning_in_list(const kn_tuning_list *list, const char *question); /* NULL: it is not */
kn_status kn_tuning_put(kn_tuning_list *list, const kn_tuning_result *result); /* a copy, instead of an older one */
/* Both: KN_ERR_STATE if there would be more than KN_TUNING_MAX_RESULTS. */
kn_status kn_tuning_merge(kn_tuning_list *list, const kn_tuning_list *more);
void kn_tuning_list_free(kn_tuning_list *list);
kn_status kn_tuning_copy(kn_tuning_result *copy, const kn_tuning_result *result);
kn_status kn_tuning_append(kn_tuning_result *result, const char *name, double seconds);

/* --- files: file.c ------------------------------------------------------------------------------------------------ */

/* Reads a file of results: for exactly this driver and library version if it is the device's `own` file, otherwise for
 * any device of that name. KN_ERR_FORMAT for a file that is not a tuning file, is damaged, or is about another
 * device. */
kn_status kn_tuning_read(kn_tuning_list *list, const kn_device *device, const char *path, bool own);

/* How long a lock of another process is waited for. Tests shorten it. */
extern int kn_tuning_lock_seconds;

/* Writes a file; with `merge` it keeps results that the list does not have. */
kn_status kn_tuning_write(const kn_tuning_list *list, const kn_device *device, const char *path, bool merge);
