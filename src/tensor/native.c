/* tensor/native.c - access to a tensor's OpenCL memory object, and recording the streams that use it. */
#include <koine/native.h>

#include "base/error.h"
#include "rt/stream/deferral.h"
#include "tensor/liveness.h"
#include "tensor/tensor.h"

static kn_status check_on_device(const kn_tensor *tensor, const char *function)
{
    KN_TRY(kn_check_tensor(function, "tensor", tensor));
    if (kn_device_is_host(tensor->storage->device))
        return kn_fail(KN_ERR_DEVICE,
                       "%s: the tensor is on the host, so it has no OpenCL memory object; move it to a device",
                       function);
    if (kn_tensor_check_memory(tensor) != KN_OK) {
        kn_error_prefix("%s", function);
        return kn_error_status();
    }
    return KN_OK;
}

void *kn_native_memory(kn_tensor *tensor, size_t *byte_offset)
{
    if (!byte_offset)
        return kn_fail_argument_null("kn_native_memory", "byte_offset"), NULL;
    if (check_on_device(tensor, "kn_native_memory") != KN_OK)
        return NULL;
    kn_stream *claimant = kn_buffer_claimant(tensor->storage->buffer);
    if (claimant && kn_stream_enqueue_deferred(claimant) != KN_OK)
        return NULL;
    void *memory = kn_buffer_native(tensor->storage->buffer, byte_offset);
    *byte_offset += (size_t)tensor->offset * kn_tensor_element_size(tensor);
    return memory;
}

kn_status kn_record_stream(kn_tensor *tensor, kn_stream *stream)
{
    KN_TRY(check_on_device(tensor, "kn_record_stream"));
    if (!stream)
        return kn_fail_argument_null("kn_record_stream", "stream");
    if (kn_stream_device(stream) != tensor->storage->device)
        return kn_fail(KN_ERR_DEVICE, "kn_record_stream: the tensor is on %s, but the stream belongs to %s",
                       kn_device_string(tensor->storage->device), kn_device_string(kn_stream_device(stream)));
    kn_buffer_mark_use(tensor->storage->buffer, stream);
    return KN_OK;
}
