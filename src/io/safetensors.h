/* io/safetensors.h - shared by the reader and the writer of safetensors files.
 *
 * The format (https://github.com/huggingface/safetensors): 8 bytes, the header's length N as a little-endian integer; N
 * bytes of JSON, padded with spaces; the tensors' elements, little-endian, row-major, without gaps. The header maps
 * each name to its dtype, shape and [begin, end) within the elements. */
#pragma once

#include "base/error.h"
#include "io/elements.h"
#include "io/source.h"
#include "io/tensor_file.h"

#define KN_SAFETENSORS_HEADER_LIMIT 100000000 /* bytes; as in the reference implementation */

/* One tensor as the header describes it. */
typedef struct kn_safetensors_entry {
    const char *name; /* borrowed from the parsed JSON */
    kn_element element;
    int ndim;
    int64_t shape[KN_MAX_DIMS];
    uint64_t begin, end;
} kn_safetensors_entry;

/* The parsed and validated header: unique names, sizes that match the shapes, elements that cover `data_bytes` without
 * gaps or overlaps. Free it with kn_safetensors_header_free. */
typedef struct kn_safetensors_header {
    struct cJSON *json;
    kn_safetensors_entry *entries; /* in the header's order */
    int count;
    const struct cJSON *metadata; /* NULL: none */
} kn_safetensors_header;

kn_status kn_safetensors_parse(kn_safetensors_header *header, const kn_source *source, const char *text, size_t length,
                               uint64_t data_bytes);
void kn_safetensors_header_free(kn_safetensors_header *header);
