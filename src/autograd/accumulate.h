/* autograd/accumulate.h - sums of gradients: of what arrives at a node, and of a leaf's own. */
#pragma once

#include "autograd/tape.h"

/* The op that adds gradients when the pass is recorded. The ops layer registers it when the library is loaded. */
void kn_gradient_set_sum(const kn_op *op);
kn_tensor *kn_gradient_sum(kn_tensor *a, kn_tensor *b); /* by that op, in the scope */

/* A contiguous copy, in memory of its own. */
kn_status kn_gradient_clone(kn_tensor **copy, kn_tensor *tensor);

/* *sum += gradient, *sum = gradient if it is NULL; recorded: as an operation of the tape. Takes ownership of
 * `gradient`. */
kn_status kn_gradient_add(kn_tensor **sum, kn_tensor *gradient, bool recorded);

/* Adds what arrived at a leaf's node to the leaf's gradient. */
kn_status kn_leaf_accumulate(kn_node *node, bool recorded);
