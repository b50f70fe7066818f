/* ops/user/jit.h - a user's elementwise operation: the object (jit.c) and how it runs (jit_run.c). */
#ifndef KN_OPS_USER_JIT_H
#define KN_OPS_USER_JIT_H

#include <stdatomic.h>

#include "autograd/op.h"
#include "ops/user/jit_parse.h"
#include "ops/user/jit_source.h"

/* Whether a function builds with T as a vector, by device slot and dtype (f32, f64): found out once. */
typedef enum kn_jit_lanes { KN_JIT_LANES_UNKNOWN, KN_JIT_LANES_YES, KN_JIT_LANES_NO } kn_jit_lanes;

typedef struct kn_jit_function {
    kn_jit_signature signature;
    kn_user_source source;
    atomic_uchar lanes[KN_MAX_DEVICES][2];
} kn_jit_function;

struct kn_jit {
    atomic_int references; /* the user's, and one per record on the tape */
    kn_op op;              /* named after the function; backward NULL without a derivative */
    int num_inputs, num_outputs, num_scalars;
    double defaults[KN_JIT_MAX_SCALARS];
    char *names[KN_JIT_MAX_SCALARS];
    kn_jit_function forward, derivative;
};

/* The parameter struct of the op. */
typedef struct kn_jit_params {
    kn_jit *jit;
    double scalars[KN_JIT_MAX_SCALARS];
} kn_jit_params;

/* jit_run.c: the op's parts. */
kn_status kn_jit_shape(kn_call *call);
kn_status kn_jit_forward(kn_call *call);
kn_status kn_jit_backward(kn_grad_call *grad);
void kn_jit_params_keep(void *params);
void kn_jit_params_drop(void *params);

#endif
