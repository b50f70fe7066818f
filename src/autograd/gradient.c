/* autograd/gradient.c - the public functions about a tensor's gradient. */
#include <string.h>

#include "autograd/tape.h"
#include "base/load.h"
#include "base/memory.h"
#include "tensor/batched.h"
#include "tensor/hooks.h"
#include "tensor/liveness.h"

static _Thread_local bool recording_off;

bool kn_grad_enabled(void) { return !recording_off; }

bool kn_set_grad_enabled(bool enabled)
{
    bool before = !recording_off;
    recording_off = !enabled;
    return before;
}

bool kn_requires_grad(const kn_tensor *tensor) { return kn_autograd_wants(tensor); }
bool kn_is_leaf(const kn_tensor *tensor)
{
    while (tensor && tensor->whole)
        tensor = tensor->whole;
    if (!kn_autograd_wants(tensor))
        return true;
    return !kn_view_is_outdated(tensor) && (!tensor->autograd->node || !tensor->autograd->node->op);
}
kn_tensor *kn_grad(const kn_tensor *tensor) { return tensor && tensor->autograd ? tensor->autograd->grad : NULL; }

static kn_status require_gradient(kn_tensor *tensor)
{
    if (!kn_dtype_is_floating(tensor->dtype))
        return kn_fail(KN_ERR_DTYPE, "only floating tensors have gradients, not %s", kn_dtype_name(tensor->dtype));
    /* The leaf's node is made here, not by the first operation that records it, so that threads applying one module
     * concurrently only read its parameters. */
    if (!kn_autograd_node(tensor))
        return KN_ERR_MEMORY;
    tensor->autograd->requires_grad = true;
    return KN_OK;
}

kn_status kn_set_requires_grad(kn_tensor *tensor, bool requires_grad)
{
    KN_TRY(kn_check_tensor("kn_set_requires_grad", "tensor", tensor));
    while (tensor->whole)
        tensor = tensor->whole;
    if (!kn_is_leaf(tensor))
        return requires_grad
                   ? KN_OK
                   : kn_fail(KN_ERR_STATE,
                             "kn_set_requires_grad: the tensor is a result of recorded operations; use kn_detach");
    if (requires_grad)
        return require_gradient(tensor);
    if (tensor->autograd)
        tensor->autograd->requires_grad = false;
    return KN_OK;
}

static kn_status check_unrecorded(const char *function, const kn_tensor *tensor)
{
    if (!kn_grad_enabled() || !kn_change_wants_record(tensor))
        return KN_OK;
    return kn_fail(KN_ERR_STATE, "%s is not recorded, but a given tensor requires gradients: do it inside KN_NO_GRAD",
                   function);
}

KN_AT_LOAD register_hooks(void)
{
    static const kn_tensor_hooks hooks = {
        .free = kn_autograd_free, .require = require_gradient, .check_unrecorded = check_unrecorded};
    kn_tensor_autograd = &hooks;
}

kn_status kn_set_grad(kn_tensor *tensor, kn_tensor *gradient)
{
    KN_TRY(kn_check_tensor("kn_set_grad", "tensor", tensor));
    if (gradient && (!kn_same_shape(tensor, gradient) || tensor->dtype != gradient->dtype ||
                     kn_device_of(tensor) != kn_device_of(gradient))) {
        char a[KN_DESCRIBE], b[KN_DESCRIBE];
        return kn_fail(KN_ERR_SHAPE, "kn_set_grad: the tensor is %s, but the gradient is %s",
                       kn_tensor_describe(a, sizeof a, tensor), kn_tensor_describe(b, sizeof b, gradient));
    }
    if (!gradient && !tensor->autograd)
        return KN_OK;
    struct kn_autograd *autograd = kn_autograd_of(tensor);
    if (!autograd)
        return KN_ERR_MEMORY;
    kn_tensor *before = autograd->grad;
    autograd->grad = kn_retain(gradient);
    kn_release(before);
    return KN_OK;
}

kn_tensor *kn_detach(kn_tensor *tensor)
{
    if (kn_check_tensor("kn_detach", "tensor", tensor) != KN_OK)
        return kn_error_make_sticky();
    if (tensor->whole)
        KN_RETURN_BATCHED(tensor, kn_detach(tensor->whole));
    kn_tensor *alias = NULL;
    kn_tensor_view(&alias, tensor, tensor->ndim, tensor->shape, tensor->strides, tensor->offset);
    return kn_scope_adopt(alias);
}

kn_copy_params kn_copy_params_init(void) { return (kn_copy_params){KN_COPY_DEFAULTS}; }

kn_status kn_copy_with(kn_tensor *destination, const kn_tensor *source, const kn_copy_params *params)
{
    params = params ? params : &(kn_copy_params){KN_COPY_DEFAULTS};
    KN_TRY(kn_check_tensor("kn_copy_", "destination", destination));
    KN_TRY(kn_check_tensor("kn_copy_", "source", source));
    KN_TRY(check_unrecorded("kn_copy_", destination));
    KN_TRY(check_unrecorded("kn_copy_", source));
    if (kn_tensor_check_no_overlap(destination) != KN_OK) {
        kn_error_prefix("kn_copy_");
        return kn_error_status();
    }
    kn_tensor_bump_version(destination);
    return kn_tensor_copy_broadcast(destination, (kn_tensor *)(uintptr_t)source, params->non_blocking);
}

kn_status kn_copy_(kn_tensor *destination, const kn_tensor *source) { return kn_copy_with(destination, source, NULL); }

static kn_status check_hook(const char *function, const kn_tensor *tensor, bool given)
{
    KN_TRY(kn_check_tensor(function, "tensor", tensor));
    if (!given)
        return kn_fail_argument_null(function, "hook");
    if (!kn_autograd_wants(tensor))
        return kn_fail(KN_ERR_STATE, "%s: the tensor does not require gradients", function);
    return KN_OK;
}

/* Takes ownership of the model's user, also on failure. */
static kn_status add_hook(kn_status status, kn_tensor *tensor, kn_hook model)
{
    kn_node *node = status == KN_OK ? kn_autograd_node(tensor) : NULL;
    kn_hook *hook = node ? kn_calloc(1, sizeof *hook) : NULL;
    if (!hook) {
        if (model.destroy)
            model.destroy(model.user);
        return status == KN_OK ? kn_error_status() : status;
    }
    model.output = tensor->autograd->output;
    *hook = model;
    kn_hook **last = &node->hooks;
    while (*last)
        last = &(*last)->next;
    *last = hook;
    return KN_OK;
}

kn_status kn_register_hook_with(kn_tensor *tensor, kn_grad_hook function, void *user, void (*destroy)(void *user))
{
    return add_hook(check_hook("kn_register_hook", tensor, function != NULL), tensor,
                    (kn_hook){.function = function, .user = user, .destroy = destroy});
}

kn_status kn_register_hook(kn_tensor *tensor, kn_grad_hook function, void *user)
{
    return kn_register_hook_with(tensor, function, user, NULL);
}

kn_status kn_register_post_accumulate_grad_hook(kn_tensor *tensor, kn_post_accumulate_grad_hook function, void *user,
                                                void (*destroy)(void *user))
{
    kn_status status = check_hook("kn_register_post_accumulate_grad_hook", tensor, function != NULL);
    if (status == KN_OK && !kn_is_leaf(tensor))
        status = kn_fail(KN_ERR_STATE, "kn_register_post_accumulate_grad_hook: the tensor is not a leaf, which alone "
                                       "keeps its gradient; use kn_register_hook");
    return add_hook(status, tensor, (kn_hook){.accumulated = function, .user = user, .destroy = destroy});
}

kn_status kn_retain_grad(kn_tensor *tensor)
{
    KN_TRY(check_hook("kn_retain_grad", tensor, true));
    if (kn_is_leaf(tensor) || kn_retains_grad(tensor))
        return KN_OK;
    kn_keeper *keeper = kn_calloc(1, sizeof *keeper);
    if (!keeper)
        return KN_ERR_MEMORY;
    *keeper = (kn_keeper){.tensor = tensor};
    atomic_init(&keeper->references, 1);
    KN_TRY(add_hook(KN_OK, tensor, (kn_hook){.keeper = keeper, .user = keeper, .destroy = kn_keeper_release}));
    atomic_fetch_add(&keeper->references, 1);
    tensor->autograd->keeper = keeper;
    return KN_OK;
}

bool kn_retains_grad(const kn_tensor *tensor) { return tensor && tensor->autograd && tensor->autograd->keeper; }

const char *kn_grad_fn_name(const kn_tensor *tensor)
{
    if (!kn_autograd_wants(tensor) || kn_is_leaf(tensor))
        return NULL;
    const kn_node *node = kn_autograd_node((kn_tensor *)(uintptr_t)tensor); /* an outdated view gets a new one */
    return node ? node->op->name : NULL;
}

/* --- printing --------------------------------------------------------------------------------- */

char *kn_to_string(const kn_tensor *tensor)
{
    if (kn_check_tensor("kn_to_string", "tensor", tensor) != KN_OK)
        return NULL;
    char suffix[96];
    if (!kn_autograd_wants(tensor))
        return kn_tensor_format(tensor, NULL);
    if (kn_is_leaf(tensor))
        return kn_tensor_format(tensor, "requires_grad=True");
    const char *name = kn_grad_fn_name(tensor);
    if (!name)
        return NULL;
    snprintf(suffix, sizeof suffix, "grad_fn=<%s>", name);
    return kn_tensor_format(tensor, suffix);
}

kn_status kn_print(const kn_tensor *tensor, FILE *file)
{
    if (!file)
        return kn_fail_argument_null("kn_print", "file");
    char *text = kn_to_string(tensor);
    if (!text)
        return kn_error_status();
    int written = fprintf(file, "%s\n", text);
    kn_free(text);
    return written < 0 ? kn_fail(KN_ERR_IO, "kn_print: cannot write to the file") : KN_OK;
}
