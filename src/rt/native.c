/* rt/native.c - OpenCL's handles of devices, streams and buffers. */
#include <koine/native.h>

#include "rt/device/lost.h"
#include "rt/stream/open.h"
#include "rt/stream/queue.h"

static bool is_open(kn_device *device, const char *function)
{
    if (!device)
        return kn_fail_argument_null(function, "device"), false;
    return kn_device_ensure_open(device) == KN_OK;
}

void *kn_native_platform(kn_device *device)
{
    return is_open(device, "kn_native_platform") ? (void *)device->platform : NULL;
}

void *kn_native_device(kn_device *device) { return is_open(device, "kn_native_device") ? (void *)device->id : NULL; }

void *kn_native_context(kn_device *device)
{
    return is_open(device, "kn_native_context") ? (void *)device->context : NULL;
}

void *kn_native_queue(kn_stream *stream)
{
    if (!stream)
        return kn_fail_argument_null("kn_native_queue", "stream"), NULL;
    cl_command_queue queue;
    if (kn_stream_enter(stream, "returning the queue") != KN_OK || kn_stream_share_queue(stream, &queue) != KN_OK)
        return NULL;
    return (void *)queue;
}

/* Koine requires the same context, so that memory can be shared, the same device, and in-order execution. */
static kn_status check_queue(kn_device *device, cl_command_queue queue)
{
    cl_context context;
    cl_device_id id;
    cl_command_queue_properties properties;
    cl_int error = clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
    if (error == CL_SUCCESS)
        error = clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof id, &id, NULL);
    if (error == CL_SUCCESS)
        error = clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, device, "kn_stream_from_native: querying the queue");
    if (context != device->context || id != device->id)
        return kn_fail(
            KN_ERR_DEVICE,
            "kn_stream_from_native: the queue's %s is not that of %s: use kn_native_context and kn_native_device",
            id == device->id ? "context" : "device", device->label);
    if (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
        return kn_fail(KN_ERR_ARGUMENT,
                       "kn_stream_from_native: the queue is out-of-order; a stream needs an in-order one");
    return KN_OK;
}

kn_stream *kn_stream_from_native(kn_device *device, void *queue)
{
    if (!device || !queue)
        return kn_fail_argument_null("kn_stream_from_native", device ? "queue" : "device"), NULL;
    if (kn_device_ensure_open(device) != KN_OK || check_queue(device, queue) != KN_OK)
        return NULL;
    return kn_stream_adopt_queue(device, queue);
}
