/* koine/function.h - recorded operations of your own: a forward and a backward written by the program, as
 * torch.autograd.Function. Any number of inputs, outputs and saved tensors; made of tensor expressions, of kernels of
 * your own (koine/kernel.h), or of both. kn_gradcheck finds a wrong gradient.
 *
 * x * sigmoid(x) as one kernel, and its gradient as another:
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
 * The whole program is in docs/jit.md. */
#ifndef KOINE_FUNCTION_H
#define KOINE_FUNCTION_H

#include <koine/common.h>
#include <koine/status.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* One application of a function: what forward leaves for backward. Valid while a callback that got it runs. */
typedef struct kn_function_context kn_function_context;

/* Both callbacks run with gradients disabled, on the thread that applies the function or calls kn_backward. What they
 * make belongs to the scope that the program opened around that call, so it may be kept until that scope ends. They
 * return KN_OK, or the status of an error, whose message the library puts the function's name in front of (kn_error_set
 * makes one; a failed expression has made it).
 *
 * forward sets every element of `outputs` (which are NULL before) to a tensor of any shape, dtype and device. An output
 * that shares memory with an input or with an output before it, or requires gradients itself, is copied. An input that
 * is being recorded must not be changed in place.
 *
 * backward gets the gradients of the outputs, contiguous, and sets `grad_inputs` (which are NULL before): the gradient
 * of each input that kn_function_needs_grad names, of the input's shape, dtype and device, or NULL where none flows.
 * What it sets for other inputs is ignored. A second derivative through the function does not exist: backward is not
 * recorded, as no backward pass of this library is. */
typedef kn_status (*kn_function_forward)(kn_function_context *context, kn_tensor *const *inputs, kn_tensor **outputs);
typedef kn_status (*kn_function_backward)(kn_function_context *context, kn_tensor *const *grad_outputs,
                                          kn_tensor **grad_inputs);

/* Copied by each application, the name too. Any number of threads may apply one function at once. */
typedef struct kn_function {
    const char *name; /* in messages, profiles and printed tensors */
    kn_function_forward forward;
    kn_function_backward backward; /* NULL: the outputs do not require gradients */
    /* Called exactly once for each application with its parameters (forward's changes included), when backward cannot
     * come any more, on whichever thread that is; at once when nothing was recorded or the application failed. Frees
     * what they point to, not the struct itself. NULL: nothing to do. */
    void (*destroy)(void *params);
    size_t params_size; /* bytes of the parameter struct, copied for each application; 0: the pointer itself goes on */
} kn_function;

/* Applies a function of one output: a tensor expression (koine/ops.h), NULL with an error that sticks. `params` are the
 * parameters, of any type (NULL: none). Inputs may be on any devices, the host included; none may be NULL.
 *
 *     kn_tensor *y = kn_function_apply(&swish, KN_TENSORS(x), &kernels); */
KN_API kn_tensor *kn_function_apply(const kn_function *function, kn_tensor *const *inputs, int num_inputs,
                                    const void *params);

/* The same with any number of outputs: `outputs` gets num_outputs tensors, owned as results are, or NULLs with an error
 * that sticks. */
KN_API kn_status kn_function_apply_many(const kn_function *function, kn_tensor *const *inputs, int num_inputs,
                                        const void *params, kn_tensor **outputs, int num_outputs);

/* --- for both callbacks ------------------------------------------------------------------------------------------- */

/* This application's parameters: its copy of the struct, which forward may change for backward to see, or the very
 * pointer where params_size is 0. A tensor that backward needs goes through kn_function_save: an output kept in the
 * parameters would keep itself alive for ever. */
KN_API void *kn_function_params(kn_function_context *context);

KN_API int kn_function_num_inputs(const kn_function_context *context);
KN_API int kn_function_num_outputs(const kn_function_context *context);

/* Will the gradient of input `index` be wanted? False for all where nothing is recorded (KN_NO_GRAD), and for an index
 * that is none. ctx.needs_input_grad. */
KN_API bool kn_function_needs_grad(const kn_function_context *context, int index);

/* --- for forward -------------------------------------------------------------------------------------------------- */

/* Keeps a tensor for backward, an input, an output or any other; the first is number 0. Where nothing is recorded it
 * does nothing. A change in place after forward is an error of the backward pass. ctx.save_for_backward. */
KN_API kn_status kn_function_save(kn_function_context *context, kn_tensor *tensor);

/* Output `index` will not require gradients (as outputs that are not floating never do).
 * ctx.mark_non_differentiable. */
KN_API kn_status kn_function_mark_non_differentiable(kn_function_context *context, int index);

/* Whether backward gets zeros (true, the default) or NULL for an output that no gradient reached.
 * ctx.set_materialize_grads. */
KN_API void kn_function_set_materialize_grads(kn_function_context *context, bool materialize);

/* --- for backward ------------------------------------------------------------------------------------------------- */

/* Tensor number `index` that forward saved; borrowed. NULL with an error that sticks where there is none.
 * ctx.saved_tensors. */
KN_API kn_tensor *kn_function_saved(const kn_function_context *context, int index);
KN_API int kn_function_num_saved(const kn_function_context *context);

KN_END_DECLS

#endif
