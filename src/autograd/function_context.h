/* autograd/function_context.h - one application of a user-defined function (koine/function.h).
 *
 * Each has its own descriptor (kn_op). Both the call and the tape node hold a reference; the node's parameters are the
 * pointer to it. */
#pragma once

#include <koine/function.h>

#include "autograd/tape.h"

/* The arrays follow the context in the same allocation. */
struct kn_function_context {
    atomic_int references;
    kn_op op;
    kn_function function;
    void *params;
    bool recorded;             /* or about to be */
    bool leaves_gradients_out; /* missing gradients are NULL, not zeros */
    int num_inputs, num_outputs;
    kn_input_spec *output; /* per output, set after forward: its dtype, shape and device */
    bool *needs;           /* per input */
    bool *no_gradient;     /* per output */

    /* During forward: owned references, which move to the tape. */
    kn_tensor **saved;
    int num_saved, capacity;
    int *sources; /* per saved tensor: input i is i, output i is num_inputs + i, others -1; NULL: none is known */

    const kn_grad_call *grad; /* during backward */
};

/* Returns one reference, the caller's. Takes ownership of the parameters: on failure they are destroyed. */
kn_function_context *kn_function_context_new(const kn_function *function, int num_inputs, const void *params,
                                             int num_outputs, kn_status (*backward)(kn_grad_call *call));
void kn_function_context_release(kn_function_context *context);
void kn_function_context_drop_saved(kn_function_context *context);
