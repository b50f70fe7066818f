/* data/transform.c - datasets with fields transformed by a function of the user's. */
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
    made->classes = base->classes;
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
