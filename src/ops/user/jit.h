/* ops/user/jit.h - user-defined elementwise operations: the object (jit.c), its code for the pointwise engine
 * (jit_code.c), and running it (jit_run.c). */
#ifndef KN_OPS_USER_JIT_H
#define KN_OPS_USER_JIT_H

#include <stdatomic.h>

#include "autograd/op.h"
#include "loops/pointwise.h"
#include "ops/user/jit_parse.h"

/* Whether a function builds with T as a vector, per device slot and dtype (f32, f64): determined once. */
typedef enum kn_jit_lanes { KN_JIT_LANES_UNKNOWN, KN_JIT_LANES_YES, KN_JIT_LANES_NO } kn_jit_lanes;

typedef struct kn_jit_function {
    kn_jit_signature signature;
    const char *name;             /* the function's; valid until the process ends, since records and profiles use it */
    char *functions, *statements; /* the user's code; the call */
    char inputs[KN_JIT_MAX_VALUES + 1], numbers[KN_JIT_MAX_SCALARS + 1], number_types[KN_JIT_MAX_SCALARS + 1];
    kn_pointwise_code elements, vectors;
    atomic_uchar lanes[KN_MAX_DEVICES][2];
} kn_jit_function;

struct kn_jit {
    atomic_int references; /* the user's, and one for each record on the tape */
    kn_op op;              /* named after the function; backward is NULL without a derivative */
    int num_inputs, num_outputs, num_scalars;
    double defaults[KN_JIT_MAX_SCALARS];
    char *names[KN_JIT_MAX_SCALARS];
    kn_jit_function forward, derivative;
};

/* The parameter struct of the op. */
typedef struct kn_jit_record {
    kn_jit *jit;
    double scalars[KN_JIT_MAX_SCALARS];
} kn_jit_record;

/* jit_code.c: fills in the engine's code from the signature and the user's code. `helpers`: code that comes first, or
 * NULL. */
kn_status kn_jit_function_init(kn_jit_function *function, const char *helpers, const char *helpers_name,
                               const char *code);
void kn_jit_function_free(kn_jit_function *function);

/* jit.c: the reference held by a record's copy of the params. */
void kn_jit_record_keep(void *params);
void kn_jit_record_drop(void *params);

/* jit_run.c: the op's parts. */
kn_status kn_jit_shape(kn_call *call);
kn_status kn_jit_forward(kn_call *call);
kn_status kn_jit_backward(kn_grad_call *grad);

#endif
