/* nn/tensor_list.c - tensors by name. */
#include "nn/tensor_list.h"

#include "base/error.h"
#include "base/memory.h"

static kn_status grow(kn_tensor_list *list)
{
    int capacity = list->capacity;
    KN_TRY(KN_GROW(list->tensors, list->count, capacity));
    return KN_GROW(list->names, list->count, list->capacity);
}

static const char *name_at(const void *list, int position) { return ((const kn_tensor_list *)list)->names[position]; }

kn_tensor *kn_tensor_list_find(const kn_tensor_list *list, const char *name)
{
    const int position = kn_name_index_find(&list->index, name, name_at, list);
    return position >= 0 ? list->tensors[position] : NULL;
}

kn_status kn_tensor_list_append(kn_tensor_list *list, const char *name, kn_tensor *tensor)
{
    if (list->count == list->capacity) {
        kn_status status = grow(list);
        if (status != KN_OK)
            return status;
    }
    char *copy = kn_strdup(name);
    if (copy == NULL ||
        (kn_tensor_list_find(list, name) == NULL && kn_name_index_add(&list->index, name, list->count) != KN_OK)) {
        kn_free(copy);
        return KN_ERR_MEMORY;
    }
    list->tensors[list->count] = kn_retain(tensor);
    list->names[list->count++] = copy;
    return KN_OK;
}

void kn_tensor_list_free(kn_tensor_list *list)
{
    for (int i = 0; i < list->count; i++) {
        kn_release(list->tensors[i]);
        kn_free(list->names[i]);
    }
    kn_name_index_free(&list->index);
    kn_free(list->names);
    kn_free(list->tensors);
    *list = (kn_tensor_list){0};
}
