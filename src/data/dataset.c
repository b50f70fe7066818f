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

static kn_status check_field(const kn_field *field)
{
    if (!kn_dtype_is_valid(field->dtype))
        return kn_fail(KN_ERR_DTYPE, "dataset: the dtype of the field \"%s\" is not set", field->name);
    if (field->ndim < 0 || field->ndim > KN_MAX_DIMS - 1) /* one dimension is for the batch */
        return kn_fail(KN_ERR_SHAPE, "dataset: the field \"%s\" of a sample has %d dimensions; it may have 0 to %d",
                       field->name, field->ndim, KN_MAX_DIMS - 1);
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

static kn_status fill(kn_dataset *dataset, const kn_field *fields, int num_fields)
{
    dataset->fields = kn_calloc((size_t)num_fields, sizeof *dataset->fields);
    dataset->names = kn_calloc((size_t)num_fields, sizeof *dataset->names);
    if (!dataset->fields || !dataset->names)
        return KN_ERR_MEMORY;
    for (int i = 0; i < num_fields; i++)
        KN_TRY(add_field(dataset, &fields[i], i));
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

void kn_dataset_free(kn_dataset *dataset)
{
    if (!dataset)
        return;
    if (dataset->functions.destroy)
        dataset->functions.destroy(dataset->self);
    free_dataset(dataset);
}

/* --- accessors ----------------------------------------------------------------------------------- */

int64_t kn_dataset_length(kn_dataset *dataset) { return dataset ? dataset->functions.length(dataset->self) : 0; }

kn_status kn_dataset_get(kn_dataset *dataset, int64_t index, void *const *fields)
{
    if (!dataset || !fields)
        return kn_fail_argument_null("kn_dataset_get", dataset ? "fields" : "dataset");
    for (int i = 0; i < dataset->num_fields; i++)
        if (!fields[i])
            return kn_fail_argument_null("kn_dataset_get", dataset->names[i]);
    int64_t length = kn_dataset_length(dataset);
    if (index < 0 || index >= length)
        return kn_fail(KN_ERR_ARGUMENT, "kn_dataset_get: index %lld is outside the dataset, which has %lld samples",
                       (long long)index, (long long)length);
    return kn_dataset_get_random(dataset, index, kn_sample_random(0, 0, index), fields);
}

kn_status kn_dataset_get_random(kn_dataset *dataset, int64_t index, uint64_t random, void *const *fields)
{
    if (dataset->get_random)
        return dataset->get_random(dataset->self, index, random, fields);
    return dataset->functions.get(dataset->self, index, fields);
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
