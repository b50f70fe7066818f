/* base/name_index.h - looks up names in constant time. */
#pragma once

#include <koine/common.h>
#include <koine/status.h>

/* Maps the names of a list, which the caller keeps, to their positions in it. Start with {0}. */
typedef struct kn_name_index {
    struct kn_name_slot *slots;
    size_t capacity, count;
} kn_name_index;

/* The name at a position of `list`. */
typedef const char *(*kn_name_at)(const void *list, int position);

int kn_name_index_find(const kn_name_index *index, const char *name, kn_name_at at,
                       const void *list);                                          /* -1: not found */
kn_status kn_name_index_add(kn_name_index *index, const char *name, int position); /* must not be there yet */
void kn_name_index_free(kn_name_index *index);                                     /* leaves it empty */
