/* autograd/function_context.h - one application of a function of the program's own (koine/function.h).
 *
 * Each has a descriptor (kn_op) of its own. The call holds the context, and the record does: the pointer to it is the
 * node's parameters. */
#ifndef KN_AUTOGRAD_FUNCTION_CONTEXT_H
#define KN_AUTOGRAD_FUNCTION_CONTEXT_H

#include <koine/function.h>

#include "autograd/tape.h"

/* The arrays lie behind the context in its own block. */
struct kn_function_context {
    atomic_int references;
    kn_op op;
    kn_function function;
    void *params;
    bool recorded;             /* or about to be */
    bool leaves_gradients_out; /* NULL, not zeros, where no gradient came */
    int num_inputs, num_outputs;
    kn_input_spec *output; /* per output, once forward is done: what it was */
    bool *needs;           /* per input */
    bool *no_gradient;     /* per output */

    /* During forward: owned references. They move to the record. */
    kn_tensor **saved;
    int num_saved, capacity;

    const kn_grad_call *grad; /* during backward */
};

/* With one reference, the caller's. Takes the parameters over: on failure they are destroyed. */
kn_function_context *kn_function_context_new(const kn_function *function, int num_inputs, const void *params,
                                             int num_outputs, kn_status (*backward)(kn_grad_call *call));
void kn_function_context_release(kn_function_context *context);
void kn_function_context_drop_saved(kn_function_context *context);

#endif
