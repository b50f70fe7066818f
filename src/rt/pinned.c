/* rt/pinned.c - host memory that a device copies from and to without staging of the driver's own. Mapped and unmapped
 * on a queue apart, so that it waits for nobody's work. */
#include "base/memory.h"
#include "rt/lost.h"

struct kn_pinned {
    kn_device *device; /* the host's: plain memory */
    cl_mem memory;
    void *data;
};

static kn_status map_pinned(kn_pinned *pinned, size_t bytes)
{
    kn_device *device = pinned->device;
    KN_TRY(kn_device_ensure_open(device));
    cl_int error;
    pinned->memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, NULL, &error);
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, device, "allocating %zu bytes of pinned memory", bytes);
    pinned->data = clEnqueueMapBuffer(device->service, pinned->memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0,
                                      NULL, NULL, &error);
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
        cl_command_queue queue = pinned->device->service;
        if (pinned->data && !kn_device_is_lost(pinned->device) &&
            clEnqueueUnmapMemObject(queue, pinned->memory, pinned->data, 0, NULL, NULL) == CL_SUCCESS)
            clFinish(queue);
        clReleaseMemObject(pinned->memory);
    }
    kn_free(pinned);
}
