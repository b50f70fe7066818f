/* nn/register.c - what a module consists of, parameters, buffers and children: registering, finding, replacing and
 * dropping them. */
#include <koine/autograd.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "nn/computed.h"

/* Of the child of that name; -1: there is none. */
static int child_index(const kn_module *module, const char *name)
{
    for (int i = 0; i < module->num_children; i++)
        if (strcmp(module->children[i].name, name) == 0)
            return i;
    return -1;
}

static kn_status check_name(kn_module *module, const char *name)
{
    if (name == NULL || name[0] == '\0')
        return kn_fail(KN_ERR_ARGUMENT, "%s: a parameter, buffer or child needs a name", module->type_name);
    size_t bad = 0;
    if (!kn_is_utf8(name, strlen(name), &bad))
        return kn_fail(KN_ERR_ARGUMENT, "%s: the name \"%s\" is not UTF-8 (byte %zu), as names in saved files must be",
                       module->type_name, name, bad);
    if (strcmp(name, KN_METADATA_NAME) == 0)
        return kn_fail(KN_ERR_ARGUMENT, "%s: the name \"%s\" is reserved for the metadata in saved files",
                       module->type_name, name);
    if (strchr(name, '.') != NULL)
        return kn_fail(KN_ERR_ARGUMENT, "%s: the name \"%s\" contains a dot, which separates levels in dotted names",
                       module->type_name, name);
    if (kn_module_find_tensor(module, name) != NULL || child_index(module, name) >= 0)
        return kn_fail(KN_ERR_ARGUMENT, "%s: the name \"%s\" is taken", module->type_name, name);
    if (kn_computed_find(module, name) != NULL)
        return kn_fail(KN_ERR_ARGUMENT, "%s: the name \"%s\" is that of a tensor computed from others",
                       module->type_name, name);
    return KN_OK;
}

kn_status kn_module_add_tensor(kn_module *module, const char *name, kn_tensor *tensor, bool is_buffer)
{
    KN_TRY(check_name(module, name));
    KN_TRY(KN_GROW(module->tensors, module->num_tensors, module->tensor_capacity));
    char *copy = kn_strdup(name);
    if (copy == NULL)
        return KN_ERR_MEMORY;
    module->tensors[module->num_tensors++] = (kn_module_tensor){copy, kn_retain(tensor), is_buffer};
    module->revision++;
    return KN_OK;
}

static kn_status register_tensor(kn_module *module, const char *name, kn_tensor *tensor, bool is_buffer)
{
    KN_TRY(check_name(module, name));
    kn_status status = KN_OK;
    if (!is_buffer)
        status = kn_is_leaf(tensor)
                     ? kn_set_requires_grad(tensor, true)
                     : kn_fail(KN_ERR_ARGUMENT, "it is the result of a recorded operation, not a leaf; use kn_detach");
    if (status != KN_OK) {
        kn_error_prefix("%s: parameter \"%s\"", module->type_name, name);
        return status;
    }
    return kn_module_add_tensor(module, name, tensor, is_buffer);
}

static kn_tensor *register_checked(kn_module *module, const char *name, kn_tensor *tensor, bool is_buffer)
{
    if (module == NULL || tensor == NULL) {
        kn_fail_argument_null(is_buffer ? "register_buffer" : "register_parameter",
                              module == NULL ? "module" : "tensor");
        return kn_error_make_sticky();
    }
    return register_tensor(module, name, tensor, is_buffer) == KN_OK ? tensor : kn_error_make_sticky();
}

kn_tensor *kn_module_register_parameter(kn_module *module, const char *name, kn_tensor *tensor)
{
    return register_checked(module, name, tensor, false);
}

kn_tensor *kn_module_register_buffer(kn_module *module, const char *name, kn_tensor *tensor)
{
    return register_checked(module, name, tensor, true);
}

static bool contains(const kn_module *tree, const kn_module *module)
{
    if (tree == module)
        return true;
    for (int i = 0; i < tree->num_children; i++) {
        if (contains(tree->children[i].module, module))
            return true;
    }
    return false;
}

/* KN_OK if `child` may become a child of `module`. */
static kn_status check_child(const kn_module *module, const char *name, const kn_module *child)
{
    if (contains(child, module))
        return kn_fail(KN_ERR_ARGUMENT, "%s: a module cannot contain itself (child \"%s\")", module->type_name,
                       name != NULL ? name : "");
    return KN_OK;
}

static kn_status register_child(kn_module *module, const char *name, kn_module *child)
{
    KN_TRY(check_child(module, name, child));
    KN_TRY(check_name(module, name));
    KN_TRY(KN_GROW(module->children, module->num_children, module->child_capacity));
    char *copy = kn_strdup(name);
    if (copy == NULL)
        return KN_ERR_MEMORY;
    child->owners++;
    module->children[module->num_children++] = (kn_module_child_entry){copy, child};
    module->revision++;
    return KN_OK;
}

kn_module *kn_module_register_module(kn_module *module, const char *name, kn_module *child)
{
    if (module == NULL || child == NULL) {
        kn_fail_argument_null("register_module", module == NULL ? "module" : "child");
        kn_error_make_sticky();
    } else if (register_child(module, name, child) == KN_OK) {
        return child;
    }
    kn_error_make_sticky();
    /* Ownership passes on failure too, unless the child has an owner or contains `module`. */
    if (child != NULL && child->owners == 0 && !(module != NULL && contains(child, module)))
        kn_module_free(child);
    return NULL;
}

/* The tree's revision, which counts the child's, must not return to an earlier value. */
static kn_module *remove_child(kn_module *module, int index)
{
    kn_module_child_entry entry = module->children[index];
    module->num_children--;
    for (int i = index; i < module->num_children; i++)
        module->children[i] = module->children[i + 1];
    module->revision += kn_module_tree_revision(entry.module) + 1;
    kn_free(entry.name);
    entry.module->owners--;
    return entry.module;
}

kn_module *kn_module_release_child(kn_module *module) { return remove_child(module, module->num_children - 1); }

kn_module *kn_module_replace_module(kn_module *module, const char *name, kn_module *child)
{
    if (module == NULL || name == NULL || child == NULL) {
        kn_fail_argument_null("replace_module", module == NULL ? "module" : name == NULL ? "name" : "child");
        return NULL;
    }
    const int i = child_index(module, name);
    if (i < 0) {
        kn_fail(KN_ERR_ARGUMENT, "%s: there is no child \"%s\" to replace", module->type_name, name);
        return NULL;
    }
    if (check_child(module, name, child) != KN_OK)
        return NULL;
    kn_module *former = module->children[i].module;
    module->children[i].module = child;
    child->owners++;
    former->owners--;
    module->revision += kn_module_tree_revision(former) + 1; /* as remove_child */
    kn_module_repoint(module, former, child);
    return former;
}

kn_tensor *kn_module_replace_tensor(kn_module *module, const char *name, kn_tensor *tensor)
{
    if (module == NULL || name == NULL || tensor == NULL) {
        kn_fail_argument_null("replace_tensor", module == NULL ? "module" : name == NULL ? "name" : "tensor");
        return NULL;
    }
    kn_module_tensor *entry = kn_module_find_tensor(module, name);
    if (entry == NULL) {
        kn_fail(KN_ERR_ARGUMENT, "%s: there is no parameter or buffer \"%s\" to replace", module->type_name, name);
        return NULL;
    }
    if (!entry->is_buffer && !kn_requires_grad(tensor) && kn_set_requires_grad(tensor, true) != KN_OK)
        return NULL;
    kn_tensor *former = entry->tensor;
    entry->tensor = kn_retain(tensor);
    module->revision++;
    kn_module_repoint(module, former, tensor);
    kn_release(former);
    return tensor;
}

kn_module_tensor *kn_module_find_tensor(kn_module *module, const char *name)
{
    for (int i = 0; i < module->num_tensors; i++)
        if (strcmp(module->tensors[i].name, name) == 0)
            return &module->tensors[i];
    return NULL;
}

void kn_module_drop_tensor(kn_module *module, const char *name)
{
    kn_module_tensor *entry = kn_module_find_tensor(module, name);
    kn_release(entry->tensor);
    kn_free(entry->name);
    const kn_module_tensor *end = module->tensors + --module->num_tensors;
    for (; entry < end; entry++)
        entry[0] = entry[1];
    module->revision++;
}

kn_module *kn_module_find_child(const kn_module *module, const char *name)
{
    return kn_module_child(module, child_index(module, name));
}

void kn_module_drop_child(kn_module *module, const char *name)
{
    kn_module *child = remove_child(module, child_index(module, name));
    kn_module_discard(&child, 0, 1);
}

/* A layer computes with its parts; a container and a program's own module may lose theirs. */
static kn_status check_removal(const kn_module *module, const char *name, const char *function)
{
    if (module == NULL || name == NULL) {
        kn_fail_argument_null(function, module == NULL ? "module" : "name");
        return kn_error_status();
    }
    if (module->kind.is_layer && !module->kind.is_container)
        return kn_fail(KN_ERR_ARGUMENT, "%s: the layer computes with \"%s\", which can be replaced but not removed",
                       module->type_name, name);
    if (module->computed.count > 0)
        return kn_fail(KN_ERR_STATE, "%s: remove its parametrizations and pruning masks before \"%s\"",
                       module->type_name, name);
    return KN_OK;
}

kn_module *kn_module_remove_module(kn_module *module, const char *name)
{
    if (check_removal(module, name, "remove_module") != KN_OK)
        return NULL;
    const int i = child_index(module, name);
    if (i < 0) {
        kn_fail(KN_ERR_ARGUMENT, "%s: there is no child \"%s\" to remove", module->type_name, name);
        return NULL;
    }
    kn_module *child = remove_child(module, i);
    kn_module_repoint(module, child, NULL);
    return child;
}

kn_status kn_module_remove_tensor(kn_module *module, const char *name)
{
    KN_TRY(check_removal(module, name, "remove_tensor"));
    const kn_module_tensor *entry = kn_module_find_tensor(module, name);
    if (entry == NULL)
        return kn_fail(KN_ERR_ARGUMENT, "%s: there is no parameter or buffer \"%s\" to remove", module->type_name,
                       name);
    kn_module_repoint(module, entry->tensor, NULL);
    kn_module_drop_tensor(module, name);
    return KN_OK;
}

void kn_module_repoint(kn_module *module, const void *from, void *to)
{
    char *self = module->self;
    for (size_t at = 0; at + sizeof(void *) <= module->self_size; at += _Alignof(void *)) {
        void *pointer;
        memcpy(&pointer, self + at, sizeof pointer);
        if (pointer == from)
            memcpy(self + at, &to, sizeof to);
    }
}

int kn_module_child_count(const kn_module *module) { return module == NULL ? 0 : module->num_children; }

kn_module *kn_module_child(const kn_module *module, int index)
{
    if (module == NULL || index < 0 || index >= module->num_children)
        return NULL;
    return module->children[index].module;
}

const char *kn_module_child_name(const kn_module *module, int index)
{
    return kn_module_child(module, index) != NULL ? module->children[index].name : NULL;
}

uint64_t kn_module_tree_revision(const kn_module *module)
{
    uint64_t revision = module->revision;
    for (int i = 0; i < module->num_children; i++)
        revision += kn_module_tree_revision(module->children[i].module);
    return revision;
}
