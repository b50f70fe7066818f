/* tensor/storage_address.c - addresses of storages and lookup of storages by address.
 *
 * A storage enters a tree ordered by address when its address is first queried, so unqueried storages cost nothing. The
 * tree holds no references. A storage is removed before its memory is freed, so entries never overlap. */
#include <koine/storage.h>

#include "base/threads.h"
#include "tensor/tensor.h"

static struct {
    kn_mutex lock;
    kn_treap_node *root;
} known = {.lock = KN_MUTEX_INIT};

static kn_storage *storage_at(const kn_treap_node *node) { return KN_TREAP_OF(kn_storage, place, node); }

static bool comes_before(const kn_treap_node *a, const kn_treap_node *b)
{
    return storage_at(a)->address < storage_at(b)->address;
}

/* With the lock held. */
static void enter(kn_storage *storage)
{
    storage->address = storage->buffer ? kn_buffer_address(storage->buffer) : (uint64_t)(uintptr_t)storage->host;
    if (storage->address != 0) /* 0: it was resized to 0 bytes */
        kn_treap_insert(&known.root, &storage->place, storage->address, comes_before);
}

uint64_t kn_storage_address(kn_storage *storage)
{
    if (!storage)
        return 0;
    if (storage->whole)
        return kn_storage_address(storage->whole);
    kn_lock(&known.lock);
    if (storage->address == 0)
        enter(storage);
    const uint64_t address = storage->address;
    kn_unlock(&known.lock);
    return address;
}

uint64_t kn_tensor_address(const kn_tensor *tensor)
{
    return tensor ? kn_storage_address(tensor->storage) + (uint64_t)tensor->offset * kn_tensor_element_size(tensor) : 0;
}

void kn_storage_forget_address(kn_storage *storage)
{
    if (storage->address == 0) /* the last reference is gone: no concurrent query */
        return;
    kn_lock(&known.lock);
    kn_treap_remove(&known.root, &storage->place, comes_before);
    kn_unlock(&known.lock);
}

/* Retains a storage unless its count is 0: its last release is then waiting for the lock to remove it from the tree. */
static bool retain_living(kn_storage *storage)
{
    int references = atomic_load(&storage->references);
    while (references > 0)
        if (atomic_compare_exchange_weak(&storage->references, &references, references + 1))
            return true;
    return false;
}

kn_storage *kn_storage_at_address(uint64_t address, size_t *byte_offset)
{
    kn_storage *found = NULL;
    kn_lock(&known.lock);
    for (const kn_treap_node *node = known.root; node;) {
        kn_storage *storage = storage_at(node);
        if (storage->address <= address)
            found = storage;
        node = storage->address <= address ? node->right : node->left;
    }
    const uint64_t beyond = found ? address - found->address : 0;
    if (found && (beyond < found->bytes || beyond == 0) && retain_living(found)) {
        if (byte_offset)
            *byte_offset = (size_t)beyond;
    } else {
        found = NULL;
    }
    kn_unlock(&known.lock);
    return found;
}

void kn_storage_exchange_memory(kn_storage *a, kn_storage *b)
{
    kn_lock(&known.lock);
    const bool is_known = a->address != 0;
    if (is_known)
        kn_treap_remove(&known.root, &a->place, comes_before);
    kn_buffer *buffer = a->buffer;
    void *host = a->host;
    const size_t bytes = a->bytes;
    a->buffer = b->buffer;
    a->host = b->host;
    a->bytes = b->bytes;
    b->buffer = buffer;
    b->host = host;
    b->bytes = bytes;
    if (is_known)
        enter(a);
    kn_unlock(&known.lock);
}
