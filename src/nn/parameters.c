/* nn/parameters.c - a module's parameters and buffers as lists with dotted names, and moving them. */
#include <string.h>

#include "base/error.h"
#include "base/threads.h"
#include "nn/computed.h"

#include <koine/autograd.h>

/* --- walking --------------------------------------------------------------------------------------------------- */

static kn_status walk(kn_module *module, kn_text *prefix, kn_module_visitor visit, void *user)
{
    size_t base = prefix->length;
    kn_status status = KN_OK;
    for (int i = 0; i < module->num_tensors && status == KN_OK; i++) {
        const kn_module_tensor *entry = &module->tensors[i];
        kn_text_append(prefix, entry->name);
        status = prefix->failed ? KN_ERR_MEMORY : visit(prefix->data, entry->tensor, entry->is_buffer, user);
        prefix->length = base;
    }
    for (int i = 0; i < module->num_children && status == KN_OK; i++) {
        kn_text_append(prefix, module->children[i].name);
        kn_text_append(prefix, ".");
        status = prefix->failed ? KN_ERR_MEMORY : walk(module->children[i].module, prefix, visit, user);
        prefix->length = base;
    }
    return status;
}

kn_status kn_module_each(kn_module *module, kn_module_visitor visit, void *user)
{
    kn_text prefix = {0};
    kn_status status = walk(module, &prefix, visit, user);
    kn_text_free(&prefix);
    return status;
}

typedef struct collecting {
    kn_tensor_list list;
    bool buffers;
} collecting;

/* Collects each tensor once: weights shared by two layers are one parameter. */
static kn_status collect(const char *name, kn_tensor *tensor, bool is_buffer, void *user)
{
    collecting *into = user;
    if (is_buffer != into->buffers)
        return KN_OK;
    for (int i = 0; i < into->list.count; i++) {
        if (into->list.tensors[i] == tensor)
            return KN_OK;
    }
    return kn_tensor_list_append(&into->list, name, tensor);
}

/* Held while a list is made: several threads may query one module. */
static kn_mutex listing = KN_MUTEX_INIT;

/* Rebuilds the cached list if the tree has changed. */
static kn_status update(kn_cached_list *cache, kn_module *module, bool buffers)
{
    uint64_t revision = kn_module_tree_revision(module) + 1;
    if (cache->revision == revision)
        return KN_OK;
    collecting into = {.buffers = buffers};
    kn_status status = kn_module_each(module, collect, &into);
    if (status != KN_OK) {
        kn_tensor_list_free(&into.list);
        return status;
    }
    kn_tensor_list_free(&cache->list);
    *cache = (kn_cached_list){into.list, revision};
    return KN_OK;
}

/* The cached list; NULL with an error. */
static kn_tensor_list *cached(kn_module *module, bool buffers)
{
    kn_cached_list *cache = buffers ? &module->buffers : &module->parameters;
    kn_lock(&listing);
    kn_status status = update(cache, module, buffers);
    kn_unlock(&listing);
    return status == KN_OK ? &cache->list : kn_error_make_sticky();
}

static kn_parameter_list view_of(const kn_tensor_list *list)
{
    return (kn_parameter_list){list->tensors, (const char *const *)list->names, list->count};
}

static kn_parameter_list list_of(kn_module *module, bool buffers, const char *function)
{
    if (module == NULL) {
        kn_fail_argument_null(function, "module");
        kn_error_make_sticky();
        return (kn_parameter_list){0};
    }
    kn_tensor_list *list = cached(module, buffers);
    if (list == NULL)
        kn_error_make_sticky();
    return list == NULL ? (kn_parameter_list){0} : view_of(list);
}

kn_status kn_module_find_parameters(kn_parameter_list *found, kn_module *module)
{
    kn_tensor_list *list = cached(module, false);
    if (list == NULL)
        return KN_ERR_MEMORY;
    *found = view_of(list);
    return KN_OK;
}

kn_parameter_list kn_module_parameters(kn_module *module) { return list_of(module, false, "module_parameters"); }
kn_parameter_list kn_module_buffers(kn_module *module) { return list_of(module, true, "module_buffers"); }

int64_t kn_module_parameter_count(kn_module *module)
{
    kn_parameter_list list = kn_module_parameters(module);
    int64_t count = 0;
    for (int i = 0; i < list.count; i++)
        count += kn_numel(list.tensors[i]);
    return count;
}

typedef struct searching {
    const char *name;
    kn_tensor *found;
} searching;

static kn_status match(const char *name, kn_tensor *tensor, bool is_buffer, void *user)
{
    (void)is_buffer;
    searching *search = user;
    if (search->found == NULL && strcmp(name, search->name) == 0)
        search->found = tensor;
    return KN_OK;
}

kn_tensor *kn_module_get(kn_module *module, const char *name)
{
    if (module == NULL || name == NULL) {
        kn_fail_argument_null("module_get", module == NULL ? "module" : "name");
        return kn_error_make_sticky();
    }
    searching search = {name, NULL};
    bool is_computed = false;
    if (kn_module_each(module, match, &search) != KN_OK)
        return kn_error_make_sticky();
    if (search.found == NULL)
        search.found = kn_computed_value(module, name, &is_computed);
    if (is_computed && search.found == NULL)
        return kn_error_make_sticky();
    if (search.found == NULL)
        return kn_fail_null(KN_ERR_ARGUMENT, "module_get: this %s has no parameter or buffer named \"%s\"",
                            module->type_name, name);
    return search.found;
}

void kn_module_zero_grad(kn_module *module)
{
    kn_parameter_list list = kn_module_parameters(module);
    for (int i = 0; i < list.count; i++)
        kn_set_grad(list.tensors[i], NULL);
}

/* Not a child that stands before, too. */
static bool is_first_place(const kn_module *module, int index)
{
    for (int i = 0; i < index; i++)
        if (module->children[i].module == module->children[index].module)
            return false;
    return true;
}

kn_status kn_module_apply(kn_module *module, kn_status (*function)(kn_module *module, void *user), void *user)
{
    if (module == NULL || function == NULL)
        return kn_fail_argument_null("module_apply", module == NULL ? "module" : "function");
    for (int i = 0; i < module->num_children; i++)
        if (is_first_place(module, i))
            KN_TRY(kn_module_apply(module->children[i].module, function, user));
    return function(module, user);
}

kn_module *kn_module_requires_grad_(kn_module *module, bool requires_grad)
{
    if (module == NULL) {
        kn_fail_argument_null("module_requires_grad_", "module");
        return kn_error_make_sticky();
    }
    const kn_tensor_list *list = cached(module, false);
    for (int i = 0; list != NULL && i < list->count; i++)
        if (kn_set_requires_grad(list->tensors[i], requires_grad) != KN_OK)
            return kn_error_make_sticky();
    return list != NULL ? module : NULL;
}
