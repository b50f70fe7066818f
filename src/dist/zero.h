/* dist/zero.h - an optimizer divided among the ranks of a group: what its parts share. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "dist/distributed.h"
#include "optim/state.h"

#define KN_ZERO_IN_FLIGHT 3

/* Bytes of the ranks' streams (zero_share.c) on their way. */
typedef struct kn_zero_transfer {
    kn_tensor *blocks; /* one of `bytes` bytes per rank; only the root's, if there is one */
    kn_work *work;
    int64_t first, bytes;
    int root; /* -1: every rank gives some to all */
} kn_zero_transfer;

typedef struct kn_zero {
    kn_optim_shard shard;
    kn_group *group;
    int64_t *loads; /* elements of each rank */
    int count;      /* parameters that have owners */
    /* of a step: */
    int64_t *starts;  /* where each parameter begins in its owner's stream */
    int64_t *lengths; /* of the ranks' streams */
    int64_t longest;
    kn_zero_transfer next, in_flight[KN_ZERO_IN_FLIGHT]; /* next: the one to be started */
    int begun, ended;                                    /* transfers */
} kn_zero;

static inline kn_zero *kn_zero_of(const kn_optim *optim) { return (kn_zero *)optim->shard; }

/* For kn_optim_shard (zero_share.c). */
kn_status kn_zero_begin(kn_optim *optim);
kn_status kn_zero_stepped(kn_optim *optim, int index);
kn_status kn_zero_finish(kn_optim *optim, kn_status status);
