/* io/tensor_file.h - the contents of a safetensors file in memory. */
#pragma once

#include <koine/io.h>

#include "nn/tensor_list.h"

typedef struct kn_named_tensor {
    char *name;
    kn_tensor *tensor; /* one reference */
} kn_named_tensor;

typedef struct kn_metadata_entry {
    char *key, *value;
} kn_metadata_entry;

struct kn_tensor_file {
    kn_named_tensor *tensors; /* in the order of the file's header, or in that of insertion */
    int count, capacity;
    kn_name_index index; /* of the tensors */
    kn_metadata_entry *metadata;
    int metadata_count, metadata_capacity;
};

/* Append without checking for duplicate names, for names known to be unique; the tensor gets one more reference. */
kn_status kn_tensor_file_append(kn_tensor_file *file, const char *name, kn_tensor *tensor);
kn_status kn_tensor_file_append_metadata(kn_tensor_file *file, const char *key, const char *value);
