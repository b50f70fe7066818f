/* dist/reducer.h - averages the gradients of parameters over the ranks of a group, in buckets, during the backward
 * pass. */
#pragma once

#include <koine/distributed.h>

#include "dist/collective.h"

typedef struct kn_reducer kn_reducer;

/* Hooks itself to the parameters that require gradients; the group is borrowed. */
kn_status kn_reducer_new(kn_reducer **reducer, kn_tensor *const *parameters, int count, kn_group *group,
                         const kn_distributed_params *params);
/* The hooks do nothing from now on. NULL allowed. */
void kn_reducer_free(kn_reducer *reducer);

/* While it does not sync, gradients only add up. Returns the setting before. */
bool kn_reducer_set_sync(kn_reducer *reducer, bool sync);
bool kn_reducer_syncs(const kn_reducer *reducer);

/* What the sums of the following passes are divided by; at first the number of ranks. */
void kn_reducer_set_divisor(kn_reducer *reducer, int divisor);

/* Takes part in a pass of the other ranks with zeros, and stores the averages as that pass does. */
kn_status kn_reducer_answer(kn_reducer *reducer);
