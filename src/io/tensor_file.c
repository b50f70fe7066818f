/* io/tensor_file.c - named tensors and metadata in memory: the content of safetensors files. */
#include "io/tensor_file.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/utf8.h"

kn_tensor_file *kn_tensor_file_new(void)
{
    kn_tensor_file *file = kn_calloc(1, sizeof(*file));
    return file ? file : kn_error_make_sticky();
}

void kn_tensor_file_free(kn_tensor_file *file)
{
    if (!file)
        return;
    for (int i = 0; i < file->count; i++) {
        kn_free(file->tensors[i].name);
        kn_release(file->tensors[i].tensor);
    }
    for (int i = 0; i < file->metadata_count; i++) {
        kn_free(file->metadata[i].key);
        kn_free(file->metadata[i].value);
    }
    kn_name_index_free(&file->index);
    kn_free(file->tensors);
    kn_free(file->metadata);
    kn_free(file);
}

int kn_tensor_file_count(const kn_tensor_file *file) { return file ? file->count : 0; }

static bool in_range(const kn_tensor_file *file, int index) { return file && index >= 0 && index < file->count; }

const char *kn_tensor_file_name(const kn_tensor_file *file, int index)
{
    return in_range(file, index) ? file->tensors[index].name : NULL;
}

kn_tensor *kn_tensor_file_at(const kn_tensor_file *file, int index)
{
    return in_range(file, index) ? file->tensors[index].tensor : NULL;
}

static const char *name_at(const void *file, int position)
{
    return ((const kn_tensor_file *)file)->tensors[position].name;
}

kn_tensor *kn_tensor_file_get(const kn_tensor_file *file, const char *name)
{
    const int position = file && name ? kn_name_index_find(&file->index, name, name_at, file) : -1;
    return position >= 0 ? file->tensors[position].tensor : NULL;
}

const char *kn_tensor_file_metadata(const kn_tensor_file *file, const char *key)
{
    for (int i = 0; file && key && i < file->metadata_count; i++)
        if (strcmp(file->metadata[i].key, key) == 0)
            return file->metadata[i].value;
    return NULL;
}

/* --- putting ---------------------------------------------------------------------------------- */

kn_status kn_tensor_file_append(kn_tensor_file *file, const char *name, kn_tensor *tensor)
{
    KN_TRY(KN_GROW(file->tensors, file->count, file->capacity));
    char *copy = kn_strdup(name);
    if (!copy || kn_name_index_add(&file->index, name, file->count) != KN_OK) {
        kn_free(copy);
        return KN_ERR_MEMORY;
    }
    file->tensors[file->count++] = (kn_named_tensor){.name = copy, .tensor = kn_retain(tensor)};
    return KN_OK;
}

kn_status kn_tensor_file_append_metadata(kn_tensor_file *file, const char *key, const char *value)
{
    KN_TRY(KN_GROW(file->metadata, file->metadata_count, file->metadata_capacity));
    kn_metadata_entry entry = {.key = kn_strdup(key), .value = kn_strdup(value)};
    if (!entry.key || !entry.value) {
        kn_free(entry.key);
        kn_free(entry.value);
        return KN_ERR_MEMORY;
    }
    file->metadata[file->metadata_count++] = entry;
    return KN_OK;
}

static kn_status check_utf8(const char *function, const char *what, const char *text)
{
    size_t bad = 0;
    if (kn_is_utf8(text, strlen(text), &bad))
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT, "%s: the %s is not UTF-8 (byte %zu), which the file format requires", function,
                   what, bad);
}

kn_status kn_tensor_file_put(kn_tensor_file *file, const char *name, kn_tensor *tensor)
{
    if (!file || !name || !tensor)
        return kn_fail_argument_null("kn_tensor_file_put", !file ? "file" : !name ? "name" : "tensor");
    KN_TRY(check_utf8("kn_tensor_file_put", "name", name));
    if (strcmp(name, KN_METADATA_NAME) == 0)
        return kn_fail(KN_ERR_ARGUMENT,
                       "kn_tensor_file_put: no tensor can be named '%s', which is reserved for the file's metadata",
                       name);
    if (kn_tensor_file_get(file, name))
        return kn_fail(KN_ERR_ARGUMENT, "kn_tensor_file_put: there is already a tensor named '%s'", name);
    return kn_tensor_file_append(file, name, tensor);
}

kn_status kn_tensor_file_set_metadata(kn_tensor_file *file, const char *key, const char *value)
{
    if (!file || !key || !value)
        return kn_fail_argument_null("kn_tensor_file_set_metadata", !file ? "file" : !key ? "key" : "value");
    KN_TRY(check_utf8("kn_tensor_file_set_metadata", "key", key));
    KN_TRY(check_utf8("kn_tensor_file_set_metadata", "value", value));
    for (int i = 0; i < file->metadata_count; i++)
        if (strcmp(file->metadata[i].key, key) == 0) {
            char *copy = kn_strdup(value);
            if (!copy)
                return KN_ERR_MEMORY;
            kn_free(file->metadata[i].value);
            file->metadata[i].value = copy;
            return KN_OK;
        }
    return kn_tensor_file_append_metadata(file, key, value);
}
