/* tensor/host_copies.h - pinned host memory and its pending copies to and from devices.
 *
 * A pinned storage keeps an event for each asynchronous copy. Every access to the memory first waits for the copies
 * that conflict: a reader for those that write it, a writer (and kn_data, whose caller may write) for all. So no
 * pending copy can read overwritten data, and its result cannot be read too early. Pageable storages have no
 * asynchronous copies, and `copies` is NULL. */
#pragma once

#include "tensor/tensor.h"

typedef enum kn_host_access { KN_HOST_READ, KN_HOST_WRITE } kn_host_access;

/* Allocates pinned memory for `storage` (new, on the host), for transfers with `device`. */
kn_status kn_storage_pin(kn_storage *storage, kn_device *device, size_t bytes);

/* Frees the pinned memory of a storage that is being released: at once, or later if copies are pending. Does not
 * wait. */
void kn_storage_unpin(kn_storage *storage);

/* The kn_pinned of a storage; NULL for pageable ones. */
kn_pinned *kn_storage_pinned(const kn_storage *storage);

/* Waits until the host may access the memory in this way. Costs one comparison for pageable storages. */
kn_status kn_storage_wait_slow(const kn_storage *storage, kn_host_access access);
static inline kn_status kn_storage_wait(const kn_storage *storage, kn_host_access access)
{
    return storage->copies ? kn_storage_wait_slow(storage, access) : KN_OK;
}

/* Waits for all copies, not counted as a synchronisation by the user. For memory that the library reuses. */
kn_status kn_storage_wait_uncounted(const kn_storage *storage);

/* Are all copies done? Does not wait. */
bool kn_storage_copies_done(const kn_storage *storage);

/* begin: a copy on `stream` is about to access the memory in this way; waits, on the device if possible, for the copies
 * that conflict. end: the copy was enqueued with result `status`; starts tracking it. Both return the first error. */
typedef struct kn_copy_mark kn_copy_mark;
kn_status kn_storage_begin_copy(const kn_storage *storage, kn_stream *stream, kn_host_access access,
                                kn_copy_mark **mark);
kn_status kn_storage_end_copy(const kn_storage *storage, kn_stream *stream, kn_copy_mark *mark, kn_status status);
