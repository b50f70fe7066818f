/* tensor/storage.c - creating, sharing and resizing storages, and creating tensors on them. */
#include <koine/storage.h>

#include <inttypes.h>

#include "base/error.h"
#include "base/memory.h"
#include "tensor/host_copies.h"
#include "tensor/liveness.h"
#include "tensor/strides.h"
#include "tensor/tensor.h"

/* --- creating and sharing ----------------------------------------------------------------------------------------- */

kn_status kn_storage_make(kn_storage **result, kn_device *device, kn_device *pinned_for, size_t bytes)
{
    kn_storage *storage = kn_calloc(1, sizeof *storage);
    if (!storage)
        return KN_ERR_MEMORY;
    storage->device = device;
    storage->bytes = bytes;
    atomic_init(&storage->references, 1);
    kn_status status;
    if (pinned_for) {
        status = kn_storage_pin(storage, pinned_for, bytes);
    } else if (kn_device_is_host(device)) {
        storage->host = kn_malloc(bytes);
        status = storage->host ? KN_OK : KN_ERR_MEMORY;
    } else {
        kn_stream *stream = kn_stream_current(device);
        status = stream ? kn_buffer_alloc(&storage->buffer, stream, bytes) : kn_error_status();
    }
    if (status != KN_OK) {
        kn_free(storage);
        return status;
    }
    *result = storage;
    return KN_OK;
}

kn_storage *kn_storage_new(size_t bytes, kn_device *device)
{
    kn_storage *storage = NULL;
    if (!device && !(device = kn_device_current()))
        return kn_error_make_sticky();
    if (bytes > INT64_MAX)
        return kn_fail_null(KN_ERR_ARGUMENT, "kn_storage_new: %zu bytes are more than the maximum, INT64_MAX", bytes);
    return kn_storage_make(&storage, device, NULL, bytes) == KN_OK ? storage : kn_error_make_sticky();
}

kn_storage *kn_storage_of(const kn_tensor *tensor)
{
    if (kn_check_tensor("kn_storage_of", "tensor", tensor) != KN_OK)
        return kn_error_make_sticky();
    return kn_storage_retain(tensor->storage);
}

kn_storage *kn_storage_retain(kn_storage *storage)
{
    if (storage)
        atomic_fetch_add_explicit(&storage->references, 1, memory_order_relaxed);
    return storage;
}

void kn_storage_release(kn_storage *storage)
{
    if (!storage || atomic_fetch_sub(&storage->references, 1) != 1)
        return;
    kn_storage_forget_address(storage);
    if (storage->whole) {
        kn_storage_release(storage->whole);
    } else {
        kn_buffer_free(storage->buffer);
        if (storage->copies)
            kn_storage_unpin(storage);
        else
            kn_free(storage->host);
    }
    kn_free(storage);
}

/* --- properties --------------------------------------------------------------------------------------------------- */

size_t kn_storage_bytes(const kn_storage *storage) { return storage ? storage->bytes : 0; }
kn_device *kn_storage_device(const kn_storage *storage) { return storage ? storage->device : NULL; }
int64_t kn_storage_offset(const kn_tensor *tensor) { return tensor ? tensor->offset : 0; }
unsigned kn_storage_version(const kn_storage *storage) { return storage ? atomic_load(&storage->version) : 0; }

kn_status kn_storage_set_version(kn_storage *storage, unsigned version)
{
    if (!storage)
        return kn_fail_argument_null("kn_storage_set_version", "storage");
    atomic_store(&storage->version, version);
    return KN_OK;
}

/* --- tensors on a storage ----------------------------------------------------------------------------------------- */

/* Strides are limited even along dimensions of size 0 or 1, so that products with sizes and dtype sizes do not
 * overflow. */
static kn_status check_numbers(int ndim, const int64_t *shape, const int64_t *strides, int64_t offset)
{
    const int64_t most = INT64_MAX / 16;
    if (offset < 0)
        return kn_fail(KN_ERR_ARGUMENT, "offset %" PRId64 " is negative", offset);
    for (int d = 0; strides && d < ndim; d++)
        if (strides[d] < 0 || strides[d] > most / (shape[d] > 0 ? shape[d] : 1))
            return kn_fail(KN_ERR_ARGUMENT, "stride %" PRId64 " of dimension %d is %s", strides[d], d,
                           strides[d] < 0 ? "negative" : "too large");
    return KN_OK;
}

kn_status kn_storage_check_layout(const kn_storage *storage, kn_dtype dtype, int ndim, const int64_t *shape,
                                  const int64_t *strides, int64_t offset)
{
    KN_TRY(kn_tensor_check_dtype(dtype, storage->device));
    KN_TRY(kn_tensor_check_shape(ndim, shape, dtype));
    KN_TRY(check_numbers(ndim, shape, strides, offset));
    const int64_t room = (int64_t)(storage->bytes / kn_dtype_size(dtype));
    const int64_t extent = strides ? kn_strides_extent(ndim, shape, strides) : kn_shape_numel(ndim, shape);
    if (offset <= room && extent >= 0 && extent <= room - offset)
        return KN_OK;
    if (extent < 0)
        return kn_fail(KN_ERR_ARGUMENT, "the layout's extent overflows");
    return kn_fail(KN_ERR_ARGUMENT,
                   "%" PRId64 " elements from offset %" PRId64 " extend beyond the storage, which has room for %" PRId64
                   " of %s (%zu bytes)",
                   extent, offset, room, kn_dtype_name(dtype), storage->bytes);
}

kn_tensor *kn_tensor_from_storage(kn_storage *storage, kn_dtype dtype, int ndim, const int64_t *shape,
                                  const int64_t *strides, int64_t offset)
{
    kn_tensor *tensor = NULL;
    if (!storage)
        return kn_fail_argument_null("kn_tensor_from_storage", "storage"), kn_error_make_sticky();
    kn_status status = kn_storage_check_layout(storage, dtype, ndim, shape, strides, offset);
    if (status == KN_OK)
        status = kn_tensor_on(&tensor, storage, dtype, ndim, shape, strides, offset);
    if (status != KN_OK)
        kn_error_prefix("kn_tensor_from_storage");
    return kn_scope_adopt(tensor);
}

/* --- resizing ----------------------------------------------------------------------------------------------------- */

/* By tensors, or by others who hold a reference. */
static bool is_used(const kn_storage *storage) { return atomic_load(&storage->references) > 1; }

static kn_status check_resize(const kn_storage *storage, size_t bytes)
{
    if (bytes > INT64_MAX)
        return kn_fail(KN_ERR_ARGUMENT, "%zu bytes are more than the maximum, INT64_MAX", bytes);
    if (storage->copies)
        return kn_fail(KN_ERR_STATE, "pinned memory cannot be resized: make a new storage and copy");
    if (storage->whole || atomic_load(&storage->is_divided))
        return kn_fail(KN_ERR_STATE, "the library has split this memory among tensors: make a new storage and copy");
    const size_t needed = storage->needed ? storage->needed : storage->bytes;
    if (bytes >= needed || !is_used(storage) || (bytes == 0 && !kn_device_is_host(storage->device)))
        return KN_OK;
    return kn_fail(KN_ERR_STATE, "tensors may use the bytes to be cut off: release them first");
}

kn_status kn_storage_fail_emptied(const kn_storage *storage)
{
    if (storage->is_batch)
        return kn_fail(KN_ERR_BATCHED, "a tensor stands for the samples of a batch inside vmap, and has no values that "
                                       "could be read or changed there; koine/vmap.h");
    return kn_fail(KN_ERR_STATE,
                   "the storage of a tensor was resized to 0 bytes; first resize it to %zu bytes with "
                   "kn_storage_resize",
                   storage->needed);
}

/* Copies as many bytes as fit, in stream order. */
static kn_status copy_bytes(kn_storage *to, kn_storage *from)
{
    const int64_t count = (int64_t)(to->bytes < from->bytes ? to->bytes : from->bytes);
    kn_tensor *source = NULL, *destination = NULL;
    if (count == 0)
        return KN_OK;
    kn_status status = kn_tensor_on(&source, from, KN_U8, 1, &count, NULL, 0);
    if (status == KN_OK)
        status = kn_tensor_on(&destination, to, KN_U8, 1, &count, NULL, 0);
    if (status == KN_OK)
        status = kn_tensor_copy(destination, source);
    kn_release(source);
    kn_release(destination);
    return status;
}

static kn_status resize(kn_storage *storage, size_t bytes)
{
    kn_storage *other;
    KN_TRY(check_resize(storage, bytes));
    KN_TRY(kn_storage_make(&other, storage->device, NULL, bytes));
    const kn_status status = copy_bytes(other, storage);
    const size_t needed = bytes > 0 || !is_used(storage) ? 0 : storage->needed ? storage->needed : storage->bytes;
    if (status == KN_OK && needed > 0) { /* without memory, so that no tensor can use it */
        kn_buffer_free(other->buffer);
        other->buffer = NULL;
    }
    if (status == KN_OK) {
        kn_storage_exchange_memory(storage, other);
        storage->needed = needed;
    }
    kn_storage_release(other);
    return status;
}

kn_status kn_storage_resize(kn_storage *storage, size_t bytes)
{
    if (!storage)
        return kn_fail_argument_null("kn_storage_resize", "storage");
    const kn_status status = bytes == storage->bytes ? KN_OK : resize(storage, bytes);
    if (status != KN_OK)
        kn_error_prefix("kn_storage_resize");
    return status;
}
