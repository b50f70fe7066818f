/* data/transform.c - datasets whose inputs are changed on the way out, and the changes that come with the library. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "data/order.h"

typedef struct transform_dataset {
    kn_dataset *base;
    kn_transform transform;
    void *user;
} transform_dataset;

static int64_t length(void *self) { return kn_dataset_length(((transform_dataset *)self)->base); }

/* The base gets a number of its own, so that two random transforms on top of each other do not decide alike. */
static kn_status get_random(void *self, int64_t index, uint64_t random, void *input, void *target)
{
    const transform_dataset *data = self;
    KN_TRY(kn_dataset_get_random(data->base, index, kn_next_random(random), input, target));
    return data->transform(input, &data->base->input, random, data->user);
}

static kn_status get(void *self, int64_t index, void *input, void *target)
{
    return get_random(self, index, kn_sample_random(0, 0, index), input, target);
}

static void destroy(void *self)
{
    transform_dataset *data = self;
    kn_dataset_free(data->base);
    kn_free(data);
}

kn_status kn_transform_dataset(kn_dataset **dataset, kn_dataset *base, kn_transform transform, void *user)
{
    static const kn_dataset_functions functions = {.length = length, .get = get, .destroy = destroy};
    if (!dataset || !base || !transform) {
        kn_dataset_free(base);
        return kn_fail_argument_null("kn_transform_dataset", !dataset ? "dataset" : !base ? "base" : "transform");
    }
    transform_dataset *data = kn_calloc(1, sizeof(*data));
    if (!data) {
        kn_dataset_free(base);
        return KN_ERR_MEMORY;
    }
    *data = (transform_dataset){.base = base, .transform = transform, .user = user};
    kn_dataset *made = NULL;
    KN_TRY(kn_dataset_make(&made, &functions, data, &base->input, &base->target));
    made->get_random = get_random;
    *dataset = made;
    return KN_OK;
}

/* --- transforms of images --------------------------------------------------------------------- */

static kn_status check_image(const char *transform, const kn_sample_spec *spec)
{
    if (spec->dtype != KN_F32 || spec->ndim != 3)
        return kn_fail(KN_ERR_SHAPE, "%s: expected float32 images [channels, height, width], got %s of %d dimensions",
                       transform, kn_dtype_name(spec->dtype), spec->ndim);
    return KN_OK;
}

kn_status kn_transform_normalize(void *input, const kn_sample_spec *spec, uint64_t random, void *user)
{
    (void)random;
    const kn_normalize *parameters = user;
    if (!input || !spec || !parameters || !parameters->mean || !parameters->std)
        return kn_fail(KN_ERR_ARGUMENT,
                       "kn_transform_normalize: `user` must point to a kn_normalize with mean and std");
    KN_TRY(check_image("kn_transform_normalize", spec));
    if (spec->shape[0] != parameters->channels)
        return kn_fail(KN_ERR_SHAPE, "kn_transform_normalize: mean and std are for %d channels, but the image has %lld",
                       parameters->channels, (long long)spec->shape[0]);
    const int64_t size = spec->shape[1] * spec->shape[2];
    float *values = input;
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

kn_status kn_transform_random_horizontal_flip(void *input, const kn_sample_spec *spec, uint64_t random, void *user)
{
    (void)user;
    if (!input || !spec)
        return kn_fail_argument_null("kn_transform_random_horizontal_flip", input ? "spec" : "input");
    KN_TRY(check_image("kn_transform_random_horizontal_flip", spec));
    if (random >> 63 == 0)
        return KN_OK;
    const int64_t width = spec->shape[2], rows = spec->shape[0] * spec->shape[1];
    float *row = input;
    for (int64_t i = 0; i < rows; i++, row += width)
        for (int64_t left = 0, right = width - 1; left < right; left++, right--) {
            float held = row[left];
            row[left] = row[right];
            row[right] = held;
        }
    return KN_OK;
}
