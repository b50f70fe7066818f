/* autograd/engine.h - one backward pass over the record, from given gradients of some nodes' outputs. */
#ifndef KN_AUTOGRAD_ENGINE_H
#define KN_AUTOGRAD_ENGINE_H

#include "autograd/tape.h"

/* An output of a node, and its gradient: where a pass starts, or what it is to find. */
typedef struct kn_pass_end {
    kn_node *node;
    int output;
    kn_tensor *gradient; /* owned */
} kn_pass_end;

typedef struct kn_pass {
    bool retain_graph; /* what was saved stays */
    bool create_graph; /* backward is recorded; implies retain_graph */

    /* To be found instead of being added to the leaves: their gradients stay NULL where none arrives. None: all leaves
     * get theirs. Only nodes on the way to these are run. */
    kn_pass_end *wanted;
    int num_wanted;
} kn_pass;

/* The op that adds gradients where the pass is recorded. The ops layer registers it when the library is loaded. */
void kn_pass_set_sum(const kn_op *op);

/* Takes over the gradients of the starts. */
kn_status kn_pass_run(kn_pass *pass, kn_pass_end *starts, int num_starts);

/* Marks what of the record leads from `starts` to the wanted outputs (kn_node.leads), for kn_pass_run; kn_ways_forget
 * takes the marks back. */
typedef struct kn_ways {
    kn_node **nodes; /* all that can be reached, each with a reference */
    int count, capacity;
} kn_ways;
kn_status kn_ways_find(kn_ways *ways, const kn_pass *pass, const kn_pass_end *starts, int num_starts);
void kn_ways_forget(kn_ways *ways);

#endif
