/* io/safetensors_header.c - parses the JSON header of a safetensors file, which is untrusted input. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/threads.h"
#include "base/utf8.h"
#include "io/safetensors.h"

#define HEADER_START 8                 /* file offset of the JSON */
#define VALUE_LIMIT 2000000            /* commas in the header: limits cJSON's tree, about 64 bytes per value */
#define WHOLE_LIMIT 9007199254740992.0 /* 2^53: cJSON's numbers are doubles */

/* --- before cJSON sees it --------------------------------------------------------------------- */

/* Rejects what cJSON would accept: invalid UTF-8, a NUL in a name (cJSON would cut the name there), and huge numbers of
 * values. */
static kn_status check_text(const kn_source *source, const char *text, size_t length)
{
    size_t bad, commas = 0;
    if (text[0] != '{')
        return kn_source_fail(source, HEADER_START, "expected '{', the start of the header");
    if (!kn_is_utf8(text, length, &bad))
        return kn_source_fail(source, HEADER_START + bad, "expected UTF-8 in the header");
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\0' || (length - i >= 6 && memcmp(text + i, "\\u0000", 6) == 0))
            return kn_source_fail(source, HEADER_START + i, "expected no NUL characters in the header");
        if (text[i] == '\\')
            i++; /* skip the escaped character */
        else if (text[i] == ',' && ++commas > VALUE_LIMIT)
            return kn_source_fail(source, HEADER_START + i, "expected a header of at most %d values", VALUE_LIMIT);
    }
    return KN_OK;
}

static kn_status parse_json(cJSON **json, const kn_source *source, const char *text, size_t length)
{
    static kn_mutex parsing = KN_MUTEX_INIT; /* cJSON keeps its last error in a global variable */
    const char *end = text;
    kn_lock(&parsing);
    cJSON *parsed = cJSON_ParseWithLengthOpts(text, length, &end, 0);
    kn_unlock(&parsing);
    if (!parsed)
        return kn_source_fail(source, HEADER_START + (uint64_t)(end - text),
                              "expected JSON, as the safetensors header must be");
    while (end < text + length && *end == ' ') /* the padding */
        end++;
    if (end < text + length) {
        cJSON_Delete(parsed);
        return kn_source_fail(source, HEADER_START + (uint64_t)(end - text),
                              "expected nothing but spaces after the header's JSON");
    }
    *json = parsed;
    return KN_OK;
}

/* --- one entry -------------------------------------------------------------------------------- */

/* Parsed JSON has no positions: messages about an entry name the tensor and give the header's offset. */
static kn_status fail_entry(const kn_source *source, const char *name, const char *expected)
{
    return kn_source_fail(source, HEADER_START, "tensor '%.200s': expected %s", name, expected);
}

/* A whole number from 0 to 2^53. */
static bool whole_number(const cJSON *item, int64_t *value)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= WHOLE_LIMIT))
        return false;
    *value = (int64_t)item->valuedouble;
    return (double)*value == item->valuedouble;
}

static kn_status parse_shape(kn_safetensors_entry *entry, const kn_source *source, const cJSON *item)
{
    if (!cJSON_IsArray(item))
        return fail_entry(source, entry->name, "\"shape\" to be a list of sizes");
    for (const cJSON *size = item->child; size; size = size->next) {
        if (entry->ndim == KN_MAX_DIMS)
            return fail_entry(source, entry->name, "at most 8 dimensions");
        if (!whole_number(size, &entry->shape[entry->ndim++]))
            return fail_entry(source, entry->name, "each size to be a whole number of at most 2^53");
    }
    return KN_OK;
}

static kn_status parse_offsets(kn_safetensors_entry *entry, const kn_source *source, const cJSON *item)
{
    int64_t begin, end;
    const cJSON *first = cJSON_IsArray(item) ? item->child : NULL, *second = first ? first->next : NULL;
    if (!second || second->next || !whole_number(first, &begin) || !whole_number(second, &end) || begin > end)
        return fail_entry(source, entry->name, "\"data_offsets\" to be [begin, end], whole numbers in order");
    entry->begin = (uint64_t)begin;
    entry->end = (uint64_t)end;
    return KN_OK;
}

static kn_status parse_dtype(kn_safetensors_entry *entry, const kn_source *source, const cJSON *item)
{
    if (!cJSON_IsString(item))
        return fail_entry(source, entry->name, "\"dtype\" to be a string");
    if (!kn_element_named(&entry->element, item->valuestring, kn_element_safetensors_name))
        return fail_entry(source, entry->name,
                          "a dtype among F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8 and BOOL");
    return KN_OK;
}

static kn_status check_size(const kn_safetensors_entry *entry, const kn_source *source)
{
    uint64_t bytes = 0;
    if (!kn_elements_bytes(&bytes, entry->ndim, entry->shape, kn_element_size(entry->element)))
        return fail_entry(source, entry->name, "a shape whose product fits in memory");
    if (bytes != entry->end - entry->begin)
        return kn_source_fail(
            source, HEADER_START,
            "tensor '%.200s': expected data_offsets %llu bytes apart, as given by dtype and shape, found %llu",
            entry->name, (unsigned long long)bytes, (unsigned long long)(entry->end - entry->begin));
    return KN_OK;
}

static kn_status parse_entry(kn_safetensors_entry *entry, const kn_source *source, const cJSON *item)
{
    *entry = (kn_safetensors_entry){.name = item->string};
    if (!cJSON_IsObject(item))
        return fail_entry(source, entry->name, "an object with dtype, shape and data_offsets");
    bool dtype = false, shape = false, offsets = false;
    for (const cJSON *field = item->child; field; field = field->next) {
        bool *seen = strcmp(field->string, "dtype") == 0          ? &dtype
                     : strcmp(field->string, "shape") == 0        ? &shape
                     : strcmp(field->string, "data_offsets") == 0 ? &offsets
                                                                  : NULL;
        if (!seen || *seen)
            return fail_entry(source, entry->name, "each of dtype, shape and data_offsets once, and nothing else");
        *seen = true;
        KN_TRY(seen == &dtype   ? parse_dtype(entry, source, field)
               : seen == &shape ? parse_shape(entry, source, field)
                                : parse_offsets(entry, source, field));
    }
    if (!dtype || !shape || !offsets)
        return fail_entry(source, entry->name, "each of dtype, shape and data_offsets once, and nothing else");
    return check_size(entry, source);
}

/* --- all entries together --------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorts and checks the keys of one JSON object; cJSON keeps duplicate keys. */
static kn_status check_names(const kn_source *source, const char **names, int count)
{
    if (count > 1)
        qsort(names, (size_t)count, sizeof(*names), compare_names);
    for (int i = 1; i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return kn_source_fail(source, HEADER_START, "expected each key once in the header, found '%.200s' twice",
                                  names[i]);
    return KN_OK;
}

static kn_status check_unique_keys(const kn_source *source, const cJSON *object)
{
    int count = cJSON_GetArraySize(object), filled = 0;
    const char **names = kn_malloc((size_t)count * sizeof(*names));
    if (!names)
        return KN_ERR_MEMORY;
    for (const cJSON *item = object->child; item; item = item->next)
        names[filled++] = item->string;
    kn_status status = check_names(source, names, filled);
    kn_free(names);
    return status;
}

static int compare_begins(const void *a, const void *b)
{
    const kn_safetensors_entry *x = *(const kn_safetensors_entry *const *)a,
                               *y = *(const kn_safetensors_entry *const *)b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static kn_status check_cover(const kn_source *source, const kn_safetensors_entry **sorted, int count,
                             uint64_t data_start, uint64_t data_bytes)
{
    uint64_t position = 0;
    for (int i = 0; i < count; i++) {
        if (sorted[i]->begin != position)
            return kn_source_fail(
                source, data_start + position,
                "tensor '%.200s': expected it to begin here, at offset %llu of the data, with no %s, found %llu",
                sorted[i]->name, (unsigned long long)position,
                sorted[i]->begin > position ? "gap before it" : "overlap", (unsigned long long)sorted[i]->begin);
        position = sorted[i]->end;
    }
    if (position != data_bytes)
        return kn_source_fail(source, data_start + (position < data_bytes ? position : data_bytes),
                              "expected %llu bytes of tensors, as given by the header, found %llu",
                              (unsigned long long)position, (unsigned long long)data_bytes);
    return KN_OK;
}

/* Checks that there are no gaps or overlaps, and that the data ends where the file does. */
static kn_status check_offsets(const kn_source *source, const kn_safetensors_header *header, uint64_t data_start,
                               uint64_t data_bytes)
{
    const kn_safetensors_entry **sorted = kn_malloc((size_t)header->count * sizeof(*sorted));
    if (!sorted)
        return KN_ERR_MEMORY;
    for (int i = 0; i < header->count; i++)
        sorted[i] = &header->entries[i];
    if (header->count > 1)
        qsort(sorted, (size_t)header->count, sizeof(*sorted), compare_begins);
    kn_status status = check_cover(source, sorted, header->count, data_start, data_bytes);
    kn_free(sorted);
    return status;
}

static kn_status check_metadata(const kn_source *source, const cJSON *metadata)
{
    if (!cJSON_IsObject(metadata))
        return kn_source_fail(source, HEADER_START, "expected \"%s\" to be an object", KN_METADATA_NAME);
    for (const cJSON *item = metadata->child; item; item = item->next)
        if (!cJSON_IsString(item))
            return kn_source_fail(source, HEADER_START,
                                  "expected each value of \"%s\" to be a string, found another type for '%.200s'",
                                  KN_METADATA_NAME, item->string);
    return check_unique_keys(source, metadata);
}

static kn_status parse_entries(kn_safetensors_header *header, const kn_source *source, size_t length,
                               uint64_t data_bytes)
{
    KN_TRY(check_unique_keys(source, header->json));
    header->entries = kn_calloc((size_t)cJSON_GetArraySize(header->json), sizeof(*header->entries));
    if (!header->entries)
        return KN_ERR_MEMORY;
    for (const cJSON *item = header->json->child; item; item = item->next) {
        if (strcmp(item->string, KN_METADATA_NAME) == 0) {
            KN_TRY(check_metadata(source, item));
            header->metadata = item;
            continue;
        }
        KN_TRY(parse_entry(&header->entries[header->count], source, item));
        header->count++;
    }
    return check_offsets(source, header, HEADER_START + length, data_bytes);
}

kn_status kn_safetensors_parse(kn_safetensors_header *header, const kn_source *source, const char *text, size_t length,
                               uint64_t data_bytes)
{
    *header = (kn_safetensors_header){0};
    KN_TRY(check_text(source, text, length));
    KN_TRY(parse_json(&header->json, source, text, length));
    kn_status status = parse_entries(header, source, length, data_bytes);
    if (status != KN_OK)
        kn_safetensors_header_free(header);
    return status;
}

void kn_safetensors_header_free(kn_safetensors_header *header)
{
    cJSON_Delete(header->json);
    kn_free(header->entries);
    *header = (kn_safetensors_header){0};
}
