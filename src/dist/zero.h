/* dist/zero.h - an optimizer divided among the ranks of a group: what its parts share. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "dist/distributed.h"
#include "optim/state.h"

typedef struct kn_zero {
    kn_optim_shard shard;
    kn_group *group;
    int64_t *loads; /* elements of each rank */
    int count;      /* parameters that have owners */
} kn_zero;

static inline kn_zero *kn_zero_of(const kn_optim *optim) { return (kn_zero *)optim->shard; }
