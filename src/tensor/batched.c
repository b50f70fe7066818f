/* tensor/batched.c - see batched.h. */
#include "tensor/batched.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/memory.h"

/* --- levels ------------------------------------------------------------------------------------------------------- */

/* The calling thread's vmaps: sizes[level - 1]. */
static _Thread_local struct {
    int depth;
    int64_t sizes[KN_MAX_DIMS];
} vmaps;

int kn_vmap_level(void) { return vmaps.depth; }
int kn_vmap_level_of(const kn_tensor *tensor) { return kn_batch_level(tensor); }

int kn_vmap_begin(int64_t batch_size)
{
    if (batch_size < 1)
        return kn_fail(KN_ERR_ARGUMENT, "kn_vmap_begin: a batch has at least one sample, not %" PRId64, batch_size), 0;
    if (vmaps.depth == KN_MAX_DIMS)
        return kn_fail(KN_ERR_STATE, "kn_vmap_begin: %d are open, the most; kn_vmap_end ends one", vmaps.depth), 0;
    vmaps.sizes[vmaps.depth] = batch_size;
    return ++vmaps.depth;
}

void kn_vmap_end(int level)
{
    if (level > 0 && level <= vmaps.depth)
        vmaps.depth = level - 1;
}

int64_t kn_vmap_size(int level) { return vmaps.sizes[level - 1]; }

int kn_batch_level_of(kn_tensor *const *tensors, int count)
{
    int level = 0;
    for (int i = 0; i < count; i++)
        if (kn_batch_level(tensors[i]) > level)
            level = tensors[i]->batch_level;
    return level;
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */

kn_status kn_batched_new(kn_tensor **tensor, kn_tensor *whole, int level)
{
    kn_storage *none = kn_calloc(1, sizeof *none);
    if (!none)
        return KN_ERR_MEMORY;
    atomic_init(&none->references, 1);
    none->device = whole->storage->device;
    none->needed = 1; /* as if resized to 0 bytes */
    none->is_batch = true;
    const kn_status status = kn_tensor_on(tensor, none, whole->dtype, whole->ndim - 1, whole->shape + 1, NULL, 0);
    kn_storage_release(none);
    if (status != KN_OK)
        return status;
    (*tensor)->whole = kn_retain(whole);
    (*tensor)->batch_level = level;
    return KN_OK;
}

kn_tensor *kn_batched(kn_tensor *whole, int level)
{
    kn_tensor *tensor = NULL;
    if (!whole)
        return NULL;
    kn_batched_new(&tensor, whole, level);
    return kn_scope_adopt(tensor);
}
