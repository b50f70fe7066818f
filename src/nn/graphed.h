/* nn/graphed.h - modules whose passes are replayed from graphs (kn_make_graphed_callable). */
#pragma once

#include <koine/graph.h>
#include <stdatomic.h>

#include "base/threads.h"
#include "nn/module.h"

struct kn_graphed {
    atomic_int references; /* the module's, and one per recorded call */
    bool training;         /* the mode at capture */
    kn_graph *forward, *backward;
    int num_inputs, num_outputs;         /* of the module */
    int count;                           /* inputs of the tape's node: the module's, then the parameters */
    kn_tensor **samples;                 /* [num_inputs] read by the graphs; NULL: an omitted input */
    kn_tensor **outputs, **grad_outputs; /* [num_outputs] of the graphs; NULL: output without a gradient */
    kn_tensor **inputs;                  /* [count] each call's inputs, then the parameters */
    kn_tensor **recorded;                /* [count] the parameters' storage at capture, kept alive and compared with */
    kn_tensor **gradients;               /* [count] results of the backward graph; NULL: no gradient */
    kn_tensor **block;                   /* the allocation that holds the lists */
    int64_t calls;                       /* replays of either pass; each overwrites the previous one's results */
    kn_mutex lock;                       /* held while a replay is enqueued: several threads may apply one module */
    /* of the previous replay; last_id, because the stream may have been destroyed */
    kn_stream *last;
    uint64_t last_id;
};

/* Total length of all lists. */
static inline int kn_graphed_block_length(const kn_graphed *graphed)
{
    return graphed->num_inputs + 2 * graphed->num_outputs + 3 * graphed->count;
}

/* The module's forward pass, replayed if its graphs were captured in the current mode. The arrays have the signature's
 * lengths. */
kn_status kn_graphed_forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs);

void kn_graphed_release(kn_graphed *graphed); /* NULL allowed */
