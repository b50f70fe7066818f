/* data/sampler_distributed.c - the part of one of several programs that train together. */
#include "base/error.h"
#include "base/memory.h"
#include "data/order.h"
#include "data/sampler.h"

typedef struct distributed_sampler {
    int64_t samples; /* of the dataset */
    int64_t length;  /* of each part */
    kn_distributed_sampler_params params;
} distributed_sampler;

static int64_t length(void *self) { return ((const distributed_sampler *)self)->length; }

/* The shared order is the permutation, repeated as far as the parts need it. */
static kn_status order(void *self, uint64_t seed, int64_t epoch, int64_t *indices)
{
    (void)seed;
    const distributed_sampler *data = self;
    const kn_distributed_sampler_params *p = &data->params;
    int64_t *whole = kn_calloc((size_t)data->samples, sizeof *whole);
    if (!whole)
        return KN_ERR_MEMORY;
    for (int64_t i = 0; i < data->samples; i++)
        whole[i] = i;
    if (p->shuffle)
        kn_shuffle(whole, data->samples, p->seed, epoch, 0);
    for (int64_t i = 0; i < data->length; i++)
        indices[i] = whole[(p->rank + i * p->num_replicas) % data->samples];
    kn_free(whole);
    return KN_OK;
}

static kn_status make(kn_sampler **sampler, int64_t samples, const kn_distributed_sampler_params *p)
{
    static const kn_sampler_functions functions = {.length = length, .order = order, .destroy = kn_free};
    if (p->num_replicas < 1)
        return kn_fail(KN_ERR_ARGUMENT, "kn_distributed_sampler: num_replicas is %lld; it must be at least 1",
                       (long long)p->num_replicas);
    if (p->rank < 0 || p->rank >= p->num_replicas)
        return kn_fail(KN_ERR_ARGUMENT, "kn_distributed_sampler: rank is %lld; it must be from 0 to %lld",
                       (long long)p->rank, (long long)p->num_replicas - 1);
    distributed_sampler *data = kn_malloc(sizeof *data);
    if (!data)
        return KN_ERR_MEMORY;
    const bool uneven = samples % p->num_replicas != 0;
    *data = (distributed_sampler){samples, samples / p->num_replicas + (uneven && !p->drop_last), *p};
    const bool is_part = p->num_replicas > 1;
    KN_TRY(kn_sampler_make(sampler, &functions, data, "DistributedSampler(%lld, %lld of %lld, seed %llu%s%s)",
                           (long long)samples, (long long)p->rank, (long long)p->num_replicas,
                           (unsigned long long)p->seed, p->shuffle ? "" : ", in sequence",
                           p->drop_last ? ", drop_last" : ""));
    (*sampler)->is_part = is_part;
    return KN_OK;
}

kn_distributed_sampler_params kn_distributed_sampler_params_init(void)
{
    return (kn_distributed_sampler_params){KN_DISTRIBUTED_SAMPLER_DEFAULTS};
}

kn_sampler *kn_distributed_sampler_with(kn_dataset *dataset, const kn_distributed_sampler_params *params)
{
    const kn_distributed_sampler_params *p =
        params ? params : &(kn_distributed_sampler_params){KN_DISTRIBUTED_SAMPLER_DEFAULTS};
    kn_sampler *sampler = NULL;
    const int64_t samples = kn_sampler_length_of(dataset, "kn_distributed_sampler");
    return samples >= 0 && make(&sampler, samples, p) == KN_OK ? sampler : kn_error_make_sticky();
}
