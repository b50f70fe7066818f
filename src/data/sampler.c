/* data/sampler.c - samplers, and those of the plain orders: sequential, random, of a subset. */
#include "data/sampler.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "data/order.h"

/* --- any sampler ---------------------------------------------------------------------------------- */

static kn_status make(kn_sampler **sampler, const kn_sampler_functions *functions, void *self)
{
    if (!functions || !functions->length || !functions->order)
        return kn_fail(KN_ERR_ARGUMENT, "kn_sampler_new: the functions `length` and `order` are required");
    const int64_t length = functions->length(self);
    if (length < 0)
        return kn_fail(KN_ERR_ARGUMENT, "kn_sampler_new: the sampler's length is %lld; it must not be negative",
                       (long long)length);
    kn_sampler *made = kn_calloc(1, sizeof *made);
    if (!made)
        return KN_ERR_MEMORY;
    *made = (kn_sampler){.functions = *functions, .self = self, .length = length};
    *sampler = made;
    return KN_OK;
}

kn_status kn_sampler_make(kn_sampler **sampler, const kn_sampler_functions *functions, void *self,
                          const char *description, ...)
{
    kn_status status = make(sampler, functions, self);
    if (status != KN_OK) {
        functions->destroy(self);
        return status;
    }
    va_list arguments;
    va_start(arguments, description);
    vsnprintf((*sampler)->description, sizeof(*sampler)->description, description, arguments);
    va_end(arguments);
    return KN_OK;
}

kn_sampler *kn_sampler_new(const kn_sampler_functions *functions, void *self)
{
    kn_sampler *sampler = NULL;
    if (make(&sampler, functions, self) != KN_OK || !sampler)
        return kn_error_make_sticky();
    snprintf(sampler->description, sizeof sampler->description, "Sampler(%lld)", (long long)sampler->length);
    return sampler;
}

void kn_sampler_free(kn_sampler *sampler)
{
    if (!sampler)
        return;
    if (sampler->functions.destroy)
        sampler->functions.destroy(sampler->self);
    kn_free(sampler);
}

int64_t kn_sampler_length(const kn_sampler *sampler) { return sampler ? sampler->length : 0; }

/* A user's function may fail without setting an error. */
kn_status kn_sampler_order(const kn_sampler *sampler, uint64_t seed, int64_t epoch, int64_t *indices)
{
    if (!sampler || !indices)
        return kn_fail_argument_null("kn_sampler_order", sampler ? "indices" : "sampler");
    if (epoch < 0)
        return kn_fail(KN_ERR_ARGUMENT, "kn_sampler_order: the epoch is %lld; it must not be negative",
                       (long long)epoch);
    const kn_status status = sampler->functions.order(sampler->self, seed, epoch, indices);
    if (status != KN_OK && kn_error_status() == KN_OK)
        kn_fail(status, "the sampler's `order` returned %s", kn_status_name(status));
    return status;
}

int64_t kn_sampler_length_of(kn_dataset *dataset, const char *function)
{
    if (!dataset) {
        kn_fail_argument_null(function, "dataset");
        return -1;
    }
    const int64_t length = kn_dataset_length(dataset);
    if (length < 0)
        kn_fail(KN_ERR_ARGUMENT, "%s: the dataset's length is %lld", function, (long long)length);
    return length;
}

/* --- of a number of samples ----------------------------------------------------------------------- */

typedef struct plain_sampler {
    int64_t samples; /* of the dataset */
    int64_t length;  /* of an epoch */
} plain_sampler;

static int64_t plain_length(void *self) { return ((const plain_sampler *)self)->length; }

static kn_status in_sequence(void *self, uint64_t seed, int64_t epoch, int64_t *indices)
{
    (void)seed;
    (void)epoch;
    for (int64_t i = 0; i < plain_length(self); i++)
        indices[i] = i;
    return KN_OK;
}

static kn_status with_replacement(void *self, uint64_t seed, int64_t epoch, int64_t *indices)
{
    const plain_sampler *data = self;
    for (int64_t i = 0; i < data->length; i++)
        indices[i] = kn_order_below(seed, epoch, i, data->samples);
    return KN_OK;
}

/* One permutation after another; of the last only the beginning. */
static kn_status permuted(void *self, uint64_t seed, int64_t epoch, int64_t *indices)
{
    const plain_sampler *data = self;
    const int64_t rest = data->samples > 0 ? data->length % data->samples : 0;
    int64_t done = 0;
    for (; done + data->samples <= data->length && data->samples > 0; done += data->samples) {
        for (int64_t i = 0; i < data->samples; i++)
            indices[done + i] = i;
        kn_shuffle(indices + done, data->samples, seed, epoch, done);
    }
    if (rest == 0)
        return KN_OK;
    int64_t *whole = kn_calloc((size_t)data->samples, sizeof *whole);
    if (!whole)
        return KN_ERR_MEMORY;
    for (int64_t i = 0; i < data->samples; i++)
        whole[i] = i;
    kn_shuffle(whole, data->samples, seed, epoch, done);
    memcpy(indices + done, whole, (size_t)rest * sizeof *whole);
    kn_free(whole);
    return KN_OK;
}

static kn_status make_sequential(kn_sampler **sampler, int64_t length)
{
    static const kn_sampler_functions functions = {.length = plain_length, .order = in_sequence, .destroy = kn_free};
    plain_sampler *data = kn_malloc(sizeof *data);
    if (!data)
        return KN_ERR_MEMORY;
    *data = (plain_sampler){length, length};
    return kn_sampler_make(sampler, &functions, data, "SequentialSampler(%lld)", (long long)length);
}

static kn_status make_random(kn_sampler **sampler, int64_t samples, const kn_random_sampler_params *p)
{
    if (p->num_samples < 0)
        return kn_fail(KN_ERR_ARGUMENT, "kn_random_sampler: num_samples is %lld; it must not be negative",
                       (long long)p->num_samples);
    if (samples == 0 && p->num_samples > 0)
        return kn_fail(KN_ERR_ARGUMENT, "kn_random_sampler: the dataset is empty; num_samples is %lld",
                       (long long)p->num_samples);
    const kn_sampler_functions functions = {
        .length = plain_length, .order = p->replacement ? with_replacement : permuted, .destroy = kn_free};
    plain_sampler *data = kn_malloc(sizeof *data);
    if (!data)
        return KN_ERR_MEMORY;
    *data = (plain_sampler){samples, p->num_samples > 0 ? p->num_samples : samples};
    return kn_sampler_make(sampler, &functions, data, "RandomSampler(%lld of %lld%s)", (long long)data->length,
                           (long long)samples, p->replacement ? ", replacement" : "");
}

kn_status kn_sampler_make_default(kn_sampler **sampler, int64_t length, bool shuffle)
{
    return shuffle ? make_random(sampler, length, &(kn_random_sampler_params){KN_RANDOM_SAMPLER_DEFAULTS})
                   : make_sequential(sampler, length);
}

kn_sampler *kn_sequential_sampler(kn_dataset *dataset)
{
    kn_sampler *sampler = NULL;
    const int64_t length = kn_sampler_length_of(dataset, "kn_sequential_sampler");
    return length >= 0 && make_sequential(&sampler, length) == KN_OK ? sampler : kn_error_make_sticky();
}

kn_random_sampler_params kn_random_sampler_params_init(void)
{
    return (kn_random_sampler_params){KN_RANDOM_SAMPLER_DEFAULTS};
}

kn_sampler *kn_random_sampler_with(kn_dataset *dataset, const kn_random_sampler_params *params)
{
    const kn_random_sampler_params *p = params ? params : &(kn_random_sampler_params){KN_RANDOM_SAMPLER_DEFAULTS};
    kn_sampler *sampler = NULL;
    const int64_t samples = kn_sampler_length_of(dataset, "kn_random_sampler");
    return samples >= 0 && make_random(&sampler, samples, p) == KN_OK ? sampler : kn_error_make_sticky();
}

/* --- of some samples ------------------------------------------------------------------------------ */

typedef struct subset_sampler {
    int64_t count;
    int64_t indices[];
} subset_sampler;

static int64_t subset_length(void *self) { return ((const subset_sampler *)self)->count; }

static kn_status subset_order(void *self, uint64_t seed, int64_t epoch, int64_t *indices)
{
    const subset_sampler *data = self;
    memcpy(indices, data->indices, (size_t)data->count * sizeof *indices);
    kn_shuffle(indices, data->count, seed, epoch, 0);
    return KN_OK;
}

static kn_status make_subset(kn_sampler **sampler, const int64_t *indices, int64_t count)
{
    static const kn_sampler_functions functions = {.length = subset_length, .order = subset_order, .destroy = kn_free};
    if (!indices && count > 0)
        return kn_fail_argument_null("kn_subset_random_sampler", "indices");
    if (count < 0)
        return kn_fail(KN_ERR_ARGUMENT, "kn_subset_random_sampler: the number of indices is %lld", (long long)count);
    for (int64_t i = 0; i < count; i++)
        if (indices[i] < 0)
            return kn_fail(KN_ERR_ARGUMENT, "kn_subset_random_sampler: index %lld is %lld; it must not be negative",
                           (long long)i, (long long)indices[i]);
    subset_sampler *data = kn_malloc(sizeof *data + (size_t)count * sizeof *indices);
    if (!data)
        return KN_ERR_MEMORY;
    data->count = count;
    if (count > 0)
        memcpy(data->indices, indices, (size_t)count * sizeof *indices);
    char hash[KN_HASH_TEXT];
    kn_hash_format(hash, kn_hash_bytes(data->indices, (size_t)count * sizeof *indices));
    return kn_sampler_make(sampler, &functions, data, "SubsetRandomSampler(%lld, %.16s)", (long long)count, hash);
}

kn_sampler *kn_subset_random_sampler(const int64_t *indices, int64_t count)
{
    kn_sampler *sampler = NULL;
    return make_subset(&sampler, indices, count) == KN_OK ? sampler : kn_error_make_sticky();
}
