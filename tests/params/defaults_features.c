/* defaults_features.c - what changes a module that exists: hooks, parametrizations, pruning. */
#include "defaults.h"

/* A module to change, or NULL with an error; show_module frees it. */
static kn_module *changed;
static kn_module *fresh(void)
{
    changed = kn_nn_linear(.in_features = 3, .out_features = 2);
    return changed;
}
static kn_module *after(kn_status status)
{
    if (status == KN_OK)
        return changed;
    kn_module_free(changed);
    return NULL;
}
static kn_module *with_hook(kn_hook_handle hook) { return after(hook != 0 ? KN_OK : KN_ERR_ARGUMENT); }

static kn_status pre(kn_module *module, kn_tensor **inputs, int num_inputs, void *user)
{
    (void)module, (void)inputs, (void)num_inputs, (void)user;
    return KN_OK;
}
static kn_status forward(kn_module *module, kn_tensor *const *inputs, int num_inputs, kn_tensor **outputs,
                         int num_outputs, void *user)
{
    (void)module, (void)inputs, (void)num_inputs, (void)outputs, (void)num_outputs, (void)user;
    return KN_OK;
}
static kn_status backward(kn_module *module, kn_tensor **grad_inputs, int num_inputs, kn_tensor *const *grad_outputs,
                          int num_outputs, void *user)
{
    (void)module, (void)grad_inputs, (void)num_inputs, (void)grad_outputs, (void)num_outputs, (void)user;
    return KN_OK;
}

CALLS(kn_module_register_forward_pre_hook, kn_module_hook_params, show_module,
      with_hook(kn_module_register_forward_pre_hook_with(fresh(), pre, params)),
      with_hook(kn_module_register_forward_pre_hook(fresh(), pre)))
CALLS(kn_module_register_forward_hook, kn_module_hook_params, show_module,
      with_hook(kn_module_register_forward_hook_with(fresh(), forward, params)),
      with_hook(kn_module_register_forward_hook(fresh(), forward)))
CALLS(kn_module_register_full_backward_pre_hook, kn_module_hook_params, show_module,
      with_hook(kn_module_register_full_backward_pre_hook_with(fresh(), pre, params)),
      with_hook(kn_module_register_full_backward_pre_hook(fresh(), pre)))
CALLS(kn_module_register_full_backward_hook, kn_module_hook_params, show_module,
      with_hook(kn_module_register_full_backward_hook_with(fresh(), backward, params)),
      with_hook(kn_module_register_full_backward_hook(fresh(), backward)))

CALLS(kn_parametrize_register_parametrization, kn_register_parametrization_params, show_module,
      after(kn_parametrize_register_parametrization_with(fresh(), "weight", kn_nn_softplus(), params)),
      after(kn_parametrize_register_parametrization(fresh(), "weight", kn_nn_softplus())))
CALLS(kn_parametrizations_weight_norm, kn_weight_norm_params, show_module,
      after(kn_parametrizations_weight_norm_with(fresh(), "weight", params)),
      after(kn_parametrizations_weight_norm(fresh(), "weight")))
CALLS(kn_parametrizations_spectral_norm, kn_spectral_norm_params, show_module,
      after(kn_parametrizations_spectral_norm_with(fresh(), "weight", params)),
      after(kn_parametrizations_spectral_norm(fresh(), "weight")))

CALLS(kn_prune_l1_unstructured, kn_prune_params, show_module,
      after(kn_prune_l1_unstructured_with(fresh(), "weight", kn_scalar_int(2), params)),
      after(kn_prune_l1_unstructured(fresh(), "weight", 2)))
CALLS(kn_prune_random_unstructured, kn_prune_params, show_module,
      after(kn_prune_random_unstructured_with(fresh(), "weight", kn_scalar_real(0.5), params)),
      after(kn_prune_random_unstructured(fresh(), "weight", 0.5)))
CALLS(kn_prune_ln_structured, kn_prune_params, show_module,
      after(kn_prune_ln_structured_with(fresh(), "weight", kn_scalar_int(1), 2, 0, params)),
      after(kn_prune_ln_structured(fresh(), "weight", 1, 2, 0)))
CALLS(kn_prune_random_structured, kn_prune_params, show_module,
      after(kn_prune_random_structured_with(fresh(), "weight", kn_scalar_int(1), 1, params)),
      after(kn_prune_random_structured(fresh(), "weight", 1, 1)))
static kn_module *pruned_jointly(kn_scalar amount, const kn_prune_params *params)
{
    const kn_prune_target target = {fresh(), "weight", NULL};
    return after(kn_prune_global_unstructured_with(&target, 1, KN_PRUNE_RANDOM_UNSTRUCTURED, amount, params));
}
static kn_module *pruned_jointly_by_macro(void)
{
    const kn_prune_target target = {fresh(), "weight", NULL};
    return after(kn_prune_global_unstructured(&target, 1, KN_PRUNE_RANDOM_UNSTRUCTURED, 3));
}
CALLS(kn_prune_global_unstructured, kn_prune_params, show_module, pruned_jointly(kn_scalar_int(3), params),
      pruned_jointly_by_macro())

DEFAULTS(features_defaults, ROW(kn_module_register_forward_pre_hook), ROW(kn_module_register_forward_hook),
         ROW(kn_module_register_full_backward_pre_hook), ROW(kn_module_register_full_backward_hook),
         ROW(kn_parametrize_register_parametrization), ROW(kn_parametrizations_weight_norm),
         ROW(kn_parametrizations_spectral_norm), ROW(kn_prune_l1_unstructured), ROW(kn_prune_random_unstructured),
         ROW(kn_prune_ln_structured), ROW(kn_prune_random_structured), ROW(kn_prune_global_unstructured))
