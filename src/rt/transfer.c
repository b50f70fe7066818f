/* rt/transfer.c - copies between host and device, in stream order. */
#include <string.h>

#include "base/memory.h"
#include "rt/internal.h"

struct kn_pinned {
    kn_device *device; /* the host's: plain memory */
    cl_mem memory;
    void *data;
};

kn_status kn_buffer_read(kn_stream *stream, const kn_buffer *buffer, size_t offset, void *destination, size_t bytes)
{
    if (bytes > 0) {
        kn_buffer_mark_use(buffer, stream);
        cl_int error = clEnqueueReadBuffer(stream->queue, kn_buffer_memory(buffer), CL_TRUE,
                                           kn_buffer_offset(buffer) + offset, bytes, destination, 0, NULL, NULL);
        if (error != CL_SUCCESS)
            return kn_cl_fail(error, stream->device, "reading %zu bytes", bytes);
    }
    /* A blocking read has waited for all that was enqueued before: report what its kernels found. */
    return kn_stream_check_fault(stream);
}

kn_status kn_buffer_write(kn_stream *stream, kn_buffer *buffer, size_t offset, const void *source, size_t bytes)
{
    if (bytes == 0)
        return KN_OK;
    kn_buffer_mark_use(buffer, stream);
    cl_int error = clEnqueueWriteBuffer(stream->queue, kn_buffer_memory(buffer), CL_TRUE,
                                        kn_buffer_offset(buffer) + offset, bytes, source, 0, NULL, NULL);
    return error == CL_SUCCESS ? KN_OK : kn_cl_fail(error, stream->device, "writing %zu bytes", bytes);
}

kn_status kn_buffer_copy(kn_stream *stream, const kn_buffer *source, size_t source_offset, kn_buffer *destination,
                         size_t destination_offset, size_t bytes)
{
    if (bytes == 0)
        return KN_OK;
    kn_buffer_mark_use(source, stream);
    kn_buffer_mark_use(destination, stream);
    cl_int error = clEnqueueCopyBuffer(stream->queue, kn_buffer_memory(source), kn_buffer_memory(destination),
                                       kn_buffer_offset(source) + source_offset,
                                       kn_buffer_offset(destination) + destination_offset, bytes, 0, NULL, NULL);
    return error == CL_SUCCESS ? KN_OK : kn_cl_fail(error, stream->device, "copying %zu bytes", bytes);
}

kn_status kn_buffer_fill(kn_stream *stream, kn_buffer *buffer, size_t offset, const void *pattern, size_t pattern_bytes,
                         size_t bytes)
{
    if (bytes == 0)
        return KN_OK;
    kn_buffer_mark_use(buffer, stream);
    cl_int error = clEnqueueFillBuffer(stream->queue, kn_buffer_memory(buffer), pattern, pattern_bytes,
                                       kn_buffer_offset(buffer) + offset, bytes, 0, NULL, NULL);
    return error == CL_SUCCESS ? KN_OK : kn_cl_fail(error, stream->device, "filling %zu bytes", bytes);
}

/* --- pinned memory ---------------------------------------------------------------------------- */

static kn_status map_pinned(kn_pinned *pinned, size_t bytes)
{
    kn_device *device = pinned->device;
    KN_TRY(kn_device_ensure_open(device));
    cl_int error;
    pinned->memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, NULL, &error);
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, device, "allocating %zu bytes of pinned memory", bytes);
    pinned->data = clEnqueueMapBuffer(device->default_stream.queue, pinned->memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                      0, bytes, 0, NULL, NULL, &error);
    return error == CL_SUCCESS ? KN_OK : kn_cl_fail(error, device, "mapping %zu bytes of pinned memory", bytes);
}

kn_status kn_pinned_alloc(kn_pinned **pinned, kn_device *device, size_t bytes)
{
    kn_pinned *made = kn_calloc(1, sizeof *made);
    if (!made)
        return KN_ERR_MEMORY;
    made->device = device;
    kn_status status = KN_OK;
    if (kn_device_is_host(device))
        status = (made->data = kn_malloc(bytes)) ? KN_OK : KN_ERR_MEMORY;
    else
        status = map_pinned(made, bytes ? bytes : 1);
    if (status != KN_OK) {
        kn_pinned_free(made);
        return status;
    }
    *pinned = made;
    return KN_OK;
}

void *kn_pinned_data(kn_pinned *pinned) { return pinned->data; }

void kn_pinned_free(kn_pinned *pinned)
{
    if (!pinned)
        return;
    if (kn_device_is_host(pinned->device)) {
        kn_free(pinned->data);
    } else if (pinned->memory) {
        cl_command_queue queue = pinned->device->default_stream.queue;
        if (pinned->data && clEnqueueUnmapMemObject(queue, pinned->memory, pinned->data, 0, NULL, NULL) == CL_SUCCESS)
            clFinish(queue);
        clReleaseMemObject(pinned->memory);
    }
    kn_free(pinned);
}

kn_status kn_buffer_write_pinned(kn_stream *stream, kn_buffer *buffer, size_t offset, kn_pinned *source,
                                 size_t source_offset, size_t bytes)
{
    if (bytes == 0)
        return KN_OK;
    kn_buffer_mark_use(buffer, stream);
    cl_int error =
        clEnqueueWriteBuffer(stream->queue, kn_buffer_memory(buffer), CL_FALSE, kn_buffer_offset(buffer) + offset,
                             bytes, (char *)source->data + source_offset, 0, NULL, NULL);
    if (error == CL_SUCCESS)
        error = clFlush(stream->queue);
    return error == CL_SUCCESS ? KN_OK
                               : kn_cl_fail(error, stream->device, "writing %zu bytes from pinned memory", bytes);
}
