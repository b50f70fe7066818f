/* nn/module.c - modules: creating and freeing them, and their mode. What they consist of: register.c. */
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "nn/computed.h"
#include "nn/graphed.h"
#include "nn/hooks.h"

/* --- creating and freeing -------------------------------------------------------------------------------------- */

static kn_module *make(const char *type_name, const kn_module_kind *kind, size_t self_size, void (*destroy)(void *self))
{
    if (type_name == NULL || (kind->forward == NULL && kind->forward_many == NULL)) {
        kn_fail_argument_null("module_new", type_name == NULL ? "type_name" : "forward");
        return kn_error_make_sticky();
    }
    kn_module *module = kn_calloc(1, sizeof *module);
    if (module == NULL)
        return kn_error_make_sticky();
    module->type_name = kn_strdup(type_name);
    module->self = kn_calloc(1, self_size > 0 ? self_size : 1);
    module->self_size = self_size;
    module->kind = *kind;
    module->training = true;
    if (module->type_name == NULL || module->self == NULL)
        return kn_layer_failed(module);
    /* Set last: destroy must not see an incomplete self. */
    module->destroy = destroy;
    return module;
}

static const kn_signature one_to_one = {.inputs = 1, .outputs = 1};

kn_module *kn_module_new(const char *type_name, kn_forward_function forward, size_t self_size,
                         void (*destroy)(void *self))
{
    return make(type_name, &(kn_module_kind){.forward = forward, .signature = one_to_one}, self_size, destroy);
}

kn_module_new_many_params kn_module_new_many_params_init(void)
{
    return (kn_module_new_many_params){KN_MODULE_NEW_MANY_DEFAULTS};
}

kn_module *kn_module_new_many_with(const char *type_name, kn_forward_many_function forward,
                                   const kn_module_new_many_params *params)
{
    params = params ? params : &(kn_module_new_many_params){KN_MODULE_NEW_MANY_DEFAULTS};
    if (params->num_inputs < 1 || params->num_outputs < 1 || params->num_optional < 0 ||
        params->num_optional > params->num_inputs)
        return kn_fail_null(KN_ERR_ARGUMENT,
                            "module_new_many: num_inputs (%d) and num_outputs (%d) must be at least 1, num_optional "
                            "(%d) from 0 to num_inputs",
                            params->num_inputs, params->num_outputs, params->num_optional);
    const kn_module_kind kind = {.forward_many = forward,
                                 .signature = {params->num_inputs, params->num_optional, params->num_outputs}};
    return make(type_name, &kind, params->self_size, params->destroy);
}

kn_module *kn_layer_new_kind(const char *type_name, const kn_module_kind *kind, const void *params, size_t size)
{
    kn_module *module = make(type_name, kind, size, NULL);
    if (module == NULL)
        return NULL;
    if (size > 0)
        memcpy(module->self, params, size);
    return module;
}

kn_module *kn_layer_new(const char *type_name, kn_forward_function forward,
                        void (*describe)(kn_module *module, kn_text *text), const void *params, size_t size)
{
    const kn_module_kind kind = {.forward = forward, .signature = one_to_one, .describe = describe, .is_layer = true};
    return kn_layer_new_kind(type_name, &kind, params, size);
}

static kn_tensor *forward_without_activation(kn_module *module, kn_tensor *x)
{
    return module->kind.activated(module, x, KN_ACTIVATION_NONE);
}

kn_module *kn_layer_new_activated(const char *type_name, kn_activated_function activated,
                                  void (*describe)(kn_module *module, kn_text *text), const void *params, size_t size)
{
    const kn_module_kind kind = {.forward = forward_without_activation,
                                 .activated = activated,
                                 .signature = one_to_one,
                                 .describe = describe,
                                 .is_layer = true};
    return kn_layer_new_kind(type_name, &kind, params, size);
}

/* A replica has the kind, but no text. */
static void describe_as_set(kn_module *module, kn_text *text)
{
    if (module->extra_repr != NULL)
        kn_text_append(text, module->extra_repr);
}

kn_status kn_module_set_extra_repr(kn_module *module, const char *text)
{
    if (module == NULL || text == NULL)
        return kn_fail_argument_null("module_set_extra_repr", module == NULL ? "module" : "text");
    if (module->kind.is_layer)
        return kn_fail(KN_ERR_ARGUMENT, "%s: layers of the library describe themselves", module->type_name);
    char *copy = kn_strdup(text);
    if (copy == NULL)
        return KN_ERR_MEMORY;
    kn_free(module->extra_repr);
    module->extra_repr = copy;
    module->kind.describe = describe_as_set;
    return KN_OK;
}

/* Frees regardless of owners. */
static void destroy_tree(kn_module *module)
{
    if (module == NULL)
        return;
    kn_graphed_release(module->graphed);
    kn_hooks_free(&module->hooks);
    kn_computed_free(&module->computed);
    if (module->destroy != NULL)
        module->destroy(module->self);
    for (int i = 0; i < module->num_children; i++) {
        if (--module->children[i].module->owners == 0)
            destroy_tree(module->children[i].module);
        kn_free(module->children[i].name);
    }
    for (int i = 0; i < module->num_tensors; i++) {
        kn_release(module->tensors[i].tensor);
        kn_free(module->tensors[i].name);
    }
    kn_tensor_list_free(&module->parameters.list);
    kn_tensor_list_free(&module->buffers.list);
    kn_free(module->children);
    kn_free(module->tensors);
    kn_free(module->self);
    kn_free(module->extra_repr);
    kn_free(module->type_name);
    kn_free(module);
}

void kn_module_free(kn_module *module)
{
    if (module == NULL)
        return;
    if (module->owners > 0) {
        /* Freeing it here would leave its owner with a dangling child. */
        kn_log_message(KN_LOG_WARNING, "module_free: this %s belongs to another module, which frees it",
                       module->type_name);
        return;
    }
    destroy_tree(module);
}

static bool stands_before(kn_module *const *modules, int index)
{
    for (int i = 0; i < index; i++)
        if (modules[i] == modules[index])
            return true;
    return false;
}

void kn_module_discard(kn_module *const *modules, int from, int count)
{
    for (int i = from; modules != NULL && i < count; i++)
        if (!stands_before(modules, i) && modules[i] != NULL && modules[i]->owners == 0)
            kn_module_free(modules[i]);
}

kn_module *kn_layer_failed(kn_module *module)
{
    kn_error_make_sticky();
    kn_module_free(module);
    return NULL;
}

void *kn_module_self(kn_module *module) { return module == NULL ? NULL : module->self; }

const char *kn_module_type_name(const kn_module *module) { return module == NULL ? "" : module->type_name; }

int kn_module_input_count(const kn_module *module) { return module == NULL ? 0 : kn_module_signature(module).inputs; }

int kn_module_output_count(const kn_module *module) { return module == NULL ? 0 : kn_module_signature(module).outputs; }

/* --- mode ------------------------------------------------------------------------------------------------------ */

void kn_module_train(kn_module *module, bool training)
{
    if (module == NULL)
        return;
    module->training = training;
    for (int i = 0; i < module->num_children; i++)
        kn_module_train(module->children[i].module, training);
}

bool kn_module_is_training(const kn_module *module) { return module != NULL && module->training; }
