/* autograd/op.h - what an operation is, and how it is applied.
 *
 * An op is one descriptor. kn_op_apply checks the inputs, calls the shape rule, makes the outputs, calls forward, and
 * records the call on the tape when a gradient may be wanted. A descriptor is a constant in its family's file under
 * src/ops, and stands in the list of operators (ops/operators.h). */
#ifndef KN_AUTOGRAD_OP_H
#define KN_AUTOGRAD_OP_H

#include "base/error.h"
#include "rt/trace/spans.h"
#include "tensor/tensor.h"

#define KN_OP_MAX_INPUTS 8
#define KN_OP_MAX_OUTPUTS 8
#define KN_OP_MAX_SAVED 8

typedef struct kn_op kn_op;

/* One application of an op, from shape rule to forward. Optional inputs may be NULL. */
typedef struct kn_call {
    const kn_op *op;
    const void *params;
    kn_stream *stream;
    int num_inputs;
    kn_tensor *inputs[KN_OP_MAX_INPUTS]; /* borrowed */

    /* Set by the shape rule: the outputs that kn_op_apply makes before forward (contiguous, uninitialised, on the
     * inputs' device). */
    int num_outputs;
    struct {
        kn_dtype dtype;
        int ndim;
        int64_t shape[KN_MAX_DIMS];
    } spec[KN_OP_MAX_OUTPUTS];

    kn_tensor *outputs[KN_OP_MAX_OUTPUTS]; /* owned by the call; a view op's forward sets them itself */

    /* Set by forward with kn_call_save: what backward needs, inputs and outputs included. */
    bool needs_grad; /* this call will be recorded: nothing need be saved otherwise */
    int num_saved;
    kn_tensor *saved[KN_OP_MAX_SAVED];
} kn_call;

/* What an input of a recorded call was. */
typedef struct kn_input_spec {
    kn_dtype dtype;
    int ndim;
    int64_t shape[KN_MAX_DIMS];
    kn_device *device;
} kn_input_spec;

/* One step of the backward pass. Runs inside a scope with gradients disabled: temporaries need no release, and backward
 * is written with public operations as well as with kernels. grad_inputs are taken over by the engine before the scope
 * ends. */
typedef struct kn_grad_call {
    const kn_op *op;
    const void *params;
    kn_stream *stream;
    int num_inputs, num_outputs;
    const bool *needs;          /* per input: is its gradient wanted? */
    const kn_input_spec *input; /* what the inputs were */
    /* As forward saved them; borrowed. NULL: an empty slot, and all after them up to KN_OP_MAX_SAVED. */
    kn_tensor *const *saved;
    int num_saved;
    kn_tensor *const *grad_outputs; /* borrowed; contiguous; NULL where no gradient reached that output */
    kn_tensor **grad_inputs; /* set by backward: scope-owned, the input's shape and dtype; NULL where none flows */
} kn_grad_call;

/* The plain C oracle. Inputs and outputs are contiguous host tensors: floating ones in f64, all others in i64; outputs
 * have the spec's shapes and are zeroed (those of an in-place op start as a copy of input 0). Run by the tests and by
 * `koine doctor`. */
typedef kn_status (*kn_op_reference)(const kn_call *call);

struct kn_op {
    const char *name;
    const char *inputs[KN_OP_MAX_INPUTS];      /* their names; "?bias" may be left out or NULL; NULL ends them */
    size_t params_size;                        /* bytes of the parameter struct, copied onto the tape; 0: none */
    void (*params_keep)(void *params);         /* called on that copy: takes references to what it points to. NULL: */
    void (*params_drop)(void *params);         /* plain data. params_drop gives them up; the op may be gone after it */
    bool is_view;                              /* forward sets the outputs itself, sharing input 0's storage */
    bool in_place;                             /* output 0 is input 0, changed */
    bool nondeterministic;                     /* equal inputs may give other bits: see koine/flags.h */
    kn_status (*shape)(kn_call *call);         /* checks params, dtypes and shapes; fills spec */
    kn_status (*forward)(kn_call *call);       /* enqueues the work */
    kn_status (*backward)(kn_grad_call *call); /* NULL: not differentiable */
    kn_op_reference reference;                 /* NULL for views and for what only moves data */
    void *detail; /* what functions that serve several ops need to know of this one; NULL: nothing */

    /* How much the profiler is to count, at least one read of each input and one write of each output: see
     * autograd/work.h. */
    kn_work (*work)(const kn_call *call);               /* NULL: one operation per output element; of views, nothing */
    kn_work (*backward_work)(const kn_grad_call *call); /* NULL: one per element of the gradients made; likewise */
};

/* Applies the op; returns output 0 as public functions do (owned by the scope or the caller; NULL with a sticky error).
 * Further outputs go to `more` (num_outputs - 1 of them, owned alike); pass NULL to drop them. Checks: no required
 * input NULL, all on one device that is not the host. Errors are prefixed with the op's name. */
kn_tensor *kn_op_apply(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params, kn_tensor **more);

/* kn_apply(&op, &params, a, b): the common case. */
#define kn_apply(op, params, ...)                                                                                      \
    kn_op_apply(op, (kn_tensor *const[]){__VA_ARGS__},                                                                 \
                (int)(sizeof((kn_tensor *[]){__VA_ARGS__}) / sizeof(kn_tensor *)), params, NULL)

/* Watches every application of an op on this thread: called before forward (`after` false) and after it (`after` true;
 * outputs enqueued). NULL switches it off. This is how the tests and `koine doctor` hold each op against its reference.
 * A status other than KN_OK fails the op. Returns who watched before. */
typedef kn_status (*kn_op_observer)(kn_call *call, bool after, void *user);
typedef struct kn_op_observation {
    kn_op_observer function;
    void *user;
} kn_op_observation;
kn_op_observation kn_op_set_observer(kn_op_observer observer, void *user);

/* A rehearsal, on this thread: ops check their inputs and make their outputs, filled with zeros, but run no kernels.
 * For finding out shapes and work without the time that computing, or compiling kernels, takes. Returns what was
 * before.
 */
bool kn_op_rehearse(bool on);
bool kn_op_rehearses(void);

/* For shape rules: declares the next output. */
kn_status kn_call_output(kn_call *call, kn_dtype dtype, int ndim, const int64_t *shape);

/* For forward: keeps a tensor for backward (an input, an output, or an owned temporary, which stays the caller's to
 * release). */
kn_status kn_call_save(kn_call *call, kn_tensor *tensor);

/* The same for what only the gradient of input `index` takes: where that is not wanted the slot stays empty (NULL), and
 * the tensor may be freed or changed in place. */
kn_status kn_call_save_for(kn_call *call, int index, kn_tensor *tensor);

/* Is the gradient of input `index` wanted? For forward, of calls with `needs_grad`. */
bool kn_call_needs(const kn_call *call, int index);

/* For shape rules: input `index` has one of the floating dtypes that kernels compute in (f32, f64). */
kn_status kn_call_check_floating(const kn_call *call, int index);
/* All non-NULL inputs from `first` to `last` share one dtype. */
kn_status kn_call_check_same_dtype(const kn_call *call, int first, int last);

#endif
