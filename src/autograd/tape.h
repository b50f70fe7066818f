/* autograd/tape.h - the recorded operations that kn_backward walks.
 *
 * Each recorded application is a node. It keeps what backward needs: the op and its parameters, the saved tensors, and
 * one edge per input to the node that made it. A leaf that requires gradients has a node without an op, which
 * accumulates into kn_grad. Nodes are numbered in order of creation, so a node's inputs have smaller numbers:
 * descending number is a topological order. */
#pragma once

#include <koine/autograd.h>

#include "autograd/op.h"
#include "autograd/view.h"

typedef struct kn_node kn_node;

/* Links a node to a result that is to keep its gradient (kn_retain_grad), which neither owns. */
typedef struct kn_keeper {
    atomic_int references; /* the node's hook and the tensor */
    kn_tensor *tensor;     /* NULL once it is freed */
} kn_keeper;

/* One of the first three is set. */
typedef struct kn_hook {
    kn_grad_hook function;
    kn_post_accumulate_grad_hook accumulated; /* of a leaf */
    kn_keeper *keeper;
    void *user;
    void (*destroy)(void *user); /* called when the node is freed; may be NULL */
    int output;                  /* which output of the node */
    struct kn_hook *next;
} kn_hook;

/* Where a node leads, in a pass that computes the gradients of certain outputs only. */
typedef enum kn_mark {
    KN_MARK_NONE,     /* in a pass over all leaves */
    KN_MARK_OFF_PATH, /* to none of them */
    KN_MARK_WANTED,   /* it is one of them and leads to no other */
    KN_MARK_ON_PATH,  /* to others further on */
    KN_MARK_VISITED   /* while the marks are being set */
} kn_mark;

typedef struct kn_edge {
    kn_node *node; /* owned; NULL: no gradient needed */
    int output;
} kn_edge;

struct kn_node {
    atomic_int references;
    uint64_t number; /* 0 for leaves: they come last, unless they are complete before (leaf_uses.c) */
    const kn_op *op; /* NULL: a leaf */
    kn_tensor *leaf; /* a leaf's node: borrowed, NULL once the leaf is freed */
    /* the op changed this part of output 0 in place: edge 0 and the gradient belong to the base, input 0 is the view;
     * NULL: all of it */
    kn_base_slice *slice;
    void *params;
    bool released; /* a backward pass has freed what was saved */
    bool reusable; /* nothing was saved: passes from several results may run it */

    /* The arrays follow the node in the same allocation; ops on a list of tensors have many inputs. */
    int num_inputs, num_outputs;
    kn_edge *edges;       /* per input */
    kn_input_spec *input; /* per input */
    bool *needs;          /* per input: does it have an edge? */

    int num_saved;
    kn_tensor **saved; /* unrecorded aliases: no reference cycle through a saved output */
    unsigned *saved_versions;

    kn_hook *hooks;

    /* A leaf's gradient is complete as soon as all nodes that use it have run (leaf_uses.c). */
    atomic_int uses;    /* of a leaf: edges of living nodes to it */
    atomic_int ran;     /* those of nodes that `pass` has run */
    atomic_ullong pass; /* the last one that reached it: a leaf, or a node that has run */

    /* During a backward pass only. */
    kn_tensor **gradients;  /* per output */
    struct kn_whole *whole; /* a gradient of which only parts have arrived, or NULL (whole.h) */
    bool queued;
    uint8_t mark;  /* a kn_mark, in a pass for certain gradients */
    kn_node *next; /* in a list of nodes to free */
};

/* A tensor's autograd state. */
struct kn_autograd {
    bool requires_grad;
    uint8_t view_kind; /* views: a kn_view_kind */
    int output;        /* which output of `node` it is */
    unsigned version;  /* views: the storage's version when `node` was made */
    kn_node *node;     /* owned: the node that made the tensor, or its leaf node */
    kn_tensor *grad;   /* owned; of leaves, and results with a keeper */
    kn_keeper *keeper; /* of a result that keeps its gradient */
    kn_tensor *base;   /* owned; views: see autograd/view.h */
};

/* The tensor's autograd state, created on demand; NULL with an error. */
struct kn_autograd *kn_autograd_of(kn_tensor *tensor);
void kn_autograd_free(struct kn_autograd *autograd);

/* NULL allowed. */
void kn_keeper_release(void *keeper);

/* Does it require gradients, as a leaf or as the result of recorded operations, including changes in place? */
static inline bool kn_autograd_wants(const kn_tensor *tensor)
{
    while (tensor && tensor->whole)
        tensor = tensor->whole;
    return tensor && tensor->autograd &&
           (tensor->autograd->requires_grad || (tensor->autograd->base && kn_view_is_outdated(tensor)));
}

/* The node that receives the gradient of `tensor`; borrowed. An outdated view gets a new one. NULL with an error. */
kn_node *kn_autograd_node(kn_tensor *tensor);

/* What a node is made from. Any number of tensors, on any devices. */
typedef struct kn_record {
    const kn_op *op;
    const void *params; /* copied, kn_op_record_size bytes */
    kn_tensor *const *inputs;
    int num_inputs;
    kn_tensor *const *outputs; /* become results of the node; NULL: one without a gradient */
    int num_outputs;
    kn_tensor *const *saved; /* NULL: an empty slot */
    int num_saved;           /* at kn_tape_begin an upper bound; KN_OP_MAX_SAVED is always allowed */
    bool reusable;           /* passes from several results may run it; only if nothing is saved */
} kn_record;

/* Recording takes two steps. The first, before forward, makes the node (one reference, the caller's) with an edge to
 * each input: an in-place op must record its inputs as they were before the change, and must not change anything that
 * cannot be recorded. The second, after forward, keeps the saved tensors and makes the outputs results of the node. */
kn_status kn_tape_begin(kn_node **node, const kn_record *record);
kn_status kn_tape_end(kn_node *node, const kn_record *record);

/* Both, for an op run by hand whose outputs exist already. */
kn_status kn_tape_add(const kn_record *record);

kn_record kn_record_of(const kn_call *call);

/* The same for an op with any number of inputs and outputs, on any devices, run by hand because kn_op_apply is for ops
 * on one device. Nothing is saved: kn_backward may be called from one output after the other. */
kn_status kn_tape_record_many(const kn_op *op, const void *params, kn_tensor *const *inputs, int num_inputs,
                              kn_tensor *const *outputs, int num_outputs);

/* leaf_uses.c: an edge to a leaf was made; the node, whose edges they are, is freed, or has been run by the pass. */
void kn_leaf_add_use(kn_node *leaf);
void kn_leaf_drop_use(kn_node *leaf, kn_node *node);
void kn_leaf_note_run(kn_node *node, uint64_t pass);
bool kn_leaf_is_complete(kn_node *leaf, uint64_t pass);

void kn_node_release(kn_node *node); /* NULL allowed; does not recurse, however long the tape */
void kn_node_free_saved(kn_node *node);
