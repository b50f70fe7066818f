/* autograd/grad_hooks.c - see grad_hooks.h. */
#include "autograd/grad_hooks.h"

#include "autograd/accumulate.h"
#include "autograd/view.h"
#include "tensor/scope.h"

/* Calls the hook in a scope of its own, as user code. *changed: what a hook of gradients returned, retained. */
static kn_status call(const kn_hook *hook, kn_tensor *tensor, kn_tensor **changed)
{
    kn_status status = KN_OK;
    const int scope = kn_scope_begin_internal();
    if (!scope)
        return KN_ERR_MEMORY;
    const int adopter = kn_scope_enter_user_code();
    const bool tracking = kn_view_set_tracking(true);
    if (hook->accumulated)
        status = hook->accumulated(tensor, hook->user);
    else
        *changed = kn_retain(hook->function(tensor, hook->user));
    kn_view_set_tracking(tracking);
    kn_scope_leave_user_code(adopter);
    kn_scope_end(scope);
    return status;
}

kn_status kn_run_grad_hooks(kn_node *node)
{
    for (const kn_hook *hook = node->hooks; hook; hook = hook->next) {
        kn_tensor **slot = &node->gradients[hook->output], *changed = NULL;
        if (!*slot || !hook->function)
            continue;
        KN_TRY(call(hook, *slot, &changed));
        if (!changed)
            return kn_error_status() ? kn_error_status() : kn_fail(KN_ERR_STATE, "a gradient hook returned NULL");
        kn_release(*slot);
        *slot = changed;
    }
    return KN_OK;
}

static kn_status keep(kn_tensor *tensor, kn_tensor *gradient)
{
    if (!tensor->autograd->grad)
        return kn_set_grad(tensor, gradient);
    const int scope = kn_scope_begin_internal();
    if (!scope)
        return KN_ERR_MEMORY;
    kn_tensor *sum = kn_gradient_sum(tensor->autograd->grad, gradient);
    const kn_status status = sum ? kn_set_grad(tensor, sum) : kn_error_status();
    kn_scope_end(scope);
    return status;
}

kn_status kn_keep_gradients(kn_node *node)
{
    for (const kn_hook *hook = node->hooks; hook; hook = hook->next) {
        kn_tensor *gradient = node->gradients[hook->output];
        if (hook->keeper && hook->keeper->tensor && gradient)
            KN_TRY(keep(hook->keeper->tensor, gradient));
    }
    return KN_OK;
}

kn_status kn_run_accumulated_hooks(const kn_node *node)
{
    for (const kn_hook *hook = node->hooks; hook && node->leaf; hook = hook->next) {
        const kn_status status = hook->accumulated ? call(hook, node->leaf, NULL) : KN_OK;
        if (status != KN_OK && kn_error_status() == KN_OK)
            return kn_fail(status, "a hook after accumulating a gradient returned %s", kn_status_name(status));
        KN_TRY(status);
    }
    return KN_OK;
}
