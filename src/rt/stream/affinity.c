/* rt/stream/affinity.c - see affinity.h. */
#include "rt/stream/affinity.h"

#include <string.h>

#include "base/memory.h"
#include "common/affinity.h"

kn_status kn_affinity_new(kn_stream *stream, const kn_device *device)
{
    const size_t slots = (size_t)device->limits.compute_units,
                 bytes = sizeof(kn_affinity) + slots * sizeof(kn_affinity_slot);
    if (!device->limits.has_affinity)
        return KN_OK;
    for (int i = 0; i < 2; i++) {
        if (stream->affinity[i])
            continue;
        stream->affinity[i] = kn_calloc(1, bytes);
        if (!stream->affinity[i])
            return KN_ERR_MEMORY;
        stream->affinity[i]->slots = (kn_uint)slots;
    }
    return KN_OK;
}

void kn_affinity_free(kn_stream *stream)
{
    for (int i = 0; i < 2; i++) {
        kn_free(stream->affinity[i]);
        stream->affinity[i] = NULL;
    }
}

/* It is the last one. */
int kn_affinity_parameter(cl_kernel kernel, const kn_device *device)
{
    static const char parameter[] = "kn_numbering";
    char name[sizeof parameter] = "";
    cl_uint count = 0;
    if (!device->limits.has_affinity ||
        clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL) != CL_SUCCESS || count == 0 ||
        clGetKernelArgInfo(kernel, count - 1, CL_KERNEL_ARG_NAME, sizeof name, name, NULL) != CL_SUCCESS)
        return -1;
    return strcmp(name, parameter) == 0 ? (int)count - 1 : -1;
}

cl_int kn_affinity_set(cl_kernel kernel, int parameter, kn_stream *stream, kn_turn *turn)
{
    if (!turn->affinity)
        return CL_SUCCESS;
    turn->launch = (long long)atomic_fetch_add_explicit(&stream->affinity_launches, 1, memory_order_relaxed) + 1;
    if (parameter < 0) {
        ((volatile kn_affinity *)turn->affinity)->silent = turn->launch;
        return CL_SUCCESS;
    }
    const cl_long value[2] = {(cl_long)(uintptr_t)turn->affinity, turn->launch};
    return clSetKernelArg(kernel, (cl_uint)parameter, sizeof value, value);
}
