/* koine/function.h - user-defined differentiable functions with their own forward and backward, as
 * torch.autograd.Function. Any number of inputs, outputs and saved tensors; built from tensor expressions, user kernels
 * (koine/kernel.h), or both. kn_gradcheck verifies the gradient.
 *
 * x * sigmoid(x) as a kernel, with a second kernel for its gradient:
 *
 *     typedef struct swish_kernels {
 *         kn_user_kernel *forward, *backward;
 *     } swish_kernels;
 *
 *     static kn_status swish_forward(kn_function_context *context, kn_tensor *const *inputs, kn_tensor **outputs)
 *     {
 *         const swish_kernels *kernels = kn_function_params(context);
 *         kn_tensor *x = kn_contiguous(inputs[0]), *y = outputs[0] = kn_empty_like(x);
 *         kn_status status = kn_function_save(context, x);
 *         if (status != KN_OK)
 *             return status;
 *         return kn_kernel_run(kernels->forward,
 *                              KN_KERNEL_ARGS(kn_kernel_output(y), kn_kernel_input(x), kn_kernel_i64(kn_numel(x))),
 *                              .global = {(size_t)kn_numel(x)});
 *     }
 *
 *     static kn_status swish_backward(kn_function_context *context, kn_tensor *const *grad_outputs,
 *                                     kn_tensor **grad_inputs)
 *     {
 *         const swish_kernels *kernels = kn_function_params(context);
 *         kn_tensor *x = kn_function_saved(context, 0);
 *         grad_inputs[0] = kn_empty_like(x);
 *         return kn_kernel_run(kernels->backward,
 *                              KN_KERNEL_ARGS(kn_kernel_output(grad_inputs[0]), kn_kernel_input(x),
 *                                             kn_kernel_input(grad_outputs[0]), kn_kernel_i64(kn_numel(x))),
 *                              .global = {(size_t)kn_numel(x)});
 *     }
 *
 *     static const kn_function swish = {.name = "swish", .forward = swish_forward, .backward = swish_backward,
 *                                       .params_size = sizeof(swish_kernels)};
 *     kn_tensor *y = kn_function_apply(&swish, KN_TENSORS(x), &kernels);
 *
 * The complete program is in docs/jit.md. */
#ifndef KOINE_FUNCTION_H
#define KOINE_FUNCTION_H

#include <koine/common.h>
#include <koine/status.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* One application of a function, with what forward stores for backward. Valid only during the callback that receives
 * it. */
typedef struct kn_function_context kn_function_context;

/* Both callbacks run with gradients disabled (but see twice_differentiable), on the thread that applies the function or
 * calls kn_backward. Tensors they create belong to the program's scope around that call, so they may be stored until
 * that scope ends. They return KN_OK, or the status of an error that is set (by kn_error_set or a failed expression);
 * the library prefixes its message with the function's name.
 *
 * forward sets every element of `outputs` (initially NULL) to a tensor of any shape, dtype and device. An output that
 * shares memory with an input or an earlier output, or itself requires a gradient, is copied. A recorded input must not
 * be changed in place.
 *
 * backward gets the contiguous gradients of the outputs and sets `grad_inputs` (initially NULL): the gradient of each
 * input for which kn_function_needs_grad is true, with the input's shape, dtype and device, or NULL for no gradient.
 * Gradients of other inputs are ignored. */
typedef kn_status (*kn_function_forward)(kn_function_context *context, kn_tensor *const *inputs, kn_tensor **outputs);
typedef kn_status (*kn_function_backward)(kn_function_context *context, kn_tensor *const *grad_outputs,
                                          kn_tensor **grad_inputs);

/* Copied by each application, including the name. Any number of threads may apply a function at once. */
typedef struct kn_function {
    const char *name; /* in messages, profiles and printed tensors */
    kn_function_forward forward;
    kn_function_backward backward; /* NULL: the outputs do not require a gradient */
    /* Called exactly once for each application with its parameters (as changed by forward), when backward can no longer
     * be called, on any thread; at once if nothing was recorded or the application failed. Frees what they point to,
     * not the struct itself. May be NULL. */
    void (*destroy)(void *params);
    /* Backward consists of differentiable operations on grad_outputs and saved tensors, without kernels or kn_read:
     * with create_graph it is recorded, so that the gradients have gradients. Saved inputs and outputs then have their
     * history, other saved tensors are constants, and grad_outputs may have any strides. Default false: create_graph is
     * an error. */
    bool twice_differentiable;
    size_t params_size; /* bytes of the parameter struct, copied for each application; 0: only the pointer is passed */
} kn_function;

/* Applies a function of one output: a tensor expression (koine/tensor.h), NULL with a sticky error. `params` are the
 * parameters, of any type (may be NULL). Inputs may be on any devices, including the host; none may be NULL.
 *
 *     kn_tensor *y = kn_function_apply(&swish, KN_TENSORS(x), &kernels); */
KN_API kn_tensor *kn_function_apply(const kn_function *function, kn_tensor *const *inputs, int num_inputs,
                                    const void *params);

/* The same with any number of outputs: `outputs` gets num_outputs tensors, with the ownership of results, or NULLs with
 * a sticky error. */
KN_API kn_status kn_function_apply_many(const kn_function *function, kn_tensor *const *inputs, int num_inputs,
                                        const void *params, kn_tensor **outputs, int num_outputs);

/* --- for both callbacks ------------------------------------------------------------------------------------------- */

/* This application's parameters: its copy of the struct, which forward may modify for backward, or the pointer itself
 * if params_size is 0. Save tensors that backward needs with kn_function_save: an output stored in the parameters would
 * never be freed. */
KN_API void *kn_function_params(kn_function_context *context);

KN_API int kn_function_num_inputs(const kn_function_context *context);
KN_API int kn_function_num_outputs(const kn_function_context *context);

/* Is the gradient of input `index` needed? False for all if nothing is recorded (KN_NO_GRAD), and for an invalid index.
 * ctx.needs_input_grad. */
KN_API bool kn_function_needs_grad(const kn_function_context *context, int index);

/* --- for forward -------------------------------------------------------------------------------------------------- */

/* Saves a tensor for backward: an input, an output or any other; the first has index 0. Does nothing if nothing is
 * recorded. Changing it in place after forward makes the backward pass fail. ctx.save_for_backward. */
KN_API kn_status kn_function_save(kn_function_context *context, kn_tensor *tensor);

/* Output `index` will not require a gradient (outputs of non-floating dtypes never do). ctx.mark_non_differentiable. */
KN_API kn_status kn_function_mark_non_differentiable(kn_function_context *context, int index);

/* Whether backward gets zeros (true, the default) or NULL for an output without a gradient.
 * ctx.set_materialize_grads. */
KN_API void kn_function_set_materialize_grads(kn_function_context *context, bool materialize);

/* --- for backward ------------------------------------------------------------------------------------------------- */

/* The tensor saved by forward with this index; borrowed. NULL with a sticky error if there is none.
 * ctx.saved_tensors. */
KN_API kn_tensor *kn_function_saved(const kn_function_context *context, int index);
KN_API int kn_function_num_saved(const kn_function_context *context);

KN_END_DECLS

#endif
