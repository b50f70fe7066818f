/* nn/replica.h - copies of modules for other devices; replicas are explained in koine/module.h. */
#pragma once

#include "nn/module.h"

/* A replica of the tree below `module`, in which copies[i] takes the place of originals[i]; unlisted tensors are
 * shared. All are borrowed: the replica holds its own references. Freed with kn_module_free. */
typedef struct kn_replica_map {
    kn_tensor *const *originals, *const *copies;
    int count;
    bool repeats; /* for a second forward pass: see kn_module */
} kn_replica_map;
kn_status kn_module_replica_new(kn_module **replica, kn_module *module, const kn_replica_map *map);
