/* autograd/tape.h - the record of operations that kn_backward walks.
 *
 * Each recorded application is a node. It keeps what backward needs: the op and its parameters, what forward saved, and
 * one edge per input to the node that made it. A leaf that requires gradients has a node too, without an op, which
 * stands for "add to kn_grad". Nodes are numbered as they are made, so a node's inputs have smaller numbers: walking by
 * falling number is a topological order. */
#ifndef KN_AUTOGRAD_TAPE_H
#define KN_AUTOGRAD_TAPE_H

#include <koine/autograd.h>

#include "autograd/op.h"
#include "autograd/view.h"

typedef struct kn_node kn_node;

typedef struct kn_hook {
    kn_grad_hook function;
    void *user;
    void (*destroy)(void *user); /* called when the node goes; NULL: nothing to do */
    int output;                  /* which output of the node */
    struct kn_hook *next;
} kn_hook;

/* Where a node leads, in a pass that looks for the gradients of certain outputs. */
typedef enum kn_way {
    KN_WAY_UNKNOWN, /* in a pass over all leaves */
    KN_WAY_NOWHERE, /* to none of them */
    KN_WAY_END,     /* it is one of them, and leads to no other */
    KN_WAY_THROUGH  /* further on, to others */
} kn_way;

typedef struct kn_edge {
    kn_node *node; /* owned; NULL: no gradient wanted there */
    int output;
} kn_edge;

struct kn_node {
    atomic_int references;
    uint64_t number; /* 0 for leaves: they come last */
    const kn_op *op; /* NULL: a leaf */
    kn_tensor *leaf; /* of a leaf's node: borrowed, NULL once the leaf is gone */
    kn_slice *slice; /* the op changed this part of output 0 in place: edge 0 and the gradient are the base's, input 0
                        is the view; NULL: all of it */
    void *params;
    bool released; /* a backward pass has freed what was saved */
    bool again;    /* nothing was saved, so that passes from several results may go through it */

    /* The arrays lie behind the node in its own block: an op that works on a whole list of tensors has as many. */
    int num_inputs, num_outputs;
    kn_edge *edges;       /* per input */
    kn_input_spec *input; /* per input */
    bool *needs;          /* per input: does it have an edge? */

    int num_saved;
    kn_tensor **saved; /* aliases outside the record: no reference cycle through an output that was saved */
    unsigned *saved_versions;

    kn_hook *hooks;

    /* During a backward pass only. */
    kn_tensor **gradients; /* per output */
    bool queued;
    uint8_t way;   /* a kn_way, in a pass that looks for certain gradients */
    kn_node *next; /* of a list of nodes to free */
};

/* A tensor's part of the record. */
struct kn_autograd {
    bool requires_grad;
    uint8_t view_kind; /* of a view: a kn_view_kind */
    int output;        /* which output of `node` it is */
    unsigned version;  /* of a view: the storage's when `node` was made */
    kn_node *node;     /* owned: what made the tensor, or its leaf node */
    kn_tensor *grad;   /* owned; leaves only */
    kn_tensor *base;   /* owned; of a view: see autograd/view.h */
};

/* The tensor's part, made if need be; NULL with an error. And its end, with the tensor's. */
struct kn_autograd *kn_autograd_of(kn_tensor *tensor);
void kn_autograd_free(struct kn_autograd *autograd);

/* Does it require gradients, as a leaf or as the result of recorded operations, those that changed it included? */
static inline bool kn_autograd_wants(const kn_tensor *tensor)
{
    return tensor && tensor->autograd &&
           (tensor->autograd->requires_grad || (tensor->autograd->base && kn_view_is_outdated(tensor)));
}

/* The node a gradient of `tensor` goes to; borrowed. That of an outdated view is made anew. NULL with an error. */
kn_node *kn_autograd_node(kn_tensor *tensor);

/* What becomes a node. Any number of tensors, on any devices. */
typedef struct kn_record {
    const kn_op *op;
    const void *params; /* copied, kn_op_record_size bytes */
    kn_tensor *const *inputs;
    int num_inputs;
    kn_tensor *const *outputs; /* they become the node's results; NULL: that one has no gradient */
    int num_outputs;
    kn_tensor *const *saved; /* NULL among them: an empty slot */
    int num_saved;           /* at kn_tape_begin the most there will be; KN_OP_MAX_SAVED is always possible */
    bool again;              /* passes from several results may go through it; only where nothing is saved */
} kn_record;

/* Recording takes two steps. The first, before forward, makes the node (the caller's reference) with an edge to each
 * input: an op in place must not find what its inputs are after the change, and what cannot be recorded must not be
 * changed. The second, with the outputs there, keeps what forward saved and makes the outputs results of the node. */
kn_status kn_tape_begin(kn_node **node, const kn_record *record);
kn_status kn_tape_end(kn_node *node, const kn_record *record);

/* Both, for what is run by hand and whose outputs are there. */
kn_status kn_tape_add(const kn_record *record);

kn_record kn_record_of(const kn_call *call);

/* The same for an op that takes and makes any number of tensors, on any devices: it is run by hand, not by kn_op_apply,
 * which is for ops on one device. Nothing is saved: kn_backward may come from one output after the other. */
kn_status kn_tape_record_many(const kn_op *op, const void *params, kn_tensor *const *inputs, int num_inputs,
                              kn_tensor *const *outputs, int num_outputs);

void kn_node_release(kn_node *node); /* NULL allowed; does not recurse, however long the record is */
void kn_node_free_saved(kn_node *node);

#endif
