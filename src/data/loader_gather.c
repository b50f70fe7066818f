/* data/loader_gather.c - gathers samples into a batch. */
#include "base/error.h"
#include "data/loader.h"
#include "data/order.h"
#include "tensor/element.h"
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

/* The longest sample of the batch decides where each begins. */
static kn_status measure(const kn_loader *loader, kn_slot *slot, const int64_t *order, int64_t size)
{
    const int count = loader->num_fields;
    for (int f = 0; f < count; f++)
        slot->longest[f] = loader->dataset->fields[f].varies ? 0 : 1;
    if (!loader->dataset->functions.lengths)
        return KN_OK;
    for (int64_t i = 0; i < size; i++) {
        int64_t *lengths = slot->lengths + i * count;
        kn_status status = kn_dataset_lengths(loader->dataset, order[i], lengths);
        if (status != KN_OK)
            return fail_sample(status, order[i]);
        for (int f = 0; f < count; f++)
            slot->longest[f] = lengths[f] > slot->longest[f] ? lengths[f] : slot->longest[f];
    }
    return KN_OK;
}

/* Writes the padding after sample `i`, and moves on to the next one's places. */
static void finish_sample(const kn_loader *loader, kn_slot *slot, int64_t i)
{
    for (int f = 0; f < loader->num_fields; f++) {
        const kn_field *field = &loader->dataset->fields[f];
        char *place = slot->places[f];
        if (field->varies) {
            const size_t size = kn_dtype_size(field->dtype), row = loader->bytes[f] / size;
            const int64_t length = slot->lengths[i * loader->num_fields + f];
            for (size_t k = (size_t)length * row; k < (size_t)slot->longest[f] * row; k++)
                kn_element_set(place, field->dtype, (int64_t)k, (kn_element){.real = field->padding_value}, KN_F64);
        }
        slot->places[f] = place + (size_t)slot->longest[f] * loader->bytes[f];
    }
}

kn_status kn_loader_gather(kn_loader *loader, kn_slot *slot, int64_t batch)
{
    const int64_t *order = loader->order + batch * loader->params.batch_size;
    const int64_t size = kn_loader_batch_size(loader, batch);
    KN_TRY(kn_loader_acquire_memory(loader, slot));
    KN_TRY(measure(loader, slot, order, size));
    for (int f = 0; f < loader->num_fields; f++)
        slot->places[f] = slot->memory.fields[f]->storage->host;
    for (int64_t i = 0; i < size; i++) {
        if (atomic_load_explicit(&loader->cancel, memory_order_relaxed))
            return KN_ERR_INTERRUPTED; /* the batch will be discarded */
        uint64_t random = kn_sample_random(loader->params.seed, loader->epoch, order[i]);
        kn_status status = kn_dataset_get_random(loader->dataset, order[i], random, slot->places);
        if (status != KN_OK)
            return fail_sample(status, order[i]);
        finish_sample(loader, slot, i);
    }
    return KN_OK;
}
