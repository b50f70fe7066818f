/* autograd/grad_hooks.h - the user's functions that a backward pass calls with gradients. */
#pragma once

#include "autograd/tape.h"

/* Of a node whose gradients are complete: each hook may replace the gradient of its output. */
kn_status kn_run_grad_hooks(kn_node *node);

/* Adds the gradients to those of results that keep theirs (kn_retain_grad). */
kn_status kn_keep_gradients(kn_node *node);

/* Of a leaf's node, after its gradient was added to. */
kn_status kn_run_accumulated_hooks(const kn_node *node);
