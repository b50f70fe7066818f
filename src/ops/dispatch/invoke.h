/* ops/dispatch/invoke.h - calls an operator with its descriptor's parameters and inputs in any dtypes that it accepts.
 * All public functions, kn_op_call and modules come through here.
 *
 * NULL parameters become the defaults, and ranges are checked. Then the operator's `enter` may translate the
 * parameters: dimensions counted from the front, a geometry, a draw of random numbers. Then float16 and bfloat16 are
 * widened, if the op asks for it, and the op is applied (autograd/op.h). */
#pragma once

#include "autograd/op.h"

#define KN_ENTRY_SPACE 512

/* A call before the op is applied. */
struct kn_entry {
    const kn_op *op;    /* `enter` may substitute an equivalent one */
    const void *params; /* the caller's, or the defaults */
    kn_dtype autocast;  /* what floating inputs are converted to before `enter`; KN_DTYPE_DEFAULT: nothing */
    kn_tensor **inputs; /* the entry's own array: `enter` may change it */
    int num_inputs;
    const void *record; /* the op's parameters: `params`, unless `enter` makes a record */
    _Alignas(max_align_t) unsigned char space[KN_ENTRY_SPACE];
    kn_tensor *const *outputs; /* as given by the caller */
    int num_outputs;
    kn_tensor *result; /* set by `enter` to skip the op: owned like a public function's result */
};

/* For `enter`: returns input 0 itself as the result. */
kn_status kn_entry_return_input(kn_entry *entry);

/* Does the caller want this output? For ops with .skips_outputs. */
static inline bool kn_entry_wants(const kn_entry *entry, int output)
{
    return output < entry->num_outputs && entry->outputs[output] != KN_SKIP_OUTPUT;
}

/* Space for the record of `enter`: `size` bytes, zeroed, at most KN_ENTRY_SPACE. */
void *kn_entry_record(kn_entry *entry, size_t size);

/* *from_front = `dim` of `ndim` dimensions; negative ones count from the end. */
kn_status kn_dim_from_front(int *from_front, int64_t dim, int ndim);

/* Are the values of an operator's parameters in range? The error names the parameter, its value and the range. */
kn_status kn_op_check_params(const kn_op *op, const void *params);

/* Rows shared by several operators, and the `enter` of those along one dimension: its record is a kn_dim_args with the
 * dimension counted from the front. */
extern const kn_op_param kn_dim_rows[1], kn_shape_rows[1], kn_value_rows[1];
kn_status kn_dim_enter(kn_entry *entry);

/* Returns output 0 as public functions do: owned by the scope or the caller; NULL with a sticky error. */
kn_tensor *kn_op_invoke(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params);

/* With outputs as in kn_op_apply_to. */
kn_status kn_op_invoke_to(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params,
                          kn_tensor **outputs, int num_outputs);

/* The same where an input stands for a batch (tensor/batched.h); set by ops/vmap/dispatch.c. */
typedef kn_status (*kn_op_invoker)(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params,
                                   kn_tensor **outputs, int num_outputs);
extern kn_op_invoker kn_op_invoke_batched;

/* The same without looking for such inputs, or for missing ones. */
kn_status kn_op_invoke_unbatched(const kn_op *op, kn_tensor *const *inputs, int num_inputs, const void *params,
                                 kn_tensor **outputs, int num_outputs);

/* kn_invoke(&kn_softmax_op, &params, x): the common case. */
#define kn_invoke(op, params, ...)                                                                                     \
    kn_op_invoke(op, (kn_tensor *const[]){__VA_ARGS__},                                                                \
                 (int)(sizeof((kn_tensor *[]){__VA_ARGS__}) / sizeof(kn_tensor *)), params)
