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
        stream->calls[i] = kn_calls_new();
        if (!stream->calls[i])
            return KN_ERR_MEMORY;
    }
    return KN_OK;
}

void kn_affinity_free(kn_stream *stream)
{
    for (int i = 0; i < 2; i++) {
        kn_free(stream->affinity[i]);
        kn_calls_free(stream->calls[i]);
        stream->affinity[i] = NULL;
        stream->calls[i] = NULL;
    }
}

cl_int kn_affinity_find(kn_affinity_parameter *parameter, cl_kernel kernel, const kn_device *device)
{
    static const char numbering[] = "kn_numbering", call[] = "kn_call";
    char name[256]; /* one that is longer is none of these */
    cl_uint count = 0;
    parameter->index = -1;
    if (!device->limits.has_affinity)
        return CL_SUCCESS;
    cl_int error = clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL);
    if (error != CL_SUCCESS || count == 0)
        return error;
    error = clGetKernelArgInfo(kernel, count - 1, CL_KERNEL_ARG_NAME, sizeof name, name, NULL);
    if (error != CL_SUCCESS)
        return error == CL_INVALID_VALUE ? CL_SUCCESS : error;
    parameter->is_gathered = strcmp(name, call) == 0;
    if (parameter->is_gathered || strcmp(name, numbering) == 0)
        parameter->index = (int)count - 1;
    return CL_SUCCESS;
}

cl_int kn_affinity_set(cl_kernel kernel, kn_affinity_parameter parameter, const kn_values *values, kn_stream *stream,
                       kn_turn *turn)
{
    if (!turn->affinity)
        return CL_SUCCESS;
    turn->launch = (long long)atomic_fetch_add_explicit(&stream->affinity_launches, 1, memory_order_relaxed) + 1;
    if (parameter.index < 0) {
        ((volatile kn_affinity *)turn->affinity)->silent = turn->launch;
        return CL_SUCCESS;
    }
    const cl_long numbering[2] = {(cl_long)(uintptr_t)turn->affinity, turn->launch};
    if (!parameter.is_gathered)
        return clSetKernelArg(kernel, (cl_uint)parameter.index, sizeof numbering, numbering);
    cl_long call;
    const cl_int error = kn_calls_place(turn->calls, turn, values, &call);
    return error != CL_SUCCESS ? error : clSetKernelArg(kernel, (cl_uint)parameter.index, sizeof call, &call);
}
