/* koine/hook.h - functions that run whenever a module is applied, or a gradient passes through it: torch.nn.Module's
 * register_forward_pre_hook, register_forward_hook, register_full_backward_pre_hook and register_full_backward_hook.
 *
 *     static kn_status print_shape(kn_module *module, kn_tensor *const *inputs, int num_inputs, kn_tensor **outputs,
 *                                  int num_outputs, void *user)
 *     {
 *         printf("%s: %lld\n", (const char *)user, (long long)kn_numel(outputs[0]));
 *         return KN_OK;
 *     }
 *     kn_hook_handle hook = kn_module_register_forward_hook(net, print_shape, .user = "net");
 *     ...
 *     kn_module_remove_hook(net, hook);
 *
 * A hook that replaces an entry of the array it may write changes what the module receives or returns; the new tensor
 * is owned as a result is. Inputs and outputs are valid during the call; kn_retain keeps them. Hooks of one kind run in
 * the order of registration. A status other than KN_OK ends the pass with that error. Registering and removing while
 * another thread applies the module is not allowed; a hook may remove itself.
 *
 * Around one application: forward pre-hooks, the module, forward hooks; in the backward pass: backward pre-hooks, the
 * module's gradients, backward hooks. A module with hooks does not apply a following activation in the same pass, so
 * that hooks see its own outputs.
 *
 * Elsewhere. Replicas (kn_module_replicate, kn_nn_data_parallel) have the hooks of their module: forward hooks get the
 * replica, backward hooks the module itself. A checkpointed module's hooks, and those of the modules in it, run in both
 * forward passes, in the second with a replica, and the backward hooks once. kn_make_graphed_callable refuses modules
 * with hooks; hooks added to it afterwards run around each replay, those of the modules in it do not. Summaries run
 * none. kn_multihead_attention and the Transformer's layers run those of the modules in an attention module, not its
 * own. */
#ifndef KOINE_HOOK_H
#define KOINE_HOOK_H

#include <koine/common.h>
#include <koine/module.h>
#include <koine/status.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

/* Identifies a registered hook of a module; 0: none. */
typedef uint64_t kn_hook_handle;

typedef struct kn_module_hook_params {
    void *user;                  /* default NULL; passed to the hook */
    void (*destroy)(void *user); /* default NULL; called once with `user`, when the hook is freed or on failure */
    bool prepend;                /* default false; true: runs before those registered earlier */
} kn_module_hook_params;
#define KN_MODULE_HOOK_DEFAULTS .user = NULL
KN_API kn_module_hook_params kn_module_hook_params_init(void);

/* May replace inputs. Omitted optional inputs are NULL. */
typedef kn_status (*kn_forward_pre_hook)(kn_module *module, kn_tensor **inputs, int num_inputs, void *user);
/* May replace outputs. */
typedef kn_status (*kn_forward_hook)(kn_module *module, kn_tensor *const *inputs, int num_inputs, kn_tensor **outputs,
                                     int num_outputs, void *user);
/* Runs when the gradients of all outputs are known, before they pass through the module. May replace them; NULL: an
 * output without a gradient. */
typedef kn_status (*kn_backward_pre_hook)(kn_module *module, kn_tensor **grad_outputs, int num_outputs, void *user);
/* Runs when the gradients of the inputs are known; NULL: an input without a gradient. May replace those that are not
 * NULL. If no input requires a gradient, runs with those of the outputs. Does not run if the gradient reached the
 * inputs past the outputs, as in the backward pass of a gradient (create_graph). */
typedef kn_status (*kn_backward_hook)(kn_module *module, kn_tensor **grad_inputs, int num_inputs,
                                      kn_tensor *const *grad_outputs, int num_outputs, void *user);

/* Return 0 with a sticky error on failure. params NULL: the defaults. */
KN_API kn_hook_handle kn_module_register_forward_pre_hook_with(kn_module *module, kn_forward_pre_hook hook,
                                                               const kn_module_hook_params *params);
KN_API kn_hook_handle kn_module_register_forward_hook_with(kn_module *module, kn_forward_hook hook,
                                                           const kn_module_hook_params *params);
KN_API kn_hook_handle kn_module_register_full_backward_pre_hook_with(kn_module *module, kn_backward_pre_hook hook,
                                                                     const kn_module_hook_params *params);
/* Backward hooks run while gradients are disabled, unless the pass has create_graph. Until the backward pass the module
 * must exist. */
KN_API kn_hook_handle kn_module_register_full_backward_hook_with(kn_module *module, kn_backward_hook hook,
                                                                 const kn_module_hook_params *params);
#define kn_module_register_forward_pre_hook(module, hook, ...)                                                         \
    KN_CALL(kn_module_register_forward_pre_hook_with(module, hook,                                                     \
                                                     &(kn_module_hook_params){KN_MODULE_HOOK_DEFAULTS, __VA_ARGS__}))
#define kn_module_register_forward_hook(module, hook, ...)                                                             \
    KN_CALL(kn_module_register_forward_hook_with(module, hook,                                                         \
                                                 &(kn_module_hook_params){KN_MODULE_HOOK_DEFAULTS, __VA_ARGS__}))
#define kn_module_register_full_backward_pre_hook(module, hook, ...)                                                   \
    KN_CALL(kn_module_register_full_backward_pre_hook_with(                                                            \
        module, hook, &(kn_module_hook_params){KN_MODULE_HOOK_DEFAULTS, __VA_ARGS__}))
#define kn_module_register_full_backward_hook(module, hook, ...)                                                       \
    KN_CALL(kn_module_register_full_backward_hook_with(                                                                \
        module, hook, &(kn_module_hook_params){KN_MODULE_HOOK_DEFAULTS, __VA_ARGS__}))

/* handle.remove(): the hook runs no more. A handle that is not registered (any more) is ignored. Backward passes of
 * earlier calls of the module still run it. */
KN_API kn_status kn_module_remove_hook(kn_module *module, kn_hook_handle handle);

KN_END_DECLS

#endif
