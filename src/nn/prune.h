/* nn/prune.h - between the masks (nn/prune_masks.c) and the modules that they are applied to (nn/prune.c). */
#pragma once

#include <koine/prune.h>

#include "nn/module.h"

/* What a mask is made from: a tensor, its importance, its mask until now, all of one shape. */
typedef struct kn_prune_state {
    kn_tensor *importance, *mask;
} kn_prune_state;

/* How a mask is made. */
typedef struct kn_prune_how {
    const char *function;
    bool is_random, is_structured;
    kn_scalar amount;
    double n; /* structured: the norm */
    int dim;
    kn_generator *generator;
} kn_prune_how;

/* The new mask, owned as results are; NULL with an error. */
kn_tensor *kn_prune_new_mask(kn_prune_state state, const kn_prune_how *how);
