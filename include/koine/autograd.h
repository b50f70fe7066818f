/* koine/autograd.h - gradients by reverse-mode automatic differentiation.
 *
 * While gradients are enabled (the default, per thread), operations with an input that requires a gradient are recorded
 * on a tape. kn_backward traverses the tape backwards and adds to kn_grad of each leaf. Changing a value in place that
 * a later kn_backward needs is an error, detected by version counters.
 *
 * In-place changes are recorded, also those of views (koine/shape.h): a view knows its base, and the base and all its
 * views have the history of their current values. As in PyTorch, while gradients are enabled, KN_ERR_STATE results from
 * changing a leaf that requires a gradient, or a view of one; from changing a view made inside KN_NO_GRAD with a
 * recorded operation, or using it after its base was changed that way; and from the same for chunks of kn_comm_scatter,
 * which is several views at once. */
#ifndef KOINE_AUTOGRAD_H
#define KOINE_AUTOGRAD_H

#include <koine/common.h>
#include <koine/status.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* Computes the gradients of `tensor` (one element) with respect to all leaves. Frees the tape; a second call is
 * KN_ERR_STATE. */
KN_API kn_status kn_backward(kn_tensor *tensor);

/* The same with dL/dtensor given (NULL: 1, for a tensor of one element), keeping the tape if `retain_graph`. */
KN_API kn_status kn_backward_with(kn_tensor *tensor, kn_tensor *gradient, bool retain_graph);

/* torch.autograd.grad: the gradients of `outputs` with respect to `inputs`, leaves or not; gradients[i] is that of
 * inputs[i], owned as results are. Traverses only the operations between them, and changes kn_grad of no tensor.
 *
 *     kn_tensor *slope, *curvature;
 *     kn_autograd_grad(&y, 1, &x, 1, &slope, .create_graph = true);
 *     slope = kn_sum(slope);
 *     kn_autograd_grad(&slope, 1, &x, 1, &curvature);
 *
 * With create_graph the gradients are recorded like any results, so that they have gradients themselves. If an
 * operation does not support that (docs/operators.md: "first"; functions of koine/function.h that are not
 * twice_differentiable; functions of koine/jit.h), the result is KN_ERR_STATE, and the message names it. An input that
 * the outputs do not depend on is KN_ERR_STATE, or NULL with allow_unused. */
typedef struct kn_autograd_grad_params {
    kn_tensor *const *grad_outputs; /* dL/doutput for each output; a NULL entry means 1; default NULL: all 1 */
    bool retain_graph;              /* default false: the tape is freed; create_graph implies true */
    bool create_graph;              /* default false */
    bool allow_unused;              /* default false */
} kn_autograd_grad_params;
#define KN_AUTOGRAD_GRAD_DEFAULTS .grad_outputs = NULL
KN_API kn_autograd_grad_params kn_autograd_grad_params_init(void);
KN_API kn_status kn_autograd_grad_with(kn_tensor *const *outputs, int num_outputs, kn_tensor *const *inputs,
                                       int num_inputs, kn_tensor **gradients, const kn_autograd_grad_params *params);
#define kn_autograd_grad(outputs, num_outputs, inputs, num_inputs, gradients, ...)                                     \
    KN_CALL(kn_autograd_grad_with(outputs, num_outputs, inputs, num_inputs, gradients,                                 \
                                  &(kn_autograd_grad_params){KN_AUTOGRAD_GRAD_DEFAULTS, __VA_ARGS__}))

KN_API kn_tensor *kn_grad(const kn_tensor *tensor); /* borrowed; NULL, without an error, if there is none */
KN_API kn_status kn_set_grad(kn_tensor *tensor, kn_tensor *gradient); /* NULL drops it */
KN_API bool kn_requires_grad(const kn_tensor *tensor);
KN_API bool kn_is_leaf(const kn_tensor *tensor);
/* The name of the operator that recorded a result, such as "add", which kn_to_string shows as grad_fn; valid as long as
 * the tensor is. NULL, without an error, for leaves and for what needs no gradient. */
KN_API const char *kn_grad_fn_name(const kn_tensor *tensor);
/* An error for non-leaves and non-floating dtypes. */
KN_API kn_status kn_set_requires_grad(kn_tensor *tensor, bool requires_grad);
/* torch.Tensor.retain_grad: a result, which has no kn_grad otherwise, keeps it: kn_backward adds to it as to a leaf's.
 * After a change in place it remains the gradient of the value before. No change to a leaf. */
KN_API kn_status kn_retain_grad(kn_tensor *tensor);
KN_API bool kn_retains_grad(const kn_tensor *tensor); /* was it called for a result? */
/* Shares the storage but not the history: an in-place change of either shows in both, but is recorded only for that
 * one. */
KN_API kn_tensor *kn_detach(kn_tensor *tensor);

/* Per thread. kn_set_grad_enabled returns the previous setting. */
KN_API bool kn_grad_enabled(void);
KN_API bool kn_set_grad_enabled(bool enabled);

/* Turns recording off to the end of the enclosing block, as torch.no_grad() does (a guard: koine/common.h). */
#define KN_NO_GRAD KN_GUARD(bool, kn_no_grad_, kn_set_grad_enabled(false), kn_no_grad_leave)
static inline void kn_no_grad_leave(bool *before) { kn_set_grad_enabled(*before); }

/* Calls `hook` with each gradient that reaches `tensor` in a backward pass; it returns the gradient to continue with
 * (its argument to leave it unchanged, NULL for an error). Tensors created by the hook belong to the scope around
 * kn_backward. Several hooks run in the order in which they were added. They live as long as the tensor, or the tape it
 * is part of. */
typedef kn_tensor *(*kn_grad_hook)(kn_tensor *gradient, void *user);
KN_API kn_status kn_register_hook(kn_tensor *tensor, kn_grad_hook hook, void *user);

/* The same, taking ownership of `user`: `destroy` is called with it exactly once, when the hook is freed (on the thread
 * that drops the last reference), or at once if it cannot be registered. */
KN_API kn_status kn_register_hook_with(kn_tensor *tensor, kn_grad_hook hook, void *user, void (*destroy)(void *user));

/* Calls `hook` with a leaf each time a backward pass has added to its gradient, which the hook may use and drop: to
 * apply an optimizer to each parameter as soon as possible, for example. kn_autograd_grad, which changes no gradient,
 * calls none. torch.Tensor.register_post_accumulate_grad_hook. `destroy` (NULL allowed) as in kn_register_hook_with. */
typedef kn_status (*kn_post_accumulate_grad_hook)(kn_tensor *tensor, void *user);
KN_API kn_status kn_register_post_accumulate_grad_hook(kn_tensor *tensor, kn_post_accumulate_grad_hook hook, void *user,
                                                       void (*destroy)(void *user));

/* Compares the gradients of `function` with central differences at `inputs` (f64; those that require a gradient are
 * checked). The output may have any shape and is weighted with fixed random numbers. KN_OK if every element is within
 * atol + rtol * |numeric|; KN_ERR_NUMERIC names the first that is not. With `fast_mode` it is not every element that is
 * checked but each input's derivative along two random directions, which finds what is wrong in any element and calls
 * `function` four times per input. torch.autograd.gradcheck. */
typedef struct kn_gradcheck_params {
    double eps, atol, rtol; /* defaults 1e-6, 1e-5, 1e-3, as in PyTorch; 0 also means the default */
    bool fast_mode;
} kn_gradcheck_params;
#define KN_GRADCHECK_DEFAULTS .eps = 1e-6, .atol = 1e-5, .rtol = 1e-3
KN_API kn_gradcheck_params kn_gradcheck_params_init(void);
typedef kn_tensor *(*kn_gradcheck_function)(kn_tensor *const *inputs, void *user);
KN_API kn_status kn_gradcheck(kn_gradcheck_function function, void *user, kn_tensor *const *inputs, int num_inputs,
                              const kn_gradcheck_params *params);

/* The same for second derivatives (kn_autograd_grad with create_graph), with respect to the inputs and dL/doutput. */
KN_API kn_status kn_gradgradcheck(kn_gradcheck_function function, void *user, kn_tensor *const *inputs, int num_inputs,
                                  const kn_gradcheck_params *params);

KN_END_DECLS

#endif
