/* data/sampler_weighted.c - draws in proportion to weights. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/order.h"
#include "data/sampler.h"

typedef struct weighted_sampler {
    int64_t count, length;
    double values[]; /* with replacement: the sums of the weights up to each; else the weights */
} weighted_sampler;

static int64_t length(void *self) { return ((const weighted_sampler *)self)->length; }

/* --- with replacement ----------------------------------------------------------------------------- */

/* The first sample whose sum is at least `sought`, which is above 0: never one of weight 0. */
static int64_t find(const double *sums, int64_t count, double sought)
{
    int64_t low = 0, high = count - 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (sums[middle] >= sought)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static kn_status with_replacement(void *self, uint64_t seed, int64_t epoch, int64_t *indices)
{
    const weighted_sampler *data = self;
    for (int64_t i = 0; i < data->length; i++)
        indices[i] = find(data->values, data->count, kn_order_uniform(seed, epoch, i) * data->values[data->count - 1]);
    return KN_OK;
}

/* --- without replacement -------------------------------------------------------------------------- */

/* When a sample is drawn, if sample i waits for an exponentially distributed time of rate weights[i] (Efraimidis and
 * Spirakis, "Weighted random sampling with a reservoir", 2006). */
typedef struct arrival {
    double time;
    int64_t index;
} arrival;

static int compare_arrivals(const void *a, const void *b)
{
    const arrival *one = a, *other = b;
    if (one->time != other->time)
        return one->time < other->time ? -1 : 1;
    return one->index < other->index ? -1 : 1;
}

static kn_status without_replacement(void *self, uint64_t seed, int64_t epoch, int64_t *indices)
{
    const weighted_sampler *data = self;
    arrival *arrivals = kn_calloc((size_t)data->count, sizeof *arrivals);
    int64_t there = 0;
    if (!arrivals)
        return KN_ERR_MEMORY;
    for (int64_t i = 0; i < data->count; i++)
        if (data->values[i] > 0)
            arrivals[there++] = (arrival){-log(kn_order_uniform(seed, epoch, i)) / data->values[i], i};
    qsort(arrivals, (size_t)there, sizeof *arrivals, compare_arrivals);
    for (int64_t i = 0; i < data->length; i++)
        indices[i] = arrivals[i].index;
    kn_free(arrivals);
    return KN_OK;
}

/* --- creation ------------------------------------------------------------------------------------- */

static kn_status check(const double *weights, int64_t count, int64_t num_samples, bool replacement)
{
    int64_t positive = 0;
    double sum = 0;
    if (!weights)
        return kn_fail_argument_null("kn_weighted_random_sampler", "weights");
    if (count < 1 || num_samples < 1)
        return kn_fail(KN_ERR_ARGUMENT, "kn_weighted_random_sampler: the number of %s is %lld; it must be at least 1",
                       count < 1 ? "weights" : "samples", (long long)(count < 1 ? count : num_samples));
    for (int64_t i = 0; i < count; i++) {
        if (!(weights[i] >= 0 && weights[i] <= 1e300))
            return kn_fail(KN_ERR_ARGUMENT,
                           "kn_weighted_random_sampler: weight %lld is %g; it must be a finite number of 0 or more",
                           (long long)i, weights[i]);
        positive += weights[i] > 0;
        sum += weights[i];
    }
    if (positive == 0 || !isfinite(sum))
        return kn_fail(KN_ERR_ARGUMENT, "kn_weighted_random_sampler: the sum of the weights is %g", sum);
    if (!replacement && positive < num_samples)
        return kn_fail(KN_ERR_ARGUMENT,
                       "kn_weighted_random_sampler: %lld samples without replacement from %lld weights above 0",
                       (long long)num_samples, (long long)positive);
    return KN_OK;
}

static kn_status make(kn_sampler **sampler, const double *weights, int64_t count, int64_t num_samples, bool replacement)
{
    const kn_sampler_functions functions = {
        .length = length, .order = replacement ? with_replacement : without_replacement, .destroy = kn_free};
    KN_TRY(check(weights, count, num_samples, replacement));
    weighted_sampler *data = kn_malloc(sizeof *data + (size_t)count * sizeof *weights);
    if (!data)
        return KN_ERR_MEMORY;
    data->count = count;
    data->length = num_samples;
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        data->values[i] = replacement ? sum += weights[i] : weights[i];
    char hash[KN_HASH_TEXT];
    kn_hash_format(hash, kn_hash_bytes(weights, (size_t)count * sizeof *weights));
    return kn_sampler_make(sampler, &functions, data, "WeightedRandomSampler(%lld of %lld, %.16s%s)",
                           (long long)num_samples, (long long)count, hash, replacement ? ", replacement" : "");
}

kn_weighted_random_sampler_params kn_weighted_random_sampler_params_init(void)
{
    return (kn_weighted_random_sampler_params){KN_WEIGHTED_RANDOM_SAMPLER_DEFAULTS};
}

kn_sampler *kn_weighted_random_sampler_with(const double *weights, int64_t count, int64_t num_samples,
                                            const kn_weighted_random_sampler_params *params)
{
    kn_sampler *sampler = NULL;
    return make(&sampler, weights, count, num_samples, !params || params->replacement) == KN_OK
               ? sampler
               : kn_error_make_sticky();
}
