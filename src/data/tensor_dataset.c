/* data/tensor_dataset.c - the rows of two tensors as samples. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "tensor/host_copies.h"

typedef struct tensor_dataset {
    kn_tensor *inputs, *targets; /* contiguous; one reference each */
    const char *input_data, *target_data;
    size_t input_bytes, target_bytes; /* of one row */
} tensor_dataset;

static int64_t length(void *self) { return kn_size(((tensor_dataset *)self)->inputs, 0); }

static kn_status get(void *self, int64_t index, void *input, void *target)
{
    const tensor_dataset *data = self;
    KN_TRY(kn_storage_wait(data->inputs->storage, KN_HOST_READ)); /* the caller may be filling them, pinned, anew */
    KN_TRY(kn_storage_wait(data->targets->storage, KN_HOST_READ));
    if (data->input_bytes > 0)
        memcpy(input, data->input_data + (size_t)index * data->input_bytes, data->input_bytes);
    if (data->target_bytes > 0)
        memcpy(target, data->target_data + (size_t)index * data->target_bytes, data->target_bytes);
    return KN_OK;
}

static void destroy(void *self)
{
    tensor_dataset *data = self;
    kn_release(data->inputs);
    kn_release(data->targets);
    kn_free(data);
}

static kn_status check(const kn_tensor *inputs, const kn_tensor *targets)
{
    if (!inputs || !targets)
        return kn_fail_argument_null("kn_tensor_dataset", inputs ? "targets" : "inputs");
    if (!kn_device_is_host(kn_device_of(inputs)) || !kn_device_is_host(kn_device_of(targets)))
        return kn_fail(
            KN_ERR_DEVICE,
            "kn_tensor_dataset: inputs are on %s and targets on %s; both must be host tensors (kn_to moves them)",
            kn_device_string(kn_device_of(inputs)), kn_device_string(kn_device_of(targets)));
    if (kn_ndim(inputs) < 1 || kn_ndim(targets) < 1 || kn_size(inputs, 0) != kn_size(targets, 0)) {
        char a[KN_DESCRIBE], b[KN_DESCRIBE];
        return kn_fail(KN_ERR_SHAPE,
                       "kn_tensor_dataset: inputs (%s) and targets (%s) must have the same size in dimension 0",
                       kn_tensor_describe(a, sizeof(a), inputs), kn_tensor_describe(b, sizeof(b), targets));
    }
    return KN_OK;
}

/* One row of the tensor. */
static kn_sample_spec row_spec(const kn_tensor *tensor)
{
    kn_sample_spec spec = {.dtype = kn_dtype_of(tensor), .ndim = kn_ndim(tensor) - 1};
    for (int dim = 0; dim < spec.ndim; dim++)
        spec.shape[dim] = kn_size(tensor, dim + 1);
    return spec;
}

static kn_status fill(tensor_dataset *data, kn_tensor *inputs, kn_tensor *targets)
{
    KN_TRY(kn_tensor_contiguous(&data->inputs, inputs));
    KN_TRY(kn_tensor_contiguous(&data->targets, targets));
    data->input_data = kn_data(data->inputs);
    data->target_data = kn_data(data->targets);
    return data->input_data && data->target_data ? KN_OK : kn_error_status();
}

kn_status kn_tensor_dataset(kn_dataset **dataset, kn_tensor *inputs, kn_tensor *targets)
{
    static const kn_dataset_functions functions = {.length = length, .get = get, .destroy = destroy};
    if (!dataset)
        return kn_fail_argument_null("kn_tensor_dataset", "dataset");
    KN_TRY(check(inputs, targets));
    tensor_dataset *data = kn_calloc(1, sizeof(*data));
    if (!data)
        return KN_ERR_MEMORY;
    kn_status status = fill(data, inputs, targets);
    if (status != KN_OK) {
        destroy(data);
        return status;
    }
    kn_sample_spec input = row_spec(inputs), target = row_spec(targets);
    data->input_bytes = kn_sample_spec_bytes(&input);
    data->target_bytes = kn_sample_spec_bytes(&target);
    return kn_dataset_make(dataset, &functions, data, &input, &target);
}
