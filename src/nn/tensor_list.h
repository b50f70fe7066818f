/* nn/tensor_list.h - tensors by name: the parameters of a module, the state of an optimizer. */
#pragma once

#include <koine/tensor.h>

#include "base/name_index.h"

/* Reserved: in a safetensors file this key holds the metadata of the file. */
#define KN_METADATA_NAME "__metadata__"

/* Growable; initialise with {0}. Holds a reference to each tensor and a copy of each name. */
typedef struct kn_tensor_list {
    kn_tensor **tensors;
    char **names;
    int count, capacity;
    kn_name_index index;
} kn_tensor_list;

kn_status kn_tensor_list_append(kn_tensor_list *list, const char *name, kn_tensor *tensor);
kn_tensor *kn_tensor_list_find(const kn_tensor_list *list,
                               const char *name); /* borrowed; NULL (no error) when absent */
void kn_tensor_list_free(kn_tensor_list *list);   /* and empties it */
