/* data/loader.c - shuffled, prefetched batches of a dataset. data/loader.h explains how. */
#include "data/loader.h"

#include <string.h>

#include "base/error.h"
#include "base/fork.h"
#include "base/memory.h"
#include "data/sampler.h"

#define MAX_WORKERS 256
/* Batches whose copies may be in flight before the host waits for one. */
#define COPIES_AHEAD 4

/* --- creation ----------------------------------------------------------------------------------- */

static kn_status check_params(const kn_loader_params *params)
{
    if (params->batch_size <= 0)
        return kn_fail(KN_ERR_ARGUMENT, "loader: the batch size is %lld; it must be at least 1",
                       (long long)params->batch_size);
    if (params->num_workers < 0 || params->num_workers > MAX_WORKERS)
        return kn_fail(KN_ERR_ARGUMENT, "loader: num_workers is %d; it must be from 0 to %d", params->num_workers,
                       MAX_WORKERS);
    if (params->num_workers > 0 && (params->prefetch_factor < 1 || params->prefetch_factor > 1024))
        return kn_fail(KN_ERR_ARGUMENT, "loader: prefetch_factor is %d; with workers it must be from 1 to 1024",
                       params->prefetch_factor);
    if (params->sampler && params->shuffle)
        return kn_fail(KN_ERR_ARGUMENT, "loader: sampler and shuffle exclude each other: the order is the sampler's");
    return KN_OK;
}

static kn_status measure_fields(kn_loader *loader, size_t largest)
{
    const kn_dataset *dataset = loader->dataset;
    const size_t limit = SIZE_MAX / 4 / (largest ? largest : 1);
    loader->num_fields = dataset->num_fields;
    loader->bytes = kn_calloc((size_t)loader->num_fields, sizeof(*loader->bytes));
    if (!loader->bytes)
        return KN_ERR_MEMORY;
    for (int i = 0; i < loader->num_fields; i++) {
        const size_t bytes = kn_field_bytes(&dataset->fields[i]);
        if (bytes > limit)
            return kn_fail(KN_ERR_ARGUMENT,
                           "loader: %zu samples whose field \"%s\" has %zu bytes exceed the address space; use "
                           "smaller batches",
                           largest, dataset->names[i], bytes);
        loader->bytes[i] = kn_field_row_bytes(&dataset->fields[i]);
    }
    return KN_OK;
}

/* Samples that a part is given at a time. Parts by batches need a batch for each, so that none is longer than the
 * whole. */
static int64_t dealt_at_once(const kn_loader *loader)
{
    const kn_loader_part *part = &loader->part;
    const int64_t batch = loader->params.batch_size;
    return part->by_batch && part->pad && batch <= loader->sampler->length / part->parts ? batch : 1;
}

/* Batches and samples per epoch. */
static void count_batches(kn_loader *loader)
{
    const kn_loader_params *params = &loader->params;
    const kn_loader_part *part = &loader->part;
    int64_t length = loader->sampler->length;
    if (part->parts > 1) {
        const int64_t dealt = dealt_at_once(loader), round = dealt * part->parts;
        length = (length + round - 1 - (part->pad ? 0 : part->index)) / round * dealt;
    }
    bool partial = length % params->batch_size != 0 && !params->drop_last;
    loader->length = length;
    loader->batches = length / params->batch_size + (partial ? 1 : 0);
    loader->samples = params->drop_last ? loader->batches * params->batch_size : length;
}

/* Batches per epoch, samples per batch, slots: enough for all parts. */
static kn_status lay_out(kn_loader *loader)
{
    kn_loader_params *params = &loader->params;
    count_batches(loader);
    const int64_t length = loader->length;
    size_t largest = (size_t)(params->batch_size < length ? params->batch_size : length);
    KN_TRY(measure_fields(loader, largest));
    loader->largest = (int64_t)largest;
    if (params->num_workers > loader->batches)
        params->num_workers = (int)loader->batches;
    int64_t slots = params->num_workers > 0 ? (int64_t)params->num_workers * params->prefetch_factor : 1;
    loader->num_slots = (int)(slots < loader->batches ? slots : loader->batches);
    loader->max_memory = loader->num_slots + COPIES_AHEAD;
    return KN_OK;
}

static kn_status allocate(kn_loader *loader)
{
    const size_t fields = (size_t)loader->num_fields, slots = (size_t)loader->num_slots;
    loader->order = kn_calloc((size_t)loader->length, sizeof(*loader->order));
    loader->slots = kn_calloc(slots, sizeof(*loader->slots));
    loader->places = kn_calloc(slots * fields, sizeof(*loader->places));
    loader->longest = kn_calloc(slots * fields, sizeof(*loader->longest));
    const size_t lengths = loader->dataset->functions.lengths ? fields * (size_t)loader->largest : 0;
    loader->lengths = kn_calloc(slots * lengths, sizeof(*loader->lengths));
    loader->spare = kn_calloc((size_t)loader->max_memory, sizeof(*loader->spare));
    loader->made = kn_calloc(2 * fields, sizeof(*loader->made));
    loader->given = kn_loader_new_yielded(loader);
    if (!loader->order || !loader->slots || !loader->places || !loader->longest || !loader->lengths || !loader->spare ||
        !loader->made || !loader->given)
        return KN_ERR_MEMORY;
    for (size_t i = 0; i < slots; i++) {
        loader->slots[i].places = loader->places + i * fields;
        loader->slots[i].longest = loader->longest + i * fields;
        loader->slots[i].lengths = loader->lengths + i * lengths;
    }
    loader->now.fields = loader->made;
    loader->ahead.fields = loader->made + fields;
    return kn_device_is_host(loader->device) ? KN_OK : kn_status_of(loader->stream = kn_stream_new(loader->device));
}

static kn_status choose_sampler(kn_loader *loader)
{
    loader->dataset_length = kn_dataset_length(loader->dataset);
    if (loader->dataset_length < 0)
        return kn_fail(KN_ERR_ARGUMENT, "loader: the dataset's length is %lld", (long long)loader->dataset_length);
    loader->sampler = loader->params.sampler;
    if (!loader->sampler)
        KN_TRY(kn_sampler_make_default(&loader->sampler, loader->dataset_length, loader->params.shuffle));
    return KN_OK;
}

static kn_status set_up(kn_loader *loader)
{
    KN_TRY(choose_sampler(loader));
    loader->device = loader->params.device ? loader->params.device : kn_device_current();
    if (!loader->device)
        return kn_error_status();
    loader->pinned_for = loader->device;
    if (kn_device_is_host(loader->device))
        loader->pinned_for = loader->params.pin_memory ? kn_device_current() : NULL;
    if (loader->params.pin_memory && !loader->pinned_for)
        return kn_error_status();
    KN_TRY(lay_out(loader));
    loader->next_to_make = loader->batches; /* no work before the first epoch */
    KN_TRY(allocate(loader));
    return kn_loader_start_workers(loader);
}

kn_loader_params kn_loader_params_init(void) { return (kn_loader_params){KN_LOADER_DEFAULTS}; }

kn_loader *kn_loader_new_with(kn_dataset *dataset, const kn_loader_params *params)
{
    params = params ? params : &(kn_loader_params){KN_LOADER_DEFAULTS};
    if (!dataset)
        return kn_fail_argument_null("kn_loader_new", "dataset"), kn_error_make_sticky();
    kn_loader *loader = check_params(params) == KN_OK ? kn_calloc(1, sizeof(*loader)) : NULL;
    if (!loader)
        return kn_error_make_sticky();
    loader->dataset = dataset;
    loader->params = *params;
    kn_mutex_init(&loader->mutex);
    pthread_cond_init(&loader->work, NULL);
    pthread_cond_init(&loader->done, NULL);
    atomic_init(&loader->cancel, false);
    if (set_up(loader) == KN_OK)
        return loader;
    kn_loader_free(loader);
    return kn_error_make_sticky();
}

void kn_loader_free(kn_loader *loader)
{
    if (!loader || kn_is_forked())
        return;
    kn_loader_stop_workers(loader);
    kn_loader_drop(loader, &loader->ahead);
    kn_loader_free_memory(loader); /* memory of copies in flight is kept until they finish */
    if (loader->stream)
        kn_stream_drain(loader->stream);
    kn_stream_free(loader->stream);
    pthread_cond_destroy(&loader->work);
    pthread_cond_destroy(&loader->done);
    kn_mutex_destroy(&loader->mutex);
    kn_free(loader->given);
    kn_free(loader->made);
    kn_free(loader->lengths);
    kn_free(loader->longest);
    kn_free(loader->places);
    kn_free(loader->slots);
    kn_free(loader->order);
    kn_free(loader->bytes);
    if (loader->sampler != loader->params.sampler)
        kn_sampler_free(loader->sampler);
    kn_free(loader);
}

int64_t kn_loader_batches(const kn_loader *loader) { return loader ? loader->batches : 0; }

int64_t kn_loader_samples(const kn_loader *loader) { return loader ? loader->samples : 0; }

/* --- an epoch --------------------------------------------------------------------------------- */

kn_loader_part kn_loader_divide(kn_loader *loader, kn_loader_part part)
{
    const kn_loader_part before = loader->part;
    if (part.index == before.index && part.parts == before.parts && part.pad == before.pad &&
        part.by_batch == before.by_batch)
        return before;
    kn_loader_drain(loader);
    kn_loader_drop(loader, &loader->ahead);
    kn_lock(&loader->mutex);
    loader->part = part;
    count_batches(loader);
    loader->next_batch = loader->next_to_make = loader->batches; /* until an epoch is started */
    kn_unlock(&loader->mutex);
    return before;
}

/* The order of all parts becomes that of this one. */
static kn_status take_part(const kn_loader *loader)
{
    const kn_loader_part *part = &loader->part;
    const int64_t all = loader->sampler->length, length = loader->length;
    if (part->parts < 2 || length == 0)
        return KN_OK;
    const int64_t dealt = dealt_at_once(loader);
    int64_t *whole = kn_calloc((size_t)all, sizeof *whole);
    if (!whole)
        return KN_ERR_MEMORY;
    memcpy(whole, loader->order, (size_t)all * sizeof *whole);
    for (int64_t i = 0; i < length; i++)
        loader->order[i] = whole[((i / dealt * part->parts + part->index) * dealt + i % dealt) % all];
    kn_free(whole);
    return KN_OK;
}

/* The sampler may be the program's own, or have been made for another dataset. */
static kn_status make_order(kn_loader *loader, int64_t epoch)
{
    kn_status status = kn_sampler_order(loader->sampler, loader->params.seed, epoch, loader->order);
    if (status != KN_OK) {
        kn_error_prefix("loader: the order of epoch %lld", (long long)epoch);
        return status;
    }
    for (int64_t i = 0; i < loader->sampler->length; i++)
        if (loader->order[i] < 0 || loader->order[i] >= loader->dataset_length)
            return kn_fail(
                KN_ERR_ARGUMENT, "loader: the sampler's index %lld in epoch %lld is %lld; the dataset has %lld samples",
                (long long)i, (long long)epoch, (long long)loader->order[i], (long long)loader->dataset_length);
    return take_part(loader);
}

kn_status kn_loader_start(kn_loader *loader, int64_t epoch)
{
    if (!loader)
        return kn_fail_argument_null("kn_loader_start", "loader");
    if (epoch < 0)
        return kn_fail(KN_ERR_ARGUMENT, "kn_loader_start: the epoch is %lld; it must not be negative",
                       (long long)epoch);
    if (loader->num_threads > 0 && kn_is_forked())
        return kn_fail_forked();
    kn_loader_drain(loader);
    kn_loader_drop(loader, &loader->ahead);
    loader->next_batch = loader->batches; /* nothing to give if there is no order */
    KN_TRY(make_order(loader, epoch));
    loader->epoch = epoch;
    loader->next_batch = 0;
    loader->starts++;
    kn_loader_begin_epoch(loader);
    return KN_OK;
}

/* Collates the next batch, waiting for a worker if necessary. An error affects only this batch. */
static kn_status fetch(kn_loader *loader, kn_prepared_batch *batch)
{
    kn_slot *slot = kn_loader_acquire(loader, loader->next_batch, true);
    kn_status status = slot->status;
    if (status == KN_OK)
        status = kn_loader_make(loader, slot, batch);
    else if (slot->message[0])
        kn_fail(status, "%s", slot->message);
    kn_loader_release(loader, slot);
    return status;
}

/* Prefetches the batch after this one if a worker has it ready, so that its copy overlaps the caller's next step. A
 * failure (memory may be short now) is not an error yet: the batch is retried when it is requested. */
static void make_ahead(kn_loader *loader)
{
    if (!loader->stream || loader->next_batch >= loader->batches)
        return;
    kn_slot *slot = kn_loader_acquire(loader, loader->next_batch, false);
    if (!slot || slot->status != KN_OK)
        return;
    KN_PRESERVE_ERROR;
    if (kn_loader_make(loader, slot, &loader->ahead) == KN_OK)
        kn_loader_release(loader, slot);
}

kn_status kn_loader_yield(kn_loader *loader, kn_yielded_batch *given, bool *more)
{
    if (loader->num_threads > 0 && kn_is_forked())
        return kn_fail_forked();
    *more = loader->next_batch < loader->batches;
    if (!*more)
        return KN_OK;
    const kn_prepared_batch made = loader->ahead;
    loader->ahead = loader->now; /* empty */
    loader->now = made;
    kn_status status = made.is_made ? KN_OK : fetch(loader, &loader->now);
    loader->next_batch++;
    KN_TRY(status);
    make_ahead(loader);
    return kn_loader_hand_over(loader, &loader->now, given);
}

kn_status kn_loader_next(kn_loader *loader, const kn_batch **batch)
{
    if (!loader || !batch)
        return kn_fail_argument_null("kn_loader_next", loader ? "batch" : "loader");
    if (loader->starts == 0)
        return kn_fail(KN_ERR_STATE, "kn_loader_next: call kn_loader_start first");
    bool more;
    KN_TRY(kn_loader_yield(loader, loader->given, &more));
    *batch = more ? &loader->given->batch : NULL;
    return KN_OK;
}
