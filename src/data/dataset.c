/* data/dataset.c - samples by index. */
#include "data/dataset.h"

#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/order.h"
#include "tensor/tensor.h"

/* --- fields ----------------------------------------------------------------------------------- */

int64_t kn_field_numel(const kn_field *field) { return kn_shape_numel(field->ndim, field->shape); }

size_t kn_field_bytes(const kn_field *field) { return (size_t)kn_field_numel(field) * kn_dtype_size(field->dtype); }

size_t kn_field_row_bytes(const kn_field *field)
{
    const int first = field->varies ? 1 : 0;
    return (size_t)kn_shape_numel(field->ndim - first, field->shape + first) * kn_dtype_size(field->dtype);
}

static kn_status check_field(const kn_field *field)
{
    if (!kn_dtype_is_valid(field->dtype))
        return kn_fail(KN_ERR_DTYPE, "dataset: the dtype of the field \"%s\" is not set", field->name);
    if (field->ndim < 0 || field->ndim > KN_MAX_DIMS - 1) /* one dimension is for the batch */
        return kn_fail(KN_ERR_SHAPE, "dataset: the field \"%s\" of a sample has %d dimensions; it may have 0 to %d",
                       field->name, field->ndim, KN_MAX_DIMS - 1);
    if (field->varies && field->ndim == 0)
        return kn_fail(KN_ERR_SHAPE, "dataset: the field \"%s\" varies, but has no dimensions", field->name);
    return kn_tensor_check_shape(field->ndim, field->shape, field->dtype);
}

static int find(const kn_dataset *dataset, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(dataset->names[i], name) == 0)
            return i;
    return -1;
}

/* Adds field `i` under a unique name. */
static kn_status add_field(kn_dataset *dataset, const kn_field *field, int i)
{
    char number[16];
    snprintf(number, sizeof number, "%d", i);
    const char *name = field->name ? field->name : i == 0 ? "input" : i == 1 ? "target" : number;
    if (name[0] == '\0' || find(dataset, i, name) >= 0)
        return name[0] == '\0' ? kn_fail(KN_ERR_ARGUMENT, "dataset: the name of field %d is empty", i)
                               : kn_fail(KN_ERR_ARGUMENT, "dataset: fields %d and %d are both called \"%s\"",
                                         find(dataset, i, name), i, name);
    char *copy = kn_strdup(name);
    if (!copy)
        return KN_ERR_MEMORY;
    dataset->fields[i] = *field;
    dataset->fields[i].name = dataset->names[i] = copy;
    dataset->num_fields = i + 1;
    return check_field(&dataset->fields[i]);
}

const char *kn_describe_names(char *text, size_t size, const char *const *names, int count)
{
    size_t length = (size_t)snprintf(text, size, "it has ");
    for (int i = 0; i < count && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s\"%s\"", i > 0 ? ", " : "", names[i]);
    return text;
}

/* --- creation ----------------------------------------------------------------------------------- */

/* Frees all but self. */
static void free_dataset(kn_dataset *dataset)
{
    for (int i = 0; i < dataset->num_fields; i++)
        kn_free((char *)(uintptr_t)dataset->names[i]);
    kn_free(dataset->names);
    kn_free(dataset->fields);
    kn_free(dataset);
}

/* Finds the field whose length field `i` is. */
static kn_status resolve_length(kn_dataset *dataset, int i)
{
    kn_field *field = &dataset->fields[i];
    if (!field->length_of)
        return KN_OK;
    const int of = find(dataset, dataset->num_fields, field->length_of);
    if (of < 0 || !dataset->fields[of].varies)
        return kn_fail(KN_ERR_ARGUMENT,
                       "dataset: the field \"%s\" is the length of \"%s\", which is no field that varies", field->name,
                       field->length_of);
    if (field->dtype != KN_I64 || field->ndim != 0)
        return kn_fail(KN_ERR_ARGUMENT, "dataset: the field \"%s\" is a length: it must be int64, without dimensions",
                       field->name);
    field->length_of = dataset->names[of];
    return KN_OK;
}

static kn_status check_lengths(kn_dataset *dataset)
{
    const kn_field *varying = NULL;
    for (int i = 0; i < dataset->num_fields; i++) {
        KN_TRY(resolve_length(dataset, i));
        dataset->has_lengths = dataset->has_lengths || dataset->fields[i].length_of;
        varying = dataset->fields[i].varies ? &dataset->fields[i] : varying;
    }
    if (varying && !dataset->functions.lengths)
        return kn_fail(KN_ERR_ARGUMENT, "dataset: the field \"%s\" varies: the function `lengths` is required",
                       varying->name);
    if (!varying)
        dataset->functions.lengths = NULL;
    return KN_OK;
}

static kn_status fill(kn_dataset *dataset, const kn_field *fields, int num_fields)
{
    dataset->fields = kn_calloc((size_t)num_fields, sizeof *dataset->fields);
    dataset->names = kn_calloc((size_t)num_fields, sizeof *dataset->names);
    if (!dataset->fields || !dataset->names)
        return KN_ERR_MEMORY;
    for (int i = 0; i < num_fields; i++)
        KN_TRY(add_field(dataset, &fields[i], i));
    KN_TRY(check_lengths(dataset));
    dataset->input = find(dataset, num_fields, "input");
    dataset->target = find(dataset, num_fields, "target");
    return KN_OK;
}

static kn_status make(kn_dataset **dataset, const kn_dataset_functions *functions, void *self, const kn_field *fields,
                      int num_fields)
{
    if (!functions || !functions->length || !functions->get)
        return kn_fail(KN_ERR_ARGUMENT, "dataset: the functions `length` and `get` are required");
    if (!fields || num_fields < 1)
        return kn_fail(KN_ERR_ARGUMENT, "dataset: a sample needs at least one field, not %d", fields ? num_fields : 0);
    kn_dataset *made = kn_calloc(1, sizeof(*made));
    if (!made)
        return KN_ERR_MEMORY;
    *made = (kn_dataset){.functions = *functions, .self = self};
    atomic_init(&made->references, 1);
    kn_status status = fill(made, fields, num_fields);
    if (status == KN_OK)
        *dataset = made;
    else
        free_dataset(made);
    return status;
}

kn_dataset *kn_dataset_new(const kn_dataset_functions *functions, void *self, const kn_field *fields, int num_fields)
{
    kn_dataset *dataset = NULL;
    return make(&dataset, functions, self, fields, num_fields) == KN_OK ? dataset : kn_error_make_sticky();
}

kn_status kn_dataset_make(kn_dataset **dataset, const kn_dataset_functions *functions, void *self,
                          const kn_field *fields, int num_fields)
{
    kn_status status = make(dataset, functions, self, fields, num_fields);
    if (status != KN_OK)
        functions->destroy(self);
    return status;
}

kn_dataset *kn_dataset_retain(kn_dataset *dataset)
{
    atomic_fetch_add(&dataset->references, 1);
    return dataset;
}

void kn_dataset_free(kn_dataset *dataset)
{
    if (!dataset || atomic_fetch_sub(&dataset->references, 1) > 1)
        return;
    if (dataset->functions.destroy)
        dataset->functions.destroy(dataset->self);
    free_dataset(dataset);
}

/* --- accessors ----------------------------------------------------------------------------------- */

int64_t kn_dataset_length(kn_dataset *dataset) { return dataset ? dataset->functions.length(dataset->self) : 0; }

static kn_status check_index(kn_dataset *dataset, int64_t index, const char *function)
{
    const int64_t length = kn_dataset_length(dataset);
    if (index >= 0 && index < length)
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT, "%s: index %lld is outside the dataset, which has %lld samples", function,
                   (long long)index, (long long)length);
}

/* The fields that are lengths of others. */
static kn_status write_lengths(kn_dataset *dataset, int64_t index, void *const *fields)
{
    int64_t *lengths = kn_calloc((size_t)dataset->num_fields, sizeof *lengths);
    kn_status status = lengths ? kn_dataset_lengths(dataset, index, lengths) : KN_ERR_MEMORY;
    for (int i = 0; i < dataset->num_fields && status == KN_OK; i++)
        if (dataset->fields[i].length_of)
            *(int64_t *)fields[i] = lengths[find(dataset, dataset->num_fields, dataset->fields[i].length_of)];
    kn_free(lengths);
    return status;
}

kn_status kn_dataset_lengths(kn_dataset *dataset, int64_t index, int64_t *lengths)
{
    if (!dataset || !lengths)
        return kn_fail_argument_null("kn_dataset_lengths", dataset ? "lengths" : "dataset");
    KN_TRY(check_index(dataset, index, "kn_dataset_lengths"));
    for (int i = 0; i < dataset->num_fields; i++)
        lengths[i] = 0;
    if (dataset->functions.lengths)
        KN_TRY(dataset->functions.lengths(dataset->self, index, lengths));
    for (int i = 0; i < dataset->num_fields; i++) {
        const kn_field *field = &dataset->fields[i];
        if (!field->varies)
            lengths[i] = 1;
        else if (lengths[i] < 0 || lengths[i] > field->shape[0])
            return kn_fail(KN_ERR_SHAPE, "dataset: the length of the field \"%s\" is %lld; it must be from 0 to %lld",
                           field->name, (long long)lengths[i], (long long)field->shape[0]);
    }
    return KN_OK;
}

kn_status kn_dataset_get(kn_dataset *dataset, int64_t index, void *const *fields)
{
    if (!dataset || !fields)
        return kn_fail_argument_null("kn_dataset_get", dataset ? "fields" : "dataset");
    for (int i = 0; i < dataset->num_fields; i++)
        if (!fields[i])
            return kn_fail_argument_null("kn_dataset_get", dataset->names[i]);
    KN_TRY(check_index(dataset, index, "kn_dataset_get"));
    return kn_dataset_get_random(dataset, index, kn_sample_random(0, 0, index), fields);
}

kn_status kn_dataset_get_random(kn_dataset *dataset, int64_t index, uint64_t random, void *const *fields)
{
    if (dataset->get_random)
        return dataset->get_random(dataset->self, index, random, fields);
    KN_TRY(dataset->functions.get(dataset->self, index, fields));
    return dataset->has_lengths ? write_lengths(dataset, index, fields) : KN_OK;
}

int kn_dataset_field_count(const kn_dataset *dataset) { return dataset ? dataset->num_fields : 0; }

const kn_field *kn_dataset_field(const kn_dataset *dataset, int index)
{
    return dataset && index >= 0 && index < dataset->num_fields ? &dataset->fields[index] : NULL;
}

int kn_dataset_find_field(const kn_dataset *dataset, const char *name)
{
    return dataset && name ? find(dataset, dataset->num_fields, name) : -1;
}

const char *const *kn_dataset_classes(const kn_dataset *dataset) { return dataset ? dataset->classes : NULL; }
