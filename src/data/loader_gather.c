/* data/loader_gather.c - gathers samples into a batch. */
#include "base/error.h"
#include "data/loader.h"
#include "data/order.h"
#include "tensor/tensor.h"

int64_t kn_loader_batch_size(const kn_loader *loader, int64_t batch)
{
    int64_t left = loader->samples - batch * loader->params.batch_size;
    return left < loader->params.batch_size ? left : loader->params.batch_size;
}

/* A user's dataset may fail without setting an error. */
static kn_status fail_sample(kn_status status, int64_t index)
{
    if (kn_error_status() == KN_OK)
        kn_fail(status, "the dataset's `get` returned %s", kn_status_name(status));
    kn_error_prefix("loader: sample %lld", (long long)index);
    return status;
}

kn_status kn_loader_gather(kn_loader *loader, kn_slot *slot, int64_t batch)
{
    KN_TRY(kn_loader_acquire_memory(loader, slot));
    for (int f = 0; f < loader->num_fields; f++)
        slot->places[f] = slot->memory.fields[f]->storage->host;
    const int64_t *order = loader->order + batch * loader->params.batch_size;
    const int64_t size = kn_loader_batch_size(loader, batch);
    for (int64_t i = 0; i < size; i++) {
        if (atomic_load_explicit(&loader->cancel, memory_order_relaxed))
            return KN_ERR_INTERRUPTED; /* the batch will be discarded */
        uint64_t random = kn_sample_random(loader->params.seed, loader->epoch, order[i]);
        kn_status status = kn_dataset_get_random(loader->dataset, order[i], random, slot->places);
        if (status != KN_OK)
            return fail_sample(status, order[i]);
        for (int f = 0; f < loader->num_fields; f++)
            slot->places[f] = (char *)slot->places[f] + loader->bytes[f];
    }
    return KN_OK;
}
