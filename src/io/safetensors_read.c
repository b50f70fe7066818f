/* io/safetensors_read.c - reads a safetensors file into memory. */
#include <cjson/cJSON.h>
#include <string.h>

#include "base/memory.h"
#include "io/load.h"
#include "io/safetensors.h"

#define CHUNK_BYTES ((size_t)1 << 20) /* stored bytes converted at a time; a multiple of every element size */

/* The data may be in another order than the header's entries, so each read seeks. Sizes have been checked against the
 * file's, so a short read means that the file is being modified. */
static kn_status read_elements(kn_tensor *tensor, kn_source *source, const kn_safetensors_entry *entry,
                               uint64_t data_start, unsigned char *chunk)
{
    uint64_t stored_size = kn_element_size(entry->element), size = kn_dtype_size(kn_dtype_of(tensor));
    uint64_t left = entry->end - entry->begin, at = data_start + entry->begin;
    unsigned char *destination = kn_data(tensor);
    if (left == 0)
        return KN_OK;
    kn_source_seek(source, at);
    while (left > 0) {
        size_t bytes = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
        uint64_t count = bytes / stored_size;
        KN_TRY(kn_source_read_exactly(source, chunk, bytes, entry->name));
        uint64_t converted = kn_elements_decode(destination, chunk, count, entry->element, !kn_little_endian());
        if (converted < count)
            return kn_source_fail(source, at + converted * stored_size,
                                  "tensor '%.200s': expected uint64 values that fit an int64", entry->name);
        destination += count * size;
        at += bytes;
        left -= bytes;
    }
    return KN_OK;
}

static kn_status read_tensor(kn_tensor_file *file, kn_source *source, const kn_safetensors_entry *entry,
                             uint64_t data_start, unsigned char *chunk)
{
    kn_tensor *tensor = NULL;
    KN_TRY(kn_tensor_new(&tensor, kn_element_dtype(entry->element), entry->ndim, entry->shape, kn_device_host()));
    kn_status status = read_elements(tensor, source, entry, data_start, chunk);
    if (status == KN_OK)
        status = kn_tensor_file_append(file, entry->name, tensor);
    kn_release(tensor);
    return status;
}

static kn_status read_contents(kn_tensor_file *file, kn_source *source, const kn_safetensors_header *header,
                               uint64_t data_start)
{
    for (const cJSON *item = header->metadata ? header->metadata->child : NULL; item; item = item->next)
        KN_TRY(kn_tensor_file_append_metadata(file, item->string, item->valuestring));
    unsigned char *chunk = kn_malloc(CHUNK_BYTES);
    if (!chunk)
        return KN_ERR_MEMORY;
    kn_status status = KN_OK;
    for (int i = 0; i < header->count && status == KN_OK; i++)
        status = read_tensor(file, source, &header->entries[i], data_start, chunk);
    kn_free(chunk);
    return status;
}

/* Reads the length and the header's text. */
static kn_status read_text(kn_source *source, char **text, size_t *length, uint64_t *file_bytes)
{
    unsigned char stored[8];
    uint64_t claimed = 0;
    *file_bytes = kn_source_size(source);
    KN_TRY(kn_source_read_exactly(source, stored, sizeof(stored), "the header's length"));
    for (int i = 7; i >= 0; i--)
        claimed = claimed << 8 | stored[i];
    if (claimed > KN_SAFETENSORS_HEADER_LIMIT)
        return kn_source_fail(source, 0, "expected a header of at most %d bytes, found a length of %llu",
                              KN_SAFETENSORS_HEADER_LIMIT, (unsigned long long)claimed);
    if (claimed < 2)
        return kn_source_fail(source, 0, "expected a header of at least 2 bytes, found a length of %llu",
                              (unsigned long long)claimed);
    *length = (size_t)claimed;
    unsigned char *block = NULL;
    KN_TRY(kn_source_read_block(source, &block, claimed, "header"));
    *text = (char *)block;
    return KN_OK;
}

static kn_status read_file(kn_tensor_file *file, kn_source *source)
{
    char *text = NULL;
    size_t length = 0;
    uint64_t file_bytes = 0;
    kn_safetensors_header header;
    KN_TRY(read_text(source, &text, &length, &file_bytes));
    uint64_t data_start = kn_source_offset(source);
    kn_status status = kn_safetensors_parse(&header, source, text, length, file_bytes - data_start);
    kn_free(text);
    KN_TRY(status);
    status = read_contents(file, source, &header, data_start);
    kn_safetensors_header_free(&header);
    return status;
}

kn_tensor_file *kn_load_safetensors(const char *path)
{
    kn_source *source = NULL;
    if (!path)
        return kn_fail_argument_null("kn_load_safetensors", "path"), NULL;
    kn_tensor_file *file = kn_tensor_file_new();
    kn_status status = file ? kn_source_open(&source, path, false) : KN_ERR_MEMORY;
    if (status == KN_OK) {
        status = read_file(file, source);
        kn_source_close(source);
    }
    if (status == KN_OK)
        return file;
    kn_tensor_file_free(file);
    return NULL;
}
