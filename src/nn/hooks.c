/* nn/hooks.c - registering hooks, and running those around a module's forward function. */
#include "nn/hooks.h"

#include <koine/autograd.h>

#include "base/error.h"
#include "base/memory.h"
#include "tensor/scope.h"

/* --- lists -------------------------------------------------------------------------------------------------------- */

static void release(kn_module_hook *hook)
{
    if (atomic_fetch_sub(&hook->references, 1) > 1)
        return;
    if (hook->destroy != NULL)
        hook->destroy(hook->user);
    kn_free(hook);
}

kn_status kn_hooks_copy(kn_module_hooks *copy, const kn_module_hooks *hooks)
{
    *copy = (kn_module_hooks){0};
    if (hooks->count == 0)
        return KN_OK;
    copy->items = kn_calloc((size_t)hooks->count, sizeof *copy->items);
    if (copy->items == NULL)
        return KN_ERR_MEMORY;
    copy->capacity = hooks->count;
    for (; copy->count < hooks->count; copy->count++) {
        copy->items[copy->count] = hooks->items[copy->count];
        atomic_fetch_add(&copy->items[copy->count]->references, 1);
    }
    return KN_OK;
}

void kn_hooks_free(kn_module_hooks *hooks)
{
    for (int i = 0; i < hooks->count; i++)
        release(hooks->items[i]);
    kn_free(hooks->items);
    *hooks = (kn_module_hooks){0};
}

/* --- registering -------------------------------------------------------------------------------------------------- */

static kn_status insert(kn_module *module, kn_module_hook *hook, bool first)
{
    kn_module_hooks *hooks = &module->hooks;
    KN_TRY(KN_GROW(hooks->items, hooks->count, hooks->capacity));
    const int at = first ? 0 : hooks->count;
    for (int i = hooks->count++; i > at; i--)
        hooks->items[i] = hooks->items[i - 1];
    hooks->items[at] = hook;
    return KN_OK;
}

kn_module_hook_params kn_module_hook_params_init(void) { return (kn_module_hook_params){KN_MODULE_HOOK_DEFAULTS}; }

/* Handles are never reused, so that an old one removes nothing. */
static atomic_uint_fast64_t next_handle = 1;

static kn_hook_handle add(const char *function, kn_module *module, const kn_module_hook *model, bool given,
                          const kn_module_hook_params *params)
{
    params = params != NULL ? params : &(kn_module_hook_params){KN_MODULE_HOOK_DEFAULTS};
    kn_module_hook *hook = NULL;
    if (module == NULL || !given)
        kn_fail_argument_null(function, module == NULL ? "module" : "hook");
    else
        hook = kn_calloc(1, sizeof *hook);
    if (hook != NULL) {
        *hook = *model;
        hook->user = params->user;
        hook->handle = atomic_fetch_add(&next_handle, 1);
        atomic_init(&hook->references, 1);
        if (insert(module, hook, params->prepend) == KN_OK) {
            hook->destroy = params->destroy;
            return hook->handle;
        }
        release(hook);
    }
    kn_error_make_sticky();
    if (params->destroy != NULL)
        params->destroy(params->user);
    return 0;
}

kn_hook_handle kn_module_register_forward_pre_hook_with(kn_module *module, kn_forward_pre_hook hook,
                                                        const kn_module_hook_params *params)
{
    const kn_module_hook model = {.kind = KN_HOOK_FORWARD_PRE, .call.forward_pre = hook};
    return add("module_register_forward_pre_hook", module, &model, hook != NULL, params);
}

kn_hook_handle kn_module_register_forward_hook_with(kn_module *module, kn_forward_hook hook,
                                                    const kn_module_hook_params *params)
{
    const kn_module_hook model = {.kind = KN_HOOK_FORWARD, .call.forward = hook};
    return add("module_register_forward_hook", module, &model, hook != NULL, params);
}

kn_hook_handle kn_module_register_full_backward_pre_hook_with(kn_module *module, kn_backward_pre_hook hook,
                                                              const kn_module_hook_params *params)
{
    const kn_module_hook model = {.kind = KN_HOOK_BACKWARD_PRE, .call.backward_pre = hook};
    return add("module_register_full_backward_pre_hook", module, &model, hook != NULL, params);
}

kn_hook_handle kn_module_register_full_backward_hook_with(kn_module *module, kn_backward_hook hook,
                                                          const kn_module_hook_params *params)
{
    const kn_module_hook model = {.kind = KN_HOOK_BACKWARD, .call.backward = hook};
    return add("module_register_full_backward_hook", module, &model, hook != NULL, params);
}

kn_status kn_module_remove_hook(kn_module *module, kn_hook_handle handle)
{
    if (module == NULL)
        return kn_fail_argument_null("module_remove_hook", "module");
    kn_module_hooks *hooks = &module->hooks;
    int at = 0;
    while (at < hooks->count && hooks->items[at]->handle != handle)
        at++;
    if (at == hooks->count)
        return KN_OK;
    kn_module_hook *hook = hooks->items[at];
    hooks->count--;
    for (; at < hooks->count; at++)
        hooks->items[at] = hooks->items[at + 1];
    release(hook);
    return KN_OK;
}

/* --- running ------------------------------------------------------------------------------------------------------ */

/* A hook may fail without setting an error. */
static kn_status named(const kn_hooked_call *call, kn_status status, const char *what)
{
    if (status == KN_OK || kn_error_status() != KN_OK)
        return status;
    return kn_fail(status, "%s: a %s returned %s", call->module->type_name, what, kn_status_name(status));
}

static kn_status run_forward_pre(kn_hooked_call *call)
{
    kn_status status = KN_OK;
    for (int i = 0; i < call->hooks.count && status == KN_OK; i++) {
        const kn_module_hook *hook = call->hooks.items[i];
        if (hook->kind == KN_HOOK_FORWARD_PRE)
            status = named(call, hook->call.forward_pre(call->module, call->inputs, call->num_inputs, hook->user),
                           "forward pre-hook");
    }
    return status;
}

static kn_status run_forward(kn_hooked_call *call)
{
    kn_status status = KN_OK;
    for (int i = 0; i < call->hooks.count && status == KN_OK; i++) {
        const kn_module_hook *hook = call->hooks.items[i];
        if (hook->kind == KN_HOOK_FORWARD)
            status = named(call,
                           hook->call.forward(call->module, call->inputs, call->num_inputs, call->outputs,
                                              call->num_outputs, hook->user),
                           "forward hook");
    }
    return status;
}

/* The entries that a hook has replaced may not be NULL. */
static kn_status check_kept(const kn_hooked_call *call, kn_tensor *const *tensors, int count, const char *what)
{
    for (int i = 0; i < count; i++)
        if (tensors[i] == NULL)
            return kn_error_status() != KN_OK
                       ? kn_error_status()
                       : kn_fail(KN_ERR_STATE, "%s: a hook set %s[%d] to NULL", call->module->type_name, what, i);
    return KN_OK;
}

/* Tensors that hooks create belong to the program's scope, as those of a user-defined forward function do. */
static kn_status run_as_user_code(kn_hooked_call *call, kn_status (*run)(kn_hooked_call *call))
{
    const int adopter = kn_scope_enter_user_code();
    const kn_status status = run(call);
    kn_scope_leave_user_code(adopter);
    return status;
}

kn_status kn_hooks_before(kn_hooked_call *call)
{
    const kn_signature signature = kn_module_signature(call->module);
    KN_TRY(kn_hooks_copy(&call->hooks, &call->module->hooks));
    KN_TRY(run_as_user_code(call, run_forward_pre));
    KN_TRY(check_kept(call, call->inputs, signature.inputs - signature.optional, "inputs"));
    return kn_grad_enabled() ? kn_backward_hooks_before(call) : KN_OK;
}

kn_status kn_hooks_after(kn_hooked_call *call)
{
    KN_TRY(run_as_user_code(call, run_forward));
    KN_TRY(check_kept(call, call->outputs, call->num_outputs, "outputs"));
    return call->link != NULL ? kn_backward_hooks_after(call) : KN_OK;
}

void kn_hooks_end(kn_hooked_call *call)
{
    kn_backward_hooks_end(call);
    kn_hooks_free(&call->hooks);
}
