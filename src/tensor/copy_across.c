/* tensor/copy_across.c - copies between host and devices, and between devices. */
#include "base/error.h"
#include "tensor/copy.h"
#include "tensor/host_copies.h"

static size_t tensor_bytes(const kn_tensor *tensor)
{
    return (size_t)kn_numel(tensor) * kn_tensor_element_size(tensor);
}

static size_t start_of(const kn_tensor *tensor) { return (size_t)tensor->offset * kn_tensor_element_size(tensor); }

kn_status kn_tensor_packed(kn_tensor **result, const kn_tensor *tensor, kn_dtype dtype)
{
    if (tensor->dtype == dtype && kn_is_contiguous(tensor)) {
        *result = kn_retain((kn_tensor *)(uintptr_t)tensor);
        return KN_OK;
    }
    return kn_tensor_cast(result, (kn_tensor *)(uintptr_t)tensor, dtype, tensor->storage->device);
}

/* --- whole blocks: both contiguous, of the same dtype ----------------------------------------- */

static kn_status host_to_device(kn_tensor *destination, const kn_tensor *source, bool non_blocking)
{
    kn_stream *stream = kn_tensor_stream(destination);
    kn_buffer *buffer = destination->storage->buffer;
    kn_pinned *pinned = kn_storage_pinned(source->storage);
    if (!stream)
        return kn_error_status();
    if (non_blocking && pinned) {
        kn_copy_mark *mark;
        KN_TRY(kn_storage_begin_copy(source->storage, stream, KN_HOST_READ, &mark));
        kn_status status = kn_buffer_write_pinned(stream, buffer, start_of(destination), pinned, start_of(source),
                                                  tensor_bytes(source));
        return kn_storage_end_copy(source->storage, stream, mark, status);
    }
    KN_TRY(kn_storage_wait(source->storage, KN_HOST_READ));
    return kn_buffer_write(stream, buffer, start_of(destination),
                           (const char *)source->storage->host + start_of(source), tensor_bytes(source));
}

static kn_status device_to_host(kn_tensor *destination, const kn_tensor *source, bool non_blocking)
{
    kn_stream *stream = kn_tensor_stream(source);
    const kn_buffer *buffer = source->storage->buffer;
    kn_pinned *pinned = kn_storage_pinned(destination->storage);
    if (!stream)
        return kn_error_status();
    if (non_blocking && pinned) {
        kn_copy_mark *mark;
        KN_TRY(kn_storage_begin_copy(destination->storage, stream, KN_HOST_WRITE, &mark));
        kn_status status = kn_buffer_read_pinned(stream, buffer, start_of(source), pinned, start_of(destination),
                                                 tensor_bytes(source));
        return kn_storage_end_copy(destination->storage, stream, mark, status);
    }
    KN_TRY(kn_storage_wait(destination->storage, KN_HOST_WRITE));
    return kn_buffer_read(stream, buffer, start_of(source), (char *)destination->storage->host + start_of(destination),
                          tensor_bytes(source));
}

static kn_status device_to_devices(kn_tensor *const *destinations, int count, const kn_tensor *source)
{
    kn_stream *from = kn_tensor_stream(source);
    kn_device_transfer *transfer = NULL;
    if (!from)
        return kn_error_status();
    KN_TRY(kn_device_transfer_start(&transfer, from, source->storage->buffer, start_of(source), tensor_bytes(source)));
    kn_status status = KN_OK;
    for (int i = 0; i < count && status == KN_OK; i++) {
        kn_stream *to = kn_tensor_stream(destinations[i]);
        status =
            to ? kn_device_transfer_deliver(transfer, to, destinations[i]->storage->buffer, start_of(destinations[i]))
               : kn_error_status();
    }
    kn_device_transfer_end(transfer);
    return status;
}

static kn_status transfer(kn_tensor *destination, const kn_tensor *source, bool non_blocking)
{
    if (kn_device_is_host(source->storage->device))
        return host_to_device(destination, source, non_blocking);
    if (kn_device_is_host(destination->storage->device))
        return device_to_host(destination, source, non_blocking);
    return device_to_devices(&destination, 1, source);
}

/* --- any two tensors -------------------------------------------------------------------------- */

/* Does the device support elements of this dtype? */
static bool holds(const kn_device *device, kn_dtype dtype)
{
    return dtype != KN_F64 || kn_device_is_host(device) || kn_device_limits(device)->has_f64;
}

/* Is this pinned memory from and to which the device `other` can copy asynchronously? */
static bool can_be_async(const kn_tensor *host, const kn_device *other)
{
    return kn_storage_pinned(host->storage) && kn_is_contiguous(host) && holds(other, host->dtype);
}

/* Transfers the smaller of the two dtypes, if the destination's device supports it. In an asynchronous copy the host's
 * dtype is transferred and the device converts. */
static kn_dtype transfer_dtype(const kn_tensor *destination, const kn_tensor *source, bool non_blocking)
{
    if (non_blocking && can_be_async(destination, source->storage->device))
        return destination->dtype;
    if (non_blocking && can_be_async(source, destination->storage->device))
        return source->dtype;
    return kn_tensor_element_size(source) <= kn_tensor_element_size(destination) &&
                   holds(destination->storage->device, source->dtype)
               ? source->dtype
               : destination->dtype;
}

/* Non-contiguous tensors are packed before the transfer and unpacked after it. */
kn_status kn_copy_across(kn_tensor *destination, const kn_tensor *source, bool non_blocking)
{
    const kn_dtype dtype = transfer_dtype(destination, source, non_blocking);
    kn_tensor *sent = NULL, *received = NULL;
    kn_status status = kn_tensor_packed(&sent, source, dtype);
    if (status == KN_OK && destination->dtype == dtype && kn_is_contiguous(destination))
        received = kn_retain(destination);
    else if (status == KN_OK)
        status = kn_tensor_new(&received, dtype, source->ndim, source->shape, destination->storage->device);
    if (status == KN_OK)
        status = transfer(received, sent, non_blocking);
    if (status == KN_OK && received != destination)
        status = kn_tensor_copy(destination, received);
    kn_release(sent);
    kn_release(received);
    return status;
}

kn_status kn_tensor_copy_to_many(kn_tensor *const *destinations, int count, kn_tensor *source)
{
    if (count == 0 || kn_numel(source) == 0)
        return KN_OK;
    kn_tensor *sent = NULL;
    KN_TRY(kn_tensor_check_memory(source));
    for (int i = 0; i < count; i++)
        KN_TRY(kn_tensor_check_memory(destinations[i]));
    KN_TRY(kn_tensor_packed(&sent, source, source->dtype));
    kn_status status = KN_OK;
    if (!kn_device_is_host(sent->storage->device))
        status = device_to_devices(destinations, count, sent);
    for (int i = 0; i < count && kn_device_is_host(sent->storage->device) && status == KN_OK; i++)
        status = host_to_device(destinations[i], sent, false);
    kn_release(sent);
    return status;
}
