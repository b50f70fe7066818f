/* data/transforms/dataset.c - a dataset with a pipeline applied to one field. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "data/order.h"
#include "data/transforms/pipeline.h"

typedef struct transformed {
    kn_dataset *base;
    kn_transforms *transforms;
    int field;
    size_t bytes; /* of the result */
} transformed;

static int64_t length(void *self) { return kn_dataset_length(((transformed *)self)->base); }

static kn_status lengths(void *self, int64_t index, int64_t *sizes)
{
    return kn_dataset_lengths(((transformed *)self)->base, index, sizes);
}

static void destroy(void *self)
{
    transformed *data = self;
    kn_dataset_free(data->base);
    kn_transforms_free(data->transforms);
    kn_free(data);
}

/* The base writes its image to memory of its own, where the pipeline takes it. */
static kn_status fill(const transformed *data, int64_t index, uint64_t random, void *const *fields, void **places)
{
    const kn_field *field = &data->base->fields[data->field];
    kn_picture picture = {.dtype = field->dtype,
                          .channels = field->shape[0],
                          .height = field->shape[1],
                          .width = field->shape[2],
                          .owned = true};
    if (!(picture.data = kn_malloc(kn_field_bytes(field))))
        return KN_ERR_MEMORY;
    memcpy(places, fields, (size_t)data->base->num_fields * sizeof *places);
    places[data->field] = picture.data;
    kn_status status = kn_dataset_get_random(data->base, index, kn_next_random(random), places);
    if (status == KN_OK)
        status = kn_transforms_run(data->transforms, &picture, random);
    if (status == KN_OK)
        memcpy(fields[data->field], picture.data, data->bytes);
    kn_picture_free(&picture);
    return status;
}

static kn_status get_random(void *self, int64_t index, uint64_t random, void *const *fields)
{
    const transformed *data = self;
    void **places = kn_calloc((size_t)data->base->num_fields, sizeof *places);
    kn_status status = places ? fill(data, index, random, fields, places) : KN_ERR_MEMORY;
    kn_free(places);
    return status;
}

static kn_status get(void *self, int64_t index, void *const *fields)
{
    return get_random(self, index, kn_sample_random(0, 0, index), fields);
}

kn_transforms_dataset_params kn_transforms_dataset_params_init(void)
{
    return (kn_transforms_dataset_params){KN_TRANSFORMS_DATASET_DEFAULTS};
}

/* The index of the field, which must hold images. */
static kn_status find_field(int *index, const kn_dataset *base, const char *name)
{
    char there[256];
    *index = name ? kn_dataset_find_field(base, name) : 0;
    if (*index < 0)
        return kn_fail(KN_ERR_ARGUMENT, "kn_transforms_dataset: the dataset has no field \"%s\"; %s", name,
                       kn_describe_names(there, sizeof there, base->names, base->num_fields));
    const kn_field *field = &base->fields[*index];
    if (field->ndim == 3 && !field->varies && (field->dtype == KN_U8 || field->dtype == KN_F32) &&
        kn_field_numel(field) > 0)
        return KN_OK;
    return kn_fail(
        KN_ERR_SHAPE,
        "kn_transforms_dataset: expected uint8 or float32 images [C, H, W] in the field \"%s\", got %s of %d "
        "dimensions",
        field->name, kn_dtype_name(field->dtype), field->ndim);
}

/* Sets what the dataset needs besides its base, and the field that results. */
static kn_status prepare(transformed *data, kn_field *result, const kn_dataset *base, const kn_transforms *transforms,
                         const char *name)
{
    KN_TRY(find_field(&data->field, base, name));
    KN_TRY(kn_transforms_copy(&data->transforms, transforms));
    *result = base->fields[data->field];
    kn_picture_kind kind = {
        .dtype = result->dtype, .channels = result->shape[0], .height = result->shape[1], .width = result->shape[2]};
    KN_TRY(kn_transforms_rule(data->transforms, &kind));
    KN_TRY(kn_transforms_field(&kind, result));
    data->bytes = kn_field_bytes(result);
    return KN_OK;
}

/* Takes ownership of `base` only on success. */
static kn_status make(kn_dataset **dataset, kn_dataset *base, const kn_transforms *transforms, const char *name)
{
    static const kn_dataset_functions functions = {
        .length = length, .get = get, .destroy = destroy, .lengths = lengths};
    transformed *data = kn_calloc(1, sizeof(*data));
    kn_field *fields = kn_calloc((size_t)base->num_fields, sizeof *fields), result = {.name = NULL};
    kn_status status = data && fields ? prepare(data, &result, base, transforms, name) : KN_ERR_MEMORY;
    if (status == KN_OK) {
        memcpy(fields, base->fields, (size_t)base->num_fields * sizeof *fields);
        fields[data->field] = result;
        status = kn_dataset_make(dataset, &functions, data, fields, base->num_fields); /* destroys data on failure */
    } else if (data)
        destroy(data);
    kn_free(fields);
    if (status != KN_OK)
        return status;
    data->base = base;
    (*dataset)->get_random = get_random;
    (*dataset)->classes = base->classes;
    return KN_OK;
}

kn_dataset *kn_transforms_dataset_with(kn_dataset *base, const kn_transforms *transforms,
                                       const kn_transforms_dataset_params *params)
{
    kn_dataset *dataset = NULL;
    if (!base || !transforms)
        kn_fail_argument_null("kn_transforms_dataset", base ? "transforms" : "base");
    else
        make(&dataset, base, transforms, params ? params->field : NULL);
    if (!dataset) {
        kn_dataset_free(base);
        kn_error_make_sticky();
    }
    return dataset;
}
