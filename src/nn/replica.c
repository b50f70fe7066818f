/* nn/replica.c - replicas: shallow copies of a module tree with other tensors, on another device. */
#include "nn/replica.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/computed.h"
#include "nn/hooks.h"

/* The modules of a tree and their replicas, in the order they were made. */
typedef struct replicas {
    const kn_replica_map *map;
    struct pair {
        kn_module *original, *replica;
    } * pairs;
    int count, capacity;
} replicas;

static kn_status note(replicas *all, kn_module *original, kn_module *replica)
{
    KN_TRY(KN_GROW(all->pairs, all->count, all->capacity));
    all->pairs[all->count++] = (struct pair){original, replica};
    return KN_OK;
}

static kn_tensor *tensor_for(const kn_replica_map *map, kn_tensor *original)
{
    for (int i = 0; i < map->count; i++) {
        if (map->originals[i] == original)
            return map->copies[i];
    }
    return original;
}

/* --- the tree --------------------------------------------------------------------------------------------------- */

static kn_status copy_tensors(kn_module *replica, const kn_module *module, const kn_replica_map *map)
{
    replica->tensors = kn_calloc((size_t)module->num_tensors, sizeof *replica->tensors);
    if (replica->tensors == NULL)
        return KN_ERR_MEMORY;
    replica->tensor_capacity = module->num_tensors;
    for (int i = 0; i < module->num_tensors; i++) {
        const kn_module_tensor *entry = &module->tensors[i];
        char *name = kn_strdup(entry->name);
        if (name == NULL)
            return KN_ERR_MEMORY;
        kn_tensor *tensor = kn_retain(tensor_for(map, entry->tensor));
        replica->tensors[replica->num_tensors++] = (kn_module_tensor){name, tensor, entry->is_buffer};
    }
    return KN_OK;
}

static kn_status copy_computed(kn_module *replica, const kn_module *module, const kn_replica_map *map)
{
    for (int i = 0; i < module->computed.count; i++) {
        const kn_computed *computed = &module->computed.items[i];
        KN_TRY(kn_computed_add(replica, computed->name, tensor_for(map, computed->original), computed->compute));
    }
    return KN_OK;
}

static kn_module *copy_tree(replicas *all, kn_module *module);

static kn_status copy_children(kn_module *replica, const kn_module *module, replicas *all)
{
    replica->children = kn_calloc((size_t)module->num_children, sizeof *replica->children);
    if (replica->children == NULL)
        return KN_ERR_MEMORY;
    replica->child_capacity = module->num_children;
    for (int i = 0; i < module->num_children; i++) {
        char *name = kn_strdup(module->children[i].name);
        kn_module *child = name != NULL ? copy_tree(all, module->children[i].module) : NULL;
        if (child == NULL) {
            kn_free(name);
            return KN_ERR_MEMORY;
        }
        child->owners = 1;
        replica->children[replica->num_children++] = (kn_module_child_entry){name, child};
    }
    return KN_OK;
}

/* The replica's self still holds the original's pointers. NULL with an error. */
static kn_module *copy_tree(replicas *all, kn_module *module)
{
    kn_module *replica = kn_layer_new_kind(module->type_name, &module->kind, module->self, module->self_size);
    if (replica == NULL)
        return NULL;
    replica->training = module->training;
    replica->origin = module->origin != NULL ? module->origin : module;
    replica->repeats = module->repeats || all->map->repeats;
    kn_status status = copy_tensors(replica, module, all->map);
    if (status == KN_OK)
        status = kn_hooks_copy(&replica->hooks, &module->hooks);
    if (status == KN_OK)
        status = copy_computed(replica, module, all->map);
    if (status == KN_OK)
        status = copy_children(replica, module, all);
    if (status == KN_OK && module->wrapped != NULL)
        replica->wrapped = replica->children[0].module;
    if (status == KN_OK)
        status = note(all, module, replica);
    return status == KN_OK ? replica : kn_layer_failed(replica);
}

/* --- self ------------------------------------------------------------------------------------------------------- */

static void *replacement(const replicas *all, void *pointer)
{
    for (int i = 0; i < all->map->count; i++) {
        if (all->map->originals[i] == pointer)
            return all->map->copies[i];
    }
    for (int i = 0; i < all->count; i++) {
        if (all->pairs[i].original == pointer)
            return all->pairs[i].replica;
    }
    return pointer;
}

/* Treats every aligned word of self that equals the address of one of the tree's tensors or modules as a pointer to it:
 * layers store such pointers there, and other values are unlikely to match. */
static void point_to_replicas(const replicas *all, kn_module *module)
{
    char *self = module->self;
    for (size_t at = 0; at + sizeof(void *) <= module->self_size; at += _Alignof(void *)) {
        void *pointer;
        memcpy(&pointer, self + at, sizeof pointer);
        if (pointer == NULL)
            continue;
        pointer = replacement(all, pointer);
        memcpy(self + at, &pointer, sizeof pointer);
    }
}

kn_status kn_module_replica_new(kn_module **replica, kn_module *module, const kn_replica_map *map)
{
    replicas all = {.map = map};
    kn_module *made = copy_tree(&all, module);
    for (int i = 0; i < all.count && made != NULL; i++)
        point_to_replicas(&all, all.pairs[i].replica);
    kn_free(all.pairs);
    if (made == NULL)
        return kn_error_status();
    *replica = made;
    return KN_OK;
}
