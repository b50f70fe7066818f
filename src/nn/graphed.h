/* nn/graphed.h - modules whose passes are replayed; koine/module.h tells how they are made. */
#ifndef KN_NN_GRAPHED_H
#define KN_NN_GRAPHED_H

#include <koine/graph.h>
#include <stdatomic.h>

#include "base/threads.h"
#include "nn/module.h"

struct kn_graphed {
    atomic_int references; /* the module's, and one of each recorded call */
    bool training;         /* the mode that was recorded */
    kn_graph *forward, *backward;
    int num_inputs, num_outputs;         /* of the module */
    int count;                           /* inputs of the recorded call: the module's, then the parameters */
    kn_tensor **samples;                 /* [num_inputs] what the graphs read; NULL: an input that was left out */
    kn_tensor **outputs, **grad_outputs; /* [num_outputs] what they write; NULL where no gradient comes from */
    kn_tensor **inputs;                  /* [count] the parameters from num_inputs on; before them each call's own */
    kn_tensor **recorded;                /* [count] the parameters' memory that the graphs use: kept, and known by it */
    kn_tensor **gradients;               /* [count] as the backward graph leaves them; NULL where none flows */
    kn_tensor **block;                   /* that the lists are in */
    int64_t calls;                       /* replays of either pass; each overwrites what the one before left */
    kn_mutex lock;                       /* held while a replay is enqueued: threads may apply one module at once */
    kn_stream *last;                     /* of the replay before, with its number: a stream may be gone by then */
    uint64_t last_id;
};

/* Of all lists. */
static inline int kn_graphed_block_length(const kn_graphed *graphed)
{
    return graphed->num_inputs + 2 * graphed->num_outputs + 3 * graphed->count;
}

/* The module's forward pass, replayed where its graphs are for the mode it is in. The arrays are as long as the
 * module's signature says. */
kn_status kn_graphed_forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs);

void kn_graphed_release(kn_graphed *graphed); /* NULL allowed */

#endif
