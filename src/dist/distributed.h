/* dist/distributed.h - what the parts of a distributed module share. */
#pragma once

#include "dist/reducer.h"
#include "nn/module.h"

typedef struct kn_distributed {
    kn_group *group;
    kn_reducer *reducer;
    kn_distributed_params params;
    int64_t passes; /* forward passes whose gradients are averaged */
    /* between join_begin and join_end (join.c) */
    bool joins;
    kn_join_params join;
    int last_active; /* the highest rank that had a batch in the last pass: the others take its buffers */
} kn_distributed;

/* NULL with an error that names the function: the module was not made by kn_nn_distributed. */
kn_distributed *kn_distributed_of(const char *function, kn_module *module);

/* Before a pass whose gradients are averaged, on all ranks, whether they have a batch or not: compares the parameters
 * if it is time, and gives all the buffers of one. */
kn_status kn_distributed_prepare(kn_distributed *self, kn_module *wrapped);

/* Tells all ranks whether this one has a batch; the number of those that have one (join.c). */
kn_status kn_distributed_announce(kn_distributed *self, bool has_batch, int *active);

/* --- lists of tensors over a group (group_lists.c, fingerprint.c) ------------------------------------------------- */

/* Rank root's values on all ranks, in few messages. */
kn_status kn_group_broadcast_list(kn_group *group, kn_tensor *const *tensors, int count, int root);

/* Starts an all_gather in place: `blocks` has a block of equal size for each rank, and this rank's is filled. */
kn_status kn_group_all_gather_whole(kn_group *group, kn_tensor *blocks, kn_work **work);

/* KN_ERR_STATE if the ranks do not give the same number: `what` of a rank "differ from those of rank 0", or of another
 * that most agree with. */
kn_status kn_group_compare(kn_group *group, int64_t number, const char *what);

/* A number for the bits of all tensors, which are on one device and no part of a graph. Waits. */
kn_status kn_fingerprint(kn_tensor *const *tensors, int count, int64_t *number);
