/* ops/user/jit.h - user-defined elementwise operations: the object (jit.c), its code for the pointwise engine
 * (jit_code.c), running it (jit_run.c), and running functions of many tensors (jit_packed.c). */
#pragma once

#include <stdatomic.h>

#include "autograd/op.h"
#include "loops/pointwise.h"
#include "ops/user/jit_parse.h"

#define KN_JIT_FEW 8 /* inputs, and outputs, that functions for the pointwise engine have at most */
#define KN_JIT_PACKED_PREFIX "packed_"

/* Whether a function builds with T as a vector, per device slot and dtype (f32, f64): determined once. */
typedef enum kn_jit_lanes { KN_JIT_LANES_UNKNOWN, KN_JIT_LANES_YES, KN_JIT_LANES_NO } kn_jit_lanes;

typedef struct kn_jit_function {
    kn_jit_signature signature;
    const char *name;             /* the function's; valid until the process ends, since records and profiles use it */
    char *functions, *statements; /* the user's code; the call */
    char inputs[2 * KN_JIT_FEW + 1], numbers[KN_JIT_MAX_SCALARS + 1], number_types[KN_JIT_MAX_SCALARS + 1];
    kn_pointwise_code elements, vectors;
    atomic_uchar lanes[KN_MAX_DEVICES][2];
    kn_written_kernels packed; /* with more than KN_JIT_FEW inputs or outputs; one per dtype */
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

static inline bool kn_jit_is_packed(const kn_jit *jit)
{
    return jit->num_inputs > KN_JIT_FEW || jit->num_outputs > KN_JIT_FEW;
}

/* jit_code.c: fills in the code for the engine, or for jit_packed.c, from the signature and the user's code. `helpers`:
 * code that comes first, or NULL. */
kn_status kn_jit_function_init(kn_jit_function *function, bool is_packed, const char *helpers, const char *helpers_name,
                               const char *code);
void kn_jit_function_free(kn_jit_function *function);

/* jit.c: the reference held by a record's copy of the params. */
void kn_jit_record_keep(void *params);
void kn_jit_record_drop(void *params);

/* jit_run.c: the op's parts. */
kn_status kn_jit_check_dtype(const kn_call *call);
kn_status kn_jit_shape(kn_call *call);
kn_status kn_jit_forward(kn_call *call);
kn_status kn_jit_backward(kn_grad_call *grad);

/* jit_packed.c: the same. The output is [outputs, elements]. */
kn_status kn_jit_packed_shape(kn_call *call);
kn_status kn_jit_packed_forward(kn_call *call);
kn_status kn_jit_packed_backward(kn_grad_call *grad);
