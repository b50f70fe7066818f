/* data/dataset.c - samples by index. */
#include "data/dataset.h"

#include "base/error.h"
#include "base/memory.h"
#include "data/order.h"
#include "tensor/tensor.h"

int64_t kn_sample_spec_numel(const kn_sample_spec *spec) { return kn_shape_numel(spec->ndim, spec->shape); }

size_t kn_sample_spec_bytes(const kn_sample_spec *spec)
{
    return (size_t)kn_sample_spec_numel(spec) * kn_dtype_size(spec->dtype);
}

static kn_status check_spec(const kn_sample_spec *spec, const char *what)
{
    if (spec->dtype < KN_F64 || spec->dtype > KN_BOOL)
        return kn_fail(KN_ERR_DTYPE, "dataset: the %s's dtype is not set", what);
    if (spec->ndim < 0 || spec->ndim > KN_MAX_DIMS - 1) /* the batch takes one dimension */
        return kn_fail(KN_ERR_SHAPE, "dataset: the %s of a sample has %d dimensions; it may have 0 to %d", what,
                       spec->ndim, KN_MAX_DIMS - 1);
    return kn_tensor_check_shape(spec->ndim, spec->shape, spec->dtype);
}

static kn_status make(kn_dataset **dataset, const kn_dataset_functions *functions, void *self,
                      const kn_sample_spec *input, const kn_sample_spec *target)
{
    if (!functions || !functions->length || !functions->get)
        return kn_fail(KN_ERR_ARGUMENT, "dataset: the functions `length` and `get` are needed");
    if (!input || !target)
        return kn_fail_argument_null("kn_dataset_new", input ? "target" : "input");
    KN_TRY(check_spec(input, "input"));
    KN_TRY(check_spec(target, "target"));
    kn_dataset *made = kn_calloc(1, sizeof(*made));
    if (!made)
        return KN_ERR_MEMORY;
    *made = (kn_dataset){.functions = *functions, .self = self, .input = *input, .target = *target};
    *dataset = made;
    return KN_OK;
}

kn_dataset *kn_dataset_new(const kn_dataset_functions *functions, void *self, const kn_sample_spec *input,
                           const kn_sample_spec *target)
{
    kn_dataset *dataset = NULL;
    return make(&dataset, functions, self, input, target) == KN_OK ? dataset : kn_stick();
}

kn_status kn_dataset_make(kn_dataset **dataset, const kn_dataset_functions *functions, void *self,
                          const kn_sample_spec *input, const kn_sample_spec *target)
{
    kn_status status = make(dataset, functions, self, input, target);
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
    kn_free(dataset);
}

int64_t kn_dataset_length(kn_dataset *dataset) { return dataset ? dataset->functions.length(dataset->self) : 0; }

kn_status kn_dataset_get(kn_dataset *dataset, int64_t index, void *input, void *target)
{
    if (!dataset || !input || !target)
        return kn_fail_argument_null("kn_dataset_get", !dataset ? "dataset" : !input ? "input" : "target");
    int64_t length = kn_dataset_length(dataset);
    if (index < 0 || index >= length)
        return kn_fail(KN_ERR_ARGUMENT, "kn_dataset_get: index %lld is outside the dataset, which has %lld samples",
                       (long long)index, (long long)length);
    return kn_dataset_get_random(dataset, index, kn_sample_random(0, 0, index), input, target);
}

kn_status kn_dataset_get_random(kn_dataset *dataset, int64_t index, uint64_t random, void *input, void *target)
{
    if (dataset->get_random)
        return dataset->get_random(dataset->self, index, random, input, target);
    return dataset->functions.get(dataset->self, index, input, target);
}

const kn_sample_spec *kn_dataset_input_spec(const kn_dataset *dataset) { return dataset ? &dataset->input : NULL; }

const kn_sample_spec *kn_dataset_target_spec(const kn_dataset *dataset) { return dataset ? &dataset->target : NULL; }
