/* autograd/engine.h - one backward pass over the tape, starting from given gradients of some nodes' outputs. */
#pragma once

#include "autograd/tape.h"

/* An output of a node and its gradient: a root of the pass, or a gradient that the pass is asked for. */
typedef struct kn_pass_endpoint {
    kn_node *node;
    int output;
    kn_tensor *gradient; /* owned */
} kn_pass_endpoint;

typedef struct kn_pass {
    bool retain_graph; /* saved tensors are not freed */
    bool create_graph; /* record the backward pass; implies retain_graph */

    /* The gradients to return instead of accumulating into the leaves; NULL where none arrives. Only nodes on a path to
     * these run. None: all leaves accumulate. */
    kn_pass_endpoint *wanted;
    int num_wanted;

    uint64_t number; /* of the pass, from 1; set by kn_pass_run */
} kn_pass;

/* Takes ownership of the gradients in `roots`. */
kn_status kn_pass_run(kn_pass *pass, kn_pass_endpoint *roots, int num_roots);

/* Marks the nodes on paths from `roots` to the wanted outputs (kn_node.mark), for kn_pass_run; kn_pass_marks_clear
 * restores the marks: a backward function may run a pass of its own, in the middle of another one. */
typedef struct kn_marked_node {
    kn_node *node;   /* a reference */
    uint8_t outside; /* its mark in the pass outside */
} kn_marked_node;
typedef struct kn_pass_marks {
    kn_marked_node *nodes; /* all reachable ones */
    int count, capacity;
} kn_pass_marks;
kn_status kn_pass_marks_set(kn_pass_marks *marks, const kn_pass *pass, const kn_pass_endpoint *roots, int num_roots);
void kn_pass_marks_clear(kn_pass_marks *marks);

/* kn_autograd_grad where tensors stand for batches of that level (tensor/batched.h); set by ops/vmap/gradients.c. */
typedef kn_status (*kn_batched_grad)(int level, kn_tensor *const *outputs, int num_outputs, kn_tensor *const *inputs,
                                     int num_inputs, kn_tensor **gradients, const kn_autograd_grad_params *params);
extern kn_batched_grad kn_grad_of_batches;
