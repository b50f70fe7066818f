/* ops/vmap/dispatch.h - operators whose inputs stand for batches (koine/vmap.h).
 *
 * The operator's rule, if it has one, calls operators on the whole batches. A composition runs as it is: the operators
 * in it come here. Else, or where that fails, the operator is called for each sample. */
#pragma once

#include "ops/dispatch/invoke.h"
#include "tensor/batched.h"

/* One call, at the highest level of its inputs. */
typedef struct kn_vmap_call {
    const kn_op *op;
    const void *params; /* as given by the caller, or the defaults */
    int level;
    int64_t size; /* of the batch */
    int num_inputs;
    kn_tensor **inputs; /* whole batches, along dimension 0, where is_batched; the others are for all samples */
    bool *is_batched;
    int num_outputs;
    kn_tensor **outputs; /* set by the rule: the batches of the results. KN_SKIP_OUTPUT: not wanted */
} kn_vmap_call;

/* Computes the outputs, scope-owned. KN_ERR_BATCHED, without a message: not for these arguments. After any error the
 * operator is called for each sample, which repeats the error for what is wrong with one. */
typedef kn_status (*kn_vmap_rule)(kn_vmap_call *call);
kn_vmap_rule kn_vmap_rule_of(const kn_op *op); /* ops/vmap/rules.c; NULL: none */
