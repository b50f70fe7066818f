/* data/concat_dataset.c - datasets one after the other. */
#include <koine/dataset.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "data/order.h"

typedef struct part {
    kn_dataset *dataset; /* one reference */
    int64_t end;         /* samples of this and all parts before it */
} part;

typedef struct concat_dataset {
    int count;
    part parts[];
} concat_dataset;

static int64_t length(void *self)
{
    const concat_dataset *data = self;
    return data->parts[data->count - 1].end;
}

/* The part that holds the sample, whose index in it replaces *index. */
static kn_dataset *find(const concat_dataset *data, int64_t *index)
{
    int low = 0, high = data->count - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (data->parts[middle].end > *index)
            high = middle;
        else
            low = middle + 1;
    }
    if (low > 0)
        *index -= data->parts[low - 1].end;
    return data->parts[low].dataset;
}

static kn_status get_random(void *self, int64_t index, uint64_t random, void *const *fields)
{
    kn_dataset *dataset = find(self, &index);
    return kn_dataset_get_random(dataset, index, random, fields);
}

static kn_status get(void *self, int64_t index, void *const *fields)
{
    return get_random(self, index, kn_sample_random(0, 0, index), fields);
}

static kn_status lengths(void *self, int64_t index, int64_t *sizes)
{
    kn_dataset *dataset = find(self, &index);
    return kn_dataset_lengths(dataset, index, sizes);
}

static void destroy(void *self)
{
    concat_dataset *data = self;
    for (int i = 0; i < data->count; i++)
        kn_dataset_free(data->parts[i].dataset);
    kn_free(data);
}

/* --- creation ----------------------------------------------------------------------------------------------------- */

static bool is_same_field(const kn_field *a, const kn_field *b)
{
    return strcmp(a->name, b->name) == 0 && a->dtype == b->dtype && a->ndim == b->ndim && a->varies == b->varies &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof a->shape[0]) == 0 &&
           (a->length_of ? b->length_of && strcmp(a->length_of, b->length_of) == 0 : !b->length_of);
}

static kn_status check_fields(const kn_dataset *first, const kn_dataset *other, int i)
{
    if (first->num_fields != other->num_fields)
        return kn_fail(KN_ERR_SHAPE, "kn_concat_dataset: dataset %d has %d fields, the first one %d", i,
                       other->num_fields, first->num_fields);
    for (int f = 0; f < first->num_fields; f++)
        if (!is_same_field(&first->fields[f], &other->fields[f]))
            return kn_fail(KN_ERR_SHAPE,
                           "kn_concat_dataset: field %d of dataset %d (\"%s\", %s, %d dimensions) differs from that of "
                           "the first one (\"%s\", %s, %d dimensions): name, dtype and shape must be the same",
                           f, i, other->names[f], kn_dtype_name(other->fields[f].dtype), other->fields[f].ndim,
                           first->names[f], kn_dtype_name(first->fields[f].dtype), first->fields[f].ndim);
    return KN_OK;
}

static kn_status check(kn_dataset *const *datasets, int count)
{
    if (!datasets)
        return kn_fail_argument_null("kn_concat_dataset", "datasets");
    if (count < 1)
        return kn_fail(KN_ERR_ARGUMENT, "kn_concat_dataset: needs at least one dataset, not %d", count);
    for (int i = 0; i < count; i++) {
        if (!datasets[i])
            return kn_fail_argument_null("kn_concat_dataset", "datasets");
        KN_TRY(check_fields(datasets[0], datasets[i], i));
    }
    return KN_OK;
}

/* The classes' names, if all datasets have the same. */
static const char *const *common_classes(kn_dataset *const *datasets, int count)
{
    const char *const *first = datasets[0]->classes;
    for (int i = 1; i < count && first; i++) {
        const char *const *other = datasets[i]->classes;
        int at = 0;
        while (other && first[at] && other[at] && strcmp(first[at], other[at]) == 0)
            at++;
        if (!other || first[at] || other[at])
            return NULL;
    }
    return first;
}

static kn_status make(kn_dataset **made, kn_dataset *const *datasets, int count)
{
    static const kn_dataset_functions functions = {
        .length = length, .get = get, .destroy = destroy, .lengths = lengths};
    KN_TRY(check(datasets, count));
    concat_dataset *data = kn_malloc(sizeof *data + (size_t)count * sizeof data->parts[0]);
    if (!data)
        return KN_ERR_MEMORY;
    int64_t end = 0;
    for (int i = 0; i < count; i++) {
        end += kn_dataset_length(datasets[i]);
        data->parts[i] = (part){kn_dataset_retain(datasets[i]), end};
    }
    data->count = count;
    KN_TRY(kn_dataset_make(made, &functions, data, datasets[0]->fields, datasets[0]->num_fields));
    (*made)->get_random = get_random;
    (*made)->classes = common_classes(datasets, count);
    return KN_OK;
}

kn_dataset *kn_concat_dataset(kn_dataset *const *datasets, int count)
{
    kn_dataset *made = NULL;
    return make(&made, datasets, count) == KN_OK ? made : kn_error_make_sticky();
}
