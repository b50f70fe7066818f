/* data/transform.c - datasets with transformed fields, and the built-in transforms. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "data/order.h"

typedef struct transform_dataset {
    kn_dataset *base;
    kn_transform transform;
    void *user;
    int count;
    int fields[]; /* indices of the transformed fields */
} transform_dataset;

static int64_t length(void *self) { return kn_dataset_length(((transform_dataset *)self)->base); }

static kn_status get_lengths(void *self, int64_t index, int64_t *lengths)
{
    return kn_dataset_lengths(((transform_dataset *)self)->base, index, lengths);
}

static kn_status transform_fields(const transform_dataset *data, uint64_t random, void *const *fields,
                                  const int64_t *lengths)
{
    for (int i = 0; i < data->count; i++) {
        const int f = data->fields[i];
        kn_field field = data->base->fields[f];
        if (field.varies)
            field.shape[0] = lengths[f];
        KN_TRY(data->transform(fields[f], &field, random, data->user));
    }
    return KN_OK;
}

/* The base gets a different number, so that nested random transforms decide independently. */
static kn_status get_random(void *self, int64_t index, uint64_t random, void *const *fields)
{
    const transform_dataset *data = self;
    KN_TRY(kn_dataset_get_random(data->base, index, kn_next_random(random), fields));
    if (!data->base->functions.lengths)
        return transform_fields(data, random, fields, NULL);
    int64_t *sizes = kn_calloc((size_t)data->base->num_fields, sizeof *sizes);
    kn_status status = sizes ? kn_dataset_lengths(data->base, index, sizes) : KN_ERR_MEMORY;
    if (status == KN_OK)
        status = transform_fields(data, random, fields, sizes);
    kn_free(sizes);
    return status;
}

static kn_status get(void *self, int64_t index, void *const *fields)
{
    return get_random(self, index, kn_sample_random(0, 0, index), fields);
}

static void destroy(void *self)
{
    transform_dataset *data = self;
    kn_dataset_free(data->base);
    kn_free(data);
}

static kn_status find_fields(transform_dataset *data, const kn_dataset *base, const char *const *names)
{
    char there[256];
    for (int i = 0; i < data->count && names; i++) {
        data->fields[i] = kn_dataset_find_field(base, names[i]);
        if (data->fields[i] < 0)
            return kn_fail(KN_ERR_ARGUMENT, "kn_transform_dataset: the dataset has no field \"%s\"; %s", names[i],
                           kn_describe_names(there, sizeof there, base->names, base->num_fields));
    }
    return KN_OK;
}

/* Takes ownership of `base` only on success. Without names, transforms the first field. */
static kn_status make(kn_dataset **dataset, kn_dataset *base, kn_transform transform, void *user,
                      const char *const *names)
{
    static const kn_dataset_functions functions = {
        .length = length, .get = get, .destroy = destroy, .lengths = get_lengths};
    int count = names ? 0 : 1;
    while (names && names[count])
        count++;
    transform_dataset *data = kn_calloc(1, sizeof(*data) + (size_t)count * sizeof(data->fields[0]));
    if (!data)
        return KN_ERR_MEMORY;
    data->count = count;
    data->transform = transform;
    data->user = user;
    kn_dataset *made = NULL;
    kn_status status = find_fields(data, base, names);
    if (status != KN_OK)
        destroy(data);
    else
        status = kn_dataset_make(&made, &functions, data, base->fields, base->num_fields);
    if (status != KN_OK)
        return status;
    data->base = base;
    made->get_random = get_random;
    *dataset = made;
    return KN_OK;
}

kn_transform_dataset_params kn_transform_dataset_params_init(void)
{
    return (kn_transform_dataset_params){KN_TRANSFORM_DATASET_DEFAULTS};
}

kn_dataset *kn_transform_dataset_with(kn_dataset *base, kn_transform transform, void *user,
                                      const kn_transform_dataset_params *params)
{
    params = params ? params : &(kn_transform_dataset_params){KN_TRANSFORM_DATASET_DEFAULTS};
    kn_dataset *dataset = NULL;
    if (!base || !transform)
        kn_fail_argument_null("kn_transform_dataset", base ? "transform" : "base");
    else
        make(&dataset, base, transform, user, params->fields);
    if (!dataset) {
        kn_dataset_free(base);
        kn_error_make_sticky();
    }
    return dataset;
}

/* --- transforms of images --------------------------------------------------------------------- */

static kn_status check_image(const char *transform, const kn_field *field)
{
    if (field->dtype != KN_F32 || field->ndim != 3)
        return kn_fail(KN_ERR_SHAPE, "%s: expected float32 images [channels, height, width], got %s of %d dimensions",
                       transform, kn_dtype_name(field->dtype), field->ndim);
    return KN_OK;
}

kn_status kn_transform_normalize(void *value, const kn_field *field, uint64_t random, void *user)
{
    (void)random;
    const kn_normalize *parameters = user;
    if (!value || !field || !parameters || !parameters->mean || !parameters->std)
        return kn_fail(KN_ERR_ARGUMENT,
                       "kn_transform_normalize: `user` must point to a kn_normalize with mean and std");
    KN_TRY(check_image("kn_transform_normalize", field));
    if (field->shape[0] != parameters->channels)
        return kn_fail(KN_ERR_SHAPE, "kn_transform_normalize: mean and std are for %d channels, but the image has %lld",
                       parameters->channels, (long long)field->shape[0]);
    const int64_t size = field->shape[1] * field->shape[2];
    float *values = value;
    for (int channel = 0; channel < parameters->channels; channel++, values += size) {
        const float mean = parameters->mean[channel], std = parameters->std[channel];
        if (!(std > 0))
            return kn_fail(KN_ERR_ARGUMENT, "kn_transform_normalize: std of channel %d is %g; it must be above 0",
                           channel, (double)std);
        for (int64_t i = 0; i < size; i++)
            values[i] = (values[i] - mean) / std;
    }
    return KN_OK;
}

kn_status kn_transform_random_horizontal_flip(void *value, const kn_field *field, uint64_t random, void *user)
{
    (void)user;
    if (!value || !field)
        return kn_fail_argument_null("kn_transform_random_horizontal_flip", value ? "field" : "value");
    KN_TRY(check_image("kn_transform_random_horizontal_flip", field));
    if (random >> 63 == 0)
        return KN_OK;
    const int64_t width = field->shape[2], rows = field->shape[0] * field->shape[1];
    float *row = value;
    for (int64_t i = 0; i < rows; i++, row += width)
        for (int64_t left = 0, right = width - 1; left < right; left++, right--) {
            float held = row[left];
            row[left] = row[right];
            row[right] = held;
        }
    return KN_OK;
}
