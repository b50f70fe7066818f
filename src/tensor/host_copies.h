/* tensor/host_copies.h - pinned host memory and the copies between it and devices that may still be under way.
 *
 * A storage in pinned memory remembers each such copy by an event. Whoever touches the memory first waits for the
 * copies that conflict: a reader for those that write it, a writer (and whoever may write: kn_data) for all. So a copy
 * that returns before it is done can neither read what was overwritten nor be read too early. Pageable storages have no
 * such record (`copies` is NULL) and no such copies. */
#ifndef KN_TENSOR_HOST_COPIES_H
#define KN_TENSOR_HOST_COPIES_H

#include "tensor/tensor.h"

typedef enum kn_host_access { KN_HOST_READ, KN_HOST_WRITE } kn_host_access;

/* Pinned memory for `storage` (a new one, of the host) that suits transfers with `device`. */
kn_status kn_storage_pin(kn_storage *storage, kn_device *device, size_t bytes);

/* Gives the pinned memory of a dying storage back: at once, or later when copies are under way. Does not wait. */
void kn_storage_unpin(kn_storage *storage);

/* The kn_pinned of a storage; NULL for pageable ones. */
kn_pinned *kn_storage_pinned(const kn_storage *storage);

/* Waits until the host may access the memory so. Costs one comparison for pageable storages. */
kn_status kn_storage_wait_slow(const kn_storage *storage, kn_host_access access);
static inline kn_status kn_storage_wait(const kn_storage *storage, kn_host_access access)
{
    return storage->copies ? kn_storage_wait_slow(storage, access) : KN_OK;
}

/* Waits for all copies; not counted as a wait of the user's wish. For memory that the library uses again. */
kn_status kn_storage_await(const kn_storage *storage);

/* Are all copies done? Does not wait. */
bool kn_storage_copies_done(const kn_storage *storage);

/* A copy on `stream` is about to access the memory so: it waits, on the device where it can, for the copies that
 * conflict. Then the copy is enqueued; `status` tells end how that went, and end remembers it. Returns the first error.
 */
typedef struct kn_copy_mark kn_copy_mark;
kn_status kn_storage_begin_copy(const kn_storage *storage, kn_stream *stream, kn_host_access access,
                                kn_copy_mark **mark);
kn_status kn_storage_end_copy(const kn_storage *storage, kn_stream *stream, kn_copy_mark *mark, kn_status status);

#endif
