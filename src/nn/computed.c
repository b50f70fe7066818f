/* nn/computed.c - computed tensors take the place of others while a module's forward function runs. */
#include "nn/computed.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

/* --- the list ----------------------------------------------------------------------------------------------------- */

kn_computed *kn_computed_find(const kn_module *module, const char *name)
{
    for (int i = 0; i < module->computed.count; i++)
        if (strcmp(module->computed.items[i].name, name) == 0)
            return &module->computed.items[i];
    return NULL;
}

kn_status kn_computed_add(kn_module *module, const char *name, kn_tensor *original,
                          kn_tensor *(*compute)(kn_module *module, const char *name))
{
    kn_computed_list *list = &module->computed;
    KN_TRY(KN_GROW(list->items, list->count, list->capacity));
    char *copy = kn_strdup(name);
    if (copy == NULL)
        return KN_ERR_MEMORY;
    list->items[list->count++] = (kn_computed){.name = copy, .original = kn_retain(original), .compute = compute};
    return KN_OK;
}

static void drop(kn_computed *computed)
{
    kn_release(computed->original);
    kn_free(computed->name);
}

void kn_computed_remove(kn_module *module, const char *name)
{
    kn_computed *at = kn_computed_find(module, name);
    const kn_computed *end = module->computed.items + --module->computed.count;
    drop(at);
    for (; at < end; at++)
        at[0] = at[1];
}

void kn_computed_free(kn_computed_list *list)
{
    for (int i = 0; i < list->count; i++)
        drop(&list->items[i]);
    kn_free(list->items);
    *list = (kn_computed_list){0};
}

kn_tensor *kn_computed_value(kn_module *module, const char *name, bool *found)
{
    const char *dot = strchr(name, '.');
    for (int i = 0; dot != NULL && i < module->num_children; i++) {
        const kn_module_child_entry *child = &module->children[i];
        if (strlen(child->name) == (size_t)(dot - name) && strncmp(child->name, name, (size_t)(dot - name)) == 0)
            return kn_computed_value(child->module, dot + 1, found);
    }
    const kn_computed *computed = kn_computed_find(module, name);
    *found = computed != NULL;
    if (computed == NULL)
        return NULL;
    return computed->value != NULL ? computed->value : computed->compute(module, name);
}

/* --- a forward pass ----------------------------------------------------------------------------------------------- */

static kn_status compute_all(kn_module *module, kn_computed_list *list)
{
    for (int i = 0; i < list->count; i++) {
        list->items[i].value = list->items[i].compute(module, list->items[i].name);
        if (list->items[i].value == NULL)
            return kn_error_status();
    }
    return KN_OK;
}

static void put_values(kn_module *module)
{
    for (int i = 0; i < module->computed.count; i++)
        kn_module_repoint(module, module->computed.items[i].original, module->computed.items[i].value);
}

static kn_status begin_copy(kn_computed_view *view, const kn_module *module)
{
    const size_t list = (size_t)module->computed.count * sizeof(kn_computed);
    view->copy = *module;
    view->module = &view->copy;
    view->copy.computed.items = kn_malloc(list + module->self_size);
    if (view->copy.computed.items == NULL)
        return KN_ERR_MEMORY;
    view->copy.self = (char *)view->copy.computed.items + list; /* a multiple of a pointer's size behind */
    memcpy(view->copy.computed.items, module->computed.items, list);
    memcpy(view->copy.self, module->self, module->self_size);
    return KN_OK;
}

kn_status kn_computed_begin(kn_computed_view *view, kn_module *module)
{
    view->module = module;
    if (module->computed.count == 0)
        return KN_OK;
    if (module->kind.is_layer)
        KN_TRY(begin_copy(view, module));
    const kn_status status = compute_all(module, &view->module->computed);
    if (status == KN_OK)
        put_values(view->module);
    else
        kn_computed_end(view);
    return status;
}

void kn_computed_end(kn_computed_view *view)
{
    if (view->module == &view->copy) {
        kn_free(view->copy.computed.items);
        return;
    }
    for (int i = 0; i < view->module->computed.count; i++) {
        kn_computed *computed = &view->module->computed.items[i];
        if (computed->value != NULL)
            kn_module_repoint(view->module, computed->value, computed->original);
        computed->value = NULL;
    }
}
