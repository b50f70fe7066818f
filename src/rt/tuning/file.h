/* rt/tuning/file.h - between tuning.c and file.c: lists of results, and the files that hold them. */
#ifndef KN_RT_TUNING_FILE_H
#define KN_RT_TUNING_FILE_H

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
/* Both: KN_ERR_STATE, in words, where there would be more than KN_TUNING_MAX_RESULTS. */
kn_status kn_tuning_merge(kn_tuning_list *list, const kn_tuning_list *more);
void kn_tuning_list_free(kn_tuning_list *list);
kn_status kn_tuning_append(kn_tuning_result *result, const char *name, double seconds);

/* The results of a file about the device: about just this driver and library version, if it is its `own`, else about a
 * device of that name. KN_ERR_FORMAT, with a sentence, for a file that is no tuning file, is damaged, or about another
 * device. */
kn_status kn_tuning_read(kn_tuning_list *list, const kn_device *device, const char *path, bool own);

/* Writes a file; `merge`: with what it holds already that the list does not. */
kn_status kn_tuning_write(const kn_tuning_list *list, const kn_device *device, const char *path, bool merge);

#endif
