/* data/subset.c - some of a dataset's samples; parts drawn at random. */
#include <koine/dataset.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "data/order.h"

typedef struct subset {
    kn_dataset *base; /* one reference */
    int64_t count;
    int64_t indices[];
} subset;

static int64_t length(void *self) { return ((const subset *)self)->count; }

static kn_status get_random(void *self, int64_t index, uint64_t random, void *const *fields)
{
    const subset *data = self;
    return kn_dataset_get_random(data->base, data->indices[index], random, fields);
}

static kn_status get(void *self, int64_t index, void *const *fields)
{
    return get_random(self, index, kn_sample_random(0, 0, index), fields);
}

static kn_status lengths(void *self, int64_t index, int64_t *sizes)
{
    const subset *data = self;
    return kn_dataset_lengths(data->base, data->indices[index], sizes);
}

static void destroy(void *self)
{
    kn_dataset_free(((subset *)self)->base);
    kn_free(self);
}

static kn_status make(kn_dataset **made, kn_dataset *base, const int64_t *indices, int64_t count)
{
    static const kn_dataset_functions functions = {
        .length = length, .get = get, .destroy = destroy, .lengths = lengths};
    subset *data = kn_malloc(sizeof *data + (size_t)count * sizeof *indices);
    if (!data)
        return KN_ERR_MEMORY;
    data->base = kn_dataset_retain(base);
    data->count = count;
    if (count > 0)
        memcpy(data->indices, indices, (size_t)count * sizeof *indices);
    KN_TRY(kn_dataset_make(made, &functions, data, base->fields, base->num_fields));
    (*made)->get_random = get_random;
    (*made)->classes = base->classes;
    return KN_OK;
}

static kn_status check_indices(kn_dataset *dataset, const int64_t *indices, int64_t count)
{
    if (!dataset || (!indices && count > 0))
        return kn_fail_argument_null("kn_subset", dataset ? "indices" : "dataset");
    if (count < 0)
        return kn_fail(KN_ERR_ARGUMENT, "kn_subset: the number of indices is %lld", (long long)count);
    const int64_t samples = kn_dataset_length(dataset);
    for (int64_t i = 0; i < count; i++)
        if (indices[i] < 0 || indices[i] >= samples)
            return kn_fail(KN_ERR_ARGUMENT, "kn_subset: index %lld is %lld; the dataset has %lld samples", (long long)i,
                           (long long)indices[i], (long long)samples);
    return KN_OK;
}

kn_dataset *kn_subset(kn_dataset *dataset, const int64_t *indices, int64_t count)
{
    kn_dataset *made = NULL;
    return check_indices(dataset, indices, count) == KN_OK && make(&made, dataset, indices, count) == KN_OK
               ? made
               : kn_error_make_sticky();
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

static kn_status check_lengths(kn_dataset *dataset, const double *lengths, int count, kn_dataset **parts)
{
    if (!dataset || !lengths || !parts)
        return kn_fail_argument_null("kn_random_split", !dataset ? "dataset" : !lengths ? "lengths" : "parts");
    if (count < 1)
        return kn_fail(KN_ERR_ARGUMENT, "kn_random_split: the number of parts is %d; it must be at least 1", count);
    for (int i = 0; i < count; i++)
        if (!(lengths[i] >= 0 && lengths[i] <= 0x1p53))
            return kn_fail(KN_ERR_ARGUMENT, "kn_random_split: length %d is %g; it must not be negative", i, lengths[i]);
    return KN_OK;
}

/* A sum that is 1 but for rounding, as PyTorch decides. */
static bool are_fractions(const double *lengths, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += lengths[i];
    return sum <= 1 && 1 - sum <= 1e-9;
}

static kn_status count_fractions(int64_t *counts, const double *fractions, int count, int64_t samples)
{
    int64_t left = samples;
    for (int i = 0; i < count; i++) {
        counts[i] = (int64_t)floor((double)samples * fractions[i]);
        left -= counts[i];
    }
    for (int64_t i = 0; i < left; i++)
        counts[i % count]++;
    for (int i = 0; i < count; i++)
        if (counts[i] == 0)
            kn_log_message(KN_LOG_WARNING, "kn_random_split: part %d, a fraction of %g, has no samples", i,
                           fractions[i]);
    return KN_OK;
}

static kn_status count_samples(int64_t *counts, const double *lengths, int count, int64_t samples)
{
    int64_t sum = 0;
    for (int i = 0; i < count; i++) {
        counts[i] = (int64_t)lengths[i];
        if ((double)counts[i] != lengths[i])
            return kn_fail(KN_ERR_ARGUMENT,
                           "kn_random_split: length %d is %g; lengths must be whole numbers, or fractions whose sum "
                           "is 1",
                           i, lengths[i]);
        sum += counts[i];
    }
    if (sum != samples)
        return kn_fail(KN_ERR_ARGUMENT, "kn_random_split: the sum of the lengths is %lld; the dataset has %lld samples",
                       (long long)sum, (long long)samples);
    return KN_OK;
}

static kn_status make_parts(kn_dataset *dataset, const int64_t *counts, int count, kn_dataset **parts, uint64_t seed)
{
    const int64_t samples = kn_dataset_length(dataset);
    int64_t *order = kn_calloc((size_t)samples, sizeof *order), begin = 0;
    kn_status status = order ? KN_OK : KN_ERR_MEMORY;
    for (int64_t i = 0; i < samples && order; i++)
        order[i] = i;
    if (order)
        kn_shuffle(order, samples, seed, 0, 0);
    for (int i = 0; i < count && status == KN_OK; begin += counts[i++])
        status = make(&parts[i], dataset, order + begin, counts[i]);
    for (int i = 0; i < count && status != KN_OK; i++) {
        kn_dataset_free(parts[i]);
        parts[i] = NULL;
    }
    kn_free(order);
    return status;
}

kn_random_split_params kn_random_split_params_init(void) { return (kn_random_split_params){KN_RANDOM_SPLIT_DEFAULTS}; }

kn_status kn_random_split_with(kn_dataset *dataset, const double *lengths, int count, kn_dataset **parts,
                               const kn_random_split_params *params)
{
    for (int i = 0; i < count && parts; i++)
        parts[i] = NULL;
    KN_TRY(check_lengths(dataset, lengths, count, parts));
    const int64_t samples = kn_dataset_length(dataset);
    int64_t *counts = kn_calloc((size_t)count, sizeof *counts);
    if (!counts)
        return KN_ERR_MEMORY;
    kn_status status = are_fractions(lengths, count) ? count_fractions(counts, lengths, count, samples)
                                                     : count_samples(counts, lengths, count, samples);
    if (status == KN_OK)
        status = make_parts(dataset, counts, count, parts, params ? params->seed : 0);
    kn_free(counts);
    return status;
}
