/* koine/jit.h - elementwise operations from code given at run time, as torch.cuda.jiterator.
 *
 *     kn_jit *scaled_gelu = kn_jit_elementwise(
 *         "T scaled_gelu(T x, T scale, T alpha) { return alpha * scale * x / (1 + exp(-1.702f * x)); }",
 *         .scalars = {{"alpha", 1}});
 *     kn_tensor *y = kn_jit_call(scaled_gelu, KN_JIT_INPUTS(x, scale), .scalars = {{"alpha", 0.5}});
 *     kn_jit_free(scaled_gelu);
 *
 * The code is OpenCL C, in which T stands for the dtype of the tensors. Its last function is the operation; it may use
 * the helper functions and macros before it:
 *
 *   `T x`          an input: an element of a tensor. One or more
 *   `T *y`         an output, if there are several: `void f(T x, T y, T *sum, T *difference)`
 *   `T alpha`      a scalar rather than a tensor, if named in `.scalars`: T, float, double, int or long. At most 8
 *   `return`       the output, if there is one: `T f(T x)`
 *
 * A function has up to 512 parameters. One with more than 8 inputs or outputs copies its inputs first, and its outputs
 * are views of one tensor.
 *
 * Inputs broadcast as in NumPy and are converted to their promoted dtype, which is T and the dtype of the outputs;
 * float16 and bfloat16 are computed in float32. Literals like 0.5 have single precision unless T is double; where
 * OpenCL needs arguments of the same type, as in fmax and pow, write (T)0. PyTorch's spelling, `template <typename T> T
 * f(T x)`, is accepted.
 *
 * Recursion is not allowed, nor are functions of work-items such as get_global_id: how many elements a work-item takes
 * depends on the device. Names that begin with jit_, JIT_, kn_ or KN_ are reserved. */
#ifndef KOINE_JIT_H
#define KOINE_JIT_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

#define KN_JIT_MAX_SCALARS 8

/* An operation. Immutable: any number of threads may call it at once. */
typedef struct kn_jit kn_jit;

typedef struct kn_jit_scalar {
    const char *name; /* of the parameter in the code; NULL ends the list */
    double value;
} kn_jit_scalar;

typedef struct kn_jit_params {
    /* Default NULL: not differentiable, so the result does not require a gradient, as in PyTorch. Else the code of a
     * function that computes the gradients of the inputs; its parameters are the inputs, then the gradient of each
     * output, all T by value; then a pointer for the gradient of each input:
     *
     *     "void df(T x, T y, T grad, T *grad_x, T *grad_y) { *grad_x = grad * y; *grad_y = grad * x; }"
     *
     * With one input it may return the gradient instead. It may also have scalar parameters, by name. It is compiled
     * after the code and may call its functions. */
    const char *derivative;
    /* The scalar parameters and their default values. */
    kn_jit_scalar scalars[KN_JIT_MAX_SCALARS];
} kn_jit_params;
#define KN_JIT_DEFAULTS .derivative = NULL
KN_API kn_jit_params kn_jit_params_init(void);

/* The operation of `code`. It is compiled at the first call for each dtype and device, once per process, and stored in
 * the program cache on disk. The strings are copied. The caller frees it. NULL with an error if the signatures are not
 * as described above; an error inside a function is reported by the first call, with the line. */
KN_API kn_jit *kn_jit_elementwise_with(const char *code, const kn_jit_params *params);
#define kn_jit_elementwise(code, ...)                                                                                  \
    KN_CALL(kn_jit_elementwise_with(code, &(kn_jit_params){KN_JIT_DEFAULTS, __VA_ARGS__}))

/* NULL is allowed. Recorded uses of the operation stay valid for a later kn_backward. */
KN_API void kn_jit_free(kn_jit *jit);

KN_API const char *kn_jit_name(const kn_jit *jit); /* the function's; valid until the process ends; NULL for NULL */
KN_API int kn_jit_num_inputs(const kn_jit *jit);   /* 0 for NULL */
KN_API int kn_jit_num_outputs(const kn_jit *jit);

#define KN_JIT_INPUTS(...) KN_TENSORS(__VA_ARGS__) /* the inputs of a call: two arguments */

typedef struct kn_jit_call_params {
    kn_jit_scalar scalars[KN_JIT_MAX_SCALARS]; /* scalars of this call; the others have their defaults */
    /* Receives outputs 1, 2, ..., owned as results are, or NULLs on failure. Default NULL: they are dropped. */
    kn_tensor **more;
} kn_jit_call_params;
#define KN_JIT_CALL_DEFAULTS .more = NULL
KN_API kn_jit_call_params kn_jit_call_params_init(void);

/* A tensor expression (koine/tensor.h) that returns output 0; the others are returned in `more`. Differentiable if a
 * derivative was given. NULL for a NULL `jit` or input. */
KN_API kn_tensor *kn_jit_call_with(const kn_jit *jit, kn_tensor *const *inputs, int num_inputs,
                                   const kn_jit_call_params *params);
#define kn_jit_call(jit, inputs, ...)                                                                                  \
    KN_CALL(kn_jit_call_with(jit, inputs, &(kn_jit_call_params){KN_JIT_CALL_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
