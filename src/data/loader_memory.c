/* data/loader_memory.c - reuse of the host tensors that batches are gathered into.
 *
 * There are a few more than slots: while the last batches' copies are in flight the next batch gets memory at once, and
 * the host waits only if it is far ahead of the device. */
#include "base/memory.h"
#include "data/loader.h"
#include "tensor/host_copies.h"

static void drop(const kn_loader *loader, kn_host_batch *memory)
{
    for (int i = 0; i < loader->num_fields && memory->fields; i++)
        kn_release(memory->fields[i]);
    kn_free(memory->fields);
    *memory = (kn_host_batch){0};
}

static kn_status make_tensor(const kn_loader *loader, kn_tensor **tensor, const kn_field *field)
{
    int64_t shape[KN_MAX_DIMS] = {loader->largest};
    for (int dim = 0; dim < field->ndim; dim++)
        shape[dim + 1] = field->shape[dim];
    if (loader->pinned_for)
        return kn_tensor_new_pinned(tensor, field->dtype, field->ndim + 1, shape, loader->pinned_for);
    return kn_tensor_new(tensor, field->dtype, field->ndim + 1, shape, kn_device_host());
}

static kn_status make_memory(const kn_loader *loader, kn_host_batch *memory)
{
    memory->fields = kn_calloc((size_t)loader->num_fields, sizeof(*memory->fields));
    kn_status status = memory->fields ? KN_OK : KN_ERR_MEMORY;
    for (int i = 0; i < loader->num_fields && status == KN_OK; i++)
        status = make_tensor(loader, &memory->fields[i], &loader->dataset->fields[i]);
    if (status != KN_OK)
        drop(loader, memory);
    return status;
}

static bool is_idle(const kn_loader *loader, const kn_host_batch *memory)
{
    bool idle = true;
    for (int i = 0; i < loader->num_fields && idle; i++)
        idle = kn_storage_copies_done(memory->fields[i]->storage);
    return idle;
}

/* Takes spare memory whose copies are done, or the oldest if no more may be allocated. False: none. */
static bool take_spare(kn_loader *loader, kn_host_batch *memory)
{
    bool found = false;
    kn_lock(&loader->mutex);
    int at = 0;
    while (at < loader->num_spare && !is_idle(loader, &loader->spare[at]))
        at++;
    if (at == loader->num_spare && loader->num_memory >= loader->max_memory)
        at = 0;
    if (at < loader->num_spare) {
        *memory = loader->spare[at];
        for (int i = at; i + 1 < loader->num_spare; i++)
            loader->spare[i] = loader->spare[i + 1];
        loader->num_spare--;
        found = true;
    } else {
        loader->num_memory++;
    }
    kn_unlock(&loader->mutex);
    return found;
}

static void forget_one(kn_loader *loader)
{
    kn_lock(&loader->mutex);
    loader->num_memory--;
    kn_unlock(&loader->mutex);
}

kn_status kn_loader_acquire_memory(kn_loader *loader, kn_slot *slot)
{
    if (slot->memory.fields) /* of an abandoned batch */
        kn_loader_release_memory(loader, slot);
    kn_status status = KN_OK;
    if (!take_spare(loader, &slot->memory)) {
        status = make_memory(loader, &slot->memory);
        if (status != KN_OK)
            forget_one(loader);
        return status;
    }
    for (int i = 0; i < loader->num_fields; i++) {
        kn_status awaited = kn_storage_wait_uncounted(slot->memory.fields[i]->storage);
        status = status == KN_OK ? awaited : status;
    }
    return status;
}

/* Does the loader hold the only reference, with no view alive? Then nobody else can create one. */
static bool is_own(const kn_tensor *tensor)
{
    return atomic_load(&tensor->references) == 1 && atomic_load(&tensor->storage->references) == 1;
}

/* Memory that the caller still holds tensors of is left to the caller. */
void kn_loader_release_memory(kn_loader *loader, kn_slot *slot)
{
    kn_host_batch memory = slot->memory;
    slot->memory = (kn_host_batch){0};
    if (!memory.fields)
        return;
    bool own = true;
    for (int i = 0; i < loader->num_fields; i++)
        own = own && is_own(memory.fields[i]);
    kn_lock(&loader->mutex);
    if (own)
        loader->spare[loader->num_spare++] = memory;
    else
        loader->num_memory--;
    kn_unlock(&loader->mutex);
    if (!own)
        drop(loader, &memory);
}

void kn_loader_free_memory(kn_loader *loader)
{
    for (int i = 0; loader->slots && i < loader->num_slots; i++)
        drop(loader, &loader->slots[i].memory);
    for (int i = 0; loader->spare && i < loader->num_spare; i++)
        drop(loader, &loader->spare[i]);
    kn_free(loader->spare);
}
