/* data/tensor_dataset.c - the rows of tensors as samples, one tensor per field. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "tensor/host_copies.h"

/* A tensor whose rows are one field. */
typedef struct column {
    kn_tensor *tensor; /* contiguous; one reference */
    const char *data;
    size_t bytes; /* of one row */
} column;

typedef struct tensor_dataset {
    int64_t length;
    int count;
    column columns[];
} tensor_dataset;

static int64_t length(void *self) { return ((tensor_dataset *)self)->length; }

static kn_status get(void *self, int64_t index, void *const *fields)
{
    const tensor_dataset *data = self;
    for (int i = 0; i < data->count; i++) {
        const column *c = &data->columns[i];
        KN_TRY(kn_storage_wait(c->tensor->storage, KN_HOST_READ)); /* the caller may be refilling a pinned tensor */
        if (c->bytes > 0)
            memcpy(fields[i], c->data + (size_t)index * c->bytes, c->bytes);
    }
    return KN_OK;
}

static void destroy(void *self)
{
    tensor_dataset *data = self;
    for (int i = 0; i < data->count; i++)
        kn_release(data->columns[i].tensor);
    kn_free(data);
}

static kn_status check(kn_tensor *const *tensors, int i)
{
    char name[24];
    snprintf(name, sizeof name, "tensors[%d]", i);
    if (!tensors[i])
        return kn_fail_argument_null("kn_tensor_dataset", name);
    if (!kn_device_is_host(kn_device_of(tensors[i])))
        return kn_fail(KN_ERR_DEVICE,
                       "kn_tensor_dataset: tensor %d is on %s; all must be host tensors (kn_to moves them)", i,
                       kn_device_string(kn_device_of(tensors[i])));
    if (kn_ndim(tensors[i]) > 0 && kn_size(tensors[i], 0) == kn_size(tensors[0], 0))
        return KN_OK;
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    return kn_fail(KN_ERR_SHAPE, "kn_tensor_dataset: tensors 0 (%s) and %d (%s) must have the same size in dimension 0",
                   kn_tensor_describe(a, sizeof(a), tensors[0]), i, kn_tensor_describe(b, sizeof(b), tensors[i]));
}

static kn_status check_all(kn_tensor *const *tensors, int count, const char *const *names)
{
    int named = 0;
    while (names && named < count && names[named])
        named++;
    if (names && (named < count || names[count]))
        return kn_fail(KN_ERR_ARGUMENT, "kn_tensor_dataset: %s names than the %d tensors given",
                       named < count ? "fewer" : "more", count);
    for (int i = 0; i < count; i++)
        KN_TRY(check(tensors, i));
    return KN_OK;
}

/* One row of the tensor. */
static kn_field row_of(const kn_tensor *tensor, const char *name)
{
    kn_field field = {.name = name, .dtype = kn_dtype_of(tensor), .ndim = kn_ndim(tensor) - 1};
    for (int dim = 0; dim < field.ndim; dim++)
        field.shape[dim] = kn_size(tensor, dim + 1);
    return field;
}

static kn_status fill(tensor_dataset *data, kn_field *fields, kn_tensor *const *tensors, int count,
                      const char *const *names)
{
    data->length = kn_size(tensors[0], 0);
    for (int i = 0; i < count; i++) {
        column *c = &data->columns[i];
        KN_TRY(kn_tensor_contiguous(&c->tensor, tensors[i]));
        data->count = i + 1;
        c->data = kn_data(c->tensor);
        if (!c->data)
            return kn_error_status();
        fields[i] = row_of(tensors[i], names ? names[i] : NULL);
        c->bytes = kn_field_bytes(&fields[i]);
    }
    return KN_OK;
}

static kn_status make(kn_dataset **dataset, kn_tensor *const *tensors, int count, const char *const *names)
{
    static const kn_dataset_functions functions = {.length = length, .get = get, .destroy = destroy};
    if (!tensors)
        return kn_fail_argument_null("kn_tensor_dataset", "tensors");
    if (count < 1)
        return kn_fail(KN_ERR_ARGUMENT, "kn_tensor_dataset: needs at least one tensor, not %d", count);
    KN_TRY(check_all(tensors, count, names));
    tensor_dataset *data = kn_calloc(1, sizeof(*data) + (size_t)count * sizeof(data->columns[0]));
    kn_field *fields = kn_calloc((size_t)count, sizeof(*fields));
    kn_status status = data && fields ? fill(data, fields, tensors, count, names) : KN_ERR_MEMORY;
    if (status == KN_OK)
        status = kn_dataset_make(dataset, &functions, data, fields, count);
    else if (data)
        destroy(data);
    kn_free(fields);
    return status;
}

kn_dataset *kn_tensor_dataset_of(kn_tensor *const *tensors, int count, const char *const *names)
{
    kn_dataset *dataset;
    return make(&dataset, tensors, count, names) == KN_OK ? dataset : kn_error_make_sticky();
}
