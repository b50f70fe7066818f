/* nn/containers.c - lists and dictionaries of modules and of parameters, which have names and are saved; a program
 * applies them itself. */
#include <stdio.h>

#include "base/error.h"
#include "nn/module.h"

static kn_status forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    (void)inputs;
    (void)outputs;
    return kn_fail(KN_ERR_STATE, "%s: it has no forward; use what it contains (kn_module_child, kn_module_get)",
                   module->type_name);
}

static kn_module *new_container(const char *type_name, bool of_tensors)
{
    const kn_module_kind kind = {.forward_many = forward,
                                 .signature = {.inputs = 1, .outputs = 1},
                                 .lists_tensors = of_tensors,
                                 .is_layer = true,
                                 .is_container = true};
    return kn_layer_new_kind(type_name, &kind, NULL, 0);
}

/* names NULL: numbers. */
static kn_module *make(const char *type_name, const char *const *names, kn_module *const *modules, int count)
{
    const bool valid = count >= 0 && (count == 0 || modules);
    if (!valid)
        kn_fail(KN_ERR_ARGUMENT, "%s: %d modules, or the array of modules is NULL", type_name, count);
    kn_module *container = valid ? new_container(type_name, false) : kn_error_make_sticky();
    bool failed = !container;
    int i = 0;
    for (; i < count && valid && !failed; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        const char *name = names ? names[i] : number;
        if (!modules[i] || !name) {
            kn_fail_argument_null(type_name, name ? name : "name");
            break;
        }
        failed = !kn_module_register_module(container, name, modules[i]);
    }
    failed = failed || i < count;
    if (valid)
        kn_module_discard(modules, i, count);
    return failed ? kn_layer_failed(container) : container;
}

kn_module *kn_nn_module_list_of(kn_module *const *modules, int count)
{
    return make("ModuleList", NULL, modules, count);
}

kn_module *kn_nn_module_dict_of(const char *const *names, kn_module *const *modules, int count)
{
    if (!names && count > 0) {
        kn_module_discard(modules, 0, count);
        return kn_fail_null(KN_ERR_ARGUMENT, "ModuleDict: the array of names is NULL");
    }
    return make("ModuleDict", names, modules, count);
}

/* names NULL: numbers. */
static kn_module *make_of_tensors(const char *type_name, const char *const *names, kn_tensor *const *tensors, int count)
{
    if (count < 0 || (count > 0 && !tensors))
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: %d tensors, or the array of tensors is NULL", type_name, count);
    kn_module *container = new_container(type_name, true);
    bool failed = !container;
    for (int i = 0; i < count && !failed; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        failed = !kn_module_register_parameter(container, names ? names[i] : number, tensors[i]);
    }
    return failed ? kn_layer_failed(container) : container;
}

kn_module *kn_nn_parameter_list_of(kn_tensor *const *tensors, int count)
{
    return make_of_tensors("ParameterList", NULL, tensors, count);
}

kn_module *kn_nn_parameter_dict_of(const char *const *names, kn_tensor *const *tensors, int count)
{
    if (!names && count > 0)
        return kn_fail_null(KN_ERR_ARGUMENT, "ParameterDict: the array of names is NULL");
    return make_of_tensors("ParameterDict", names, tensors, count);
}

kn_tensor *kn_nn_append_parameter(kn_module *list, kn_tensor *tensor)
{
    char name[16];
    snprintf(name, sizeof name, "%d", list ? list->num_tensors : 0);
    return kn_module_register_parameter(list, name, tensor);
}

kn_status kn_nn_append(kn_module *list, kn_module *module)
{
    char name[16];
    snprintf(name, sizeof name, "%d", kn_module_child_count(list));
    return kn_nn_add_module(list, name, module);
}

kn_module *kn_module_named_child(kn_module *module, const char *name)
{
    if (!module || !name) {
        kn_fail_argument_null("module_named_child", module ? "name" : "module");
        return kn_error_make_sticky();
    }
    kn_module *child = kn_module_find_child(module, name);
    if (child)
        return child;
    return kn_fail_null(KN_ERR_ARGUMENT, "%s has no module \"%s\"", module->type_name, name);
}
