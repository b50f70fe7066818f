/* io/safetensors_write.c - writes a safetensors file atomically. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/safetensors.h"

/* --- layout ----------------------------------------------------------------------------------- */

typedef struct placed {
    int index; /* in the tensor file */
    size_t element_size;
    uint64_t begin, end;
} placed;

static int compare_element_sizes(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (x->element_size != y->element_size)
        return x->element_size > y->element_size ? -1 : 1;
    return x->index - y->index;
}

static int compare_indices(const void *a, const void *b)
{
    return ((const placed *)a)->index - ((const placed *)b)->index;
}

/* Largest elements first, as in the reference implementation: since the data starts at a multiple of 8, every tensor is
 * then aligned to its element size. `by_data` is sorted by data offset, `by_name` in header order. */
static void place(const kn_tensor_file *file, placed *by_data, placed *by_name)
{
    size_t count = (size_t)file->count;
    for (size_t i = 0; i < count; i++)
        by_data[i] = (placed){.index = (int)i, .element_size = kn_dtype_size(kn_dtype_of(file->tensors[i].tensor))};
    if (count > 1)
        qsort(by_data, count, sizeof(*by_data), compare_element_sizes);
    uint64_t position = 0;
    for (size_t i = 0; i < count; i++) {
        by_data[i].begin = position;
        position += (uint64_t)kn_numel(file->tensors[by_data[i].index].tensor) * by_data[i].element_size;
        by_data[i].end = position;
        by_name[i] = by_data[i];
    }
    if (count > 1)
        qsort(by_name, count, sizeof(*by_name), compare_indices);
}

/* --- header ----------------------------------------------------------------------------------- */

static void append_string(kn_text *text, const char *string)
{
    kn_text_append(text, "\"");
    for (const char *at = string; *at; at++) {
        unsigned char c = (unsigned char)*at;
        if (c == '"' || c == '\\')
            kn_text_format(text, "\\%c", c);
        else if (c < 0x20)
            kn_text_format(text, "\\u%04x", c);
        else
            kn_text_append_bytes(text, at, 1);
    }
    kn_text_append(text, "\"");
}

static void append_tensor(kn_text *text, const kn_named_tensor *named, const placed *place)
{
    append_string(text, named->name);
    kn_text_format(text, ":{\"dtype\":\"%s\",\"shape\":[",
                   kn_element_safetensors_name(kn_element_of_dtype(kn_dtype_of(named->tensor))));
    for (int dim = 0; dim < kn_ndim(named->tensor); dim++)
        kn_text_format(text, "%s%" PRId64, dim ? "," : "", kn_size(named->tensor, dim));
    kn_text_format(text, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", place->begin, place->end);
}

static void append_metadata(kn_text *text, const kn_tensor_file *file)
{
    append_string(text, KN_METADATA_NAME);
    kn_text_append(text, ":{");
    for (int i = 0; i < file->metadata_count; i++) {
        kn_text_append(text, i ? "," : "");
        append_string(text, file->metadata[i].key);
        kn_text_append(text, ":");
        append_string(text, file->metadata[i].value);
    }
    kn_text_append(text, "}");
}

/* The header padded with spaces to a multiple of 8 bytes, so that the data is aligned. */
static kn_status format_header(char **header, size_t *length, const kn_tensor_file *file, const placed *by_name)
{
    kn_text text = {0};
    kn_text_append(&text, "{");
    if (file->metadata_count > 0)
        append_metadata(&text, file);
    for (int i = 0; i < file->count; i++) {
        kn_text_append(&text, i > 0 || file->metadata_count > 0 ? "," : "");
        append_tensor(&text, &file->tensors[i], &by_name[i]);
    }
    kn_text_append(&text, "}");
    while (!text.failed && text.length % 8 != 0)
        kn_text_append(&text, " ");
    *length = text.length;
    *header = kn_text_finish(&text);
    if (!*header)
        return KN_ERR_MEMORY;
    if (*length > KN_SAFETENSORS_HEADER_LIMIT) {
        kn_free(*header);
        return kn_fail(KN_ERR_ARGUMENT,
                       "kn_save_safetensors: names and metadata take %zu bytes, more than the format's %d", *length,
                       KN_SAFETENSORS_HEADER_LIMIT);
    }
    return KN_OK;
}

/* --- writing ---------------------------------------------------------------------------------- */

static kn_status write_tensor(kn_atomic_file *output, const kn_tensor *tensor)
{
    size_t size = kn_dtype_size(kn_dtype_of(tensor)), count = (size_t)kn_numel(tensor);
    void *elements = kn_malloc(count * size);
    if (!elements)
        return KN_ERR_MEMORY;
    kn_status status = kn_read(tensor, elements, count * size);
    if (status == KN_OK && !kn_little_endian())
        kn_elements_swap(elements, count, size);
    if (status == KN_OK)
        status = kn_file_write(output, elements, count * size);
    kn_free(elements);
    return status;
}

static kn_status write_contents(kn_atomic_file *output, const kn_tensor_file *file, const placed *by_data,
                                const char *header, size_t length)
{
    unsigned char stored[8];
    for (int i = 0; i < 8; i++)
        stored[i] = (unsigned char)((uint64_t)length >> (8 * i) & 0xff);
    KN_TRY(kn_file_write(output, stored, sizeof(stored)));
    KN_TRY(kn_file_write(output, header, length));
    for (int i = 0; i < file->count; i++)
        KN_TRY(write_tensor(output, file->tensors[by_data[i].index].tensor));
    return KN_OK;
}

static kn_status write_file(const char *path, const kn_tensor_file *file, placed *by_data, placed *by_name)
{
    char *header = NULL;
    size_t length = 0;
    place(file, by_data, by_name);
    KN_TRY(format_header(&header, &length, file, by_name));
    kn_atomic_file output;
    kn_status status = kn_file_begin(&output, path);
    if (status == KN_OK)
        status = kn_file_end(&output, write_contents(&output, file, by_data, header, length));
    kn_free(header);
    return status;
}

kn_status kn_save_safetensors(const char *path, const kn_tensor_file *file)
{
    if (!path || !file)
        return kn_fail_argument_null("kn_save_safetensors", path ? "file" : "path");
    placed *by_data = kn_calloc((size_t)file->count, sizeof(*by_data)),
           *by_name = kn_calloc((size_t)file->count, sizeof(*by_name));
    kn_status status = by_data && by_name ? write_file(path, file, by_data, by_name) : KN_ERR_MEMORY;
    kn_free(by_data);
    kn_free(by_name);
    return status;
}
