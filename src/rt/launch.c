/* rt/launch.c - the one way to run a kernel. */
#include "base/log.h"
#include "rt/internal.h"

/* Buffers and faults take two kernel parameters each; see cl/common/koine.clh. */
static cl_int set_argument(cl_kernel kernel, cl_uint *index, const kn_arg *arg, kn_stream *stream, int operation)
{
    cl_int error = CL_SUCCESS;
    switch (arg->kind) {
    case KN_ARG_BUFFER: {
        kn_buffer_mark_use(arg->buffer, stream);
        cl_mem memory = kn_buffer_memory(arg->buffer);
        cl_long offset = (cl_long)kn_buffer_offset(arg->buffer) + arg->offset;
        error = clSetKernelArg(kernel, (*index)++, sizeof memory, &memory);
        if (error == CL_SUCCESS)
            error = clSetKernelArg(kernel, (*index)++, sizeof offset, &offset);
        break;
    }
    case KN_ARG_BYTES:
        error = clSetKernelArg(kernel, (*index)++, arg->size, arg->pointer ? arg->pointer : &arg->value);
        break;
    case KN_ARG_LOCAL:
        error = clSetKernelArg(kernel, (*index)++, arg->size, NULL);
        break;
    case KN_ARG_FAULT: {
        cl_int number = operation;
        error = clSetKernelArg(kernel, (*index)++, sizeof stream->fault, &stream->fault);
        if (error == CL_SUCCESS)
            error = clSetKernelArg(kernel, (*index)++, sizeof number, &number);
        break;
    }
    }
    return error;
}

static kn_status set_arguments(kn_kernel *kernel, kn_stream *stream, const kn_launch_params *params)
{
    const char *operation = params->operation ? params->operation : params->kernel;
    cl_uint index = 0;
    for (int i = 0; i < params->num_args; i++) {
        const kn_arg *arg = &params->args[i];
        bool fault = arg->kind == KN_ARG_FAULT;
        cl_int error = set_argument(kernel->handle, &index, arg, stream, fault ? kn_operation_number(operation) : 0);
        if (error != CL_SUCCESS)
            return kn_cl_fail(error, stream->device, "%s: setting argument %d of kernel `%s`", operation, i,
                              params->kernel);
        if (fault)
            atomic_store(&stream->fault_armed, true);
    }
    return KN_OK;
}

/* Work sizes as OpenCL wants them: global a multiple of local; local 1 on CPU devices unless given. Returns false when
 * there is nothing to do. */
static bool work_sizes(const kn_device *device, const kn_launch_params *params, size_t global[3], size_t local[3],
                       bool *has_local)
{
    *has_local = params->local[0] != 0 || device->limits.is_cpu;
    for (int i = 0; i < params->dims; i++) {
        local[i] = params->local[0] != 0 ? params->local[i] : 1;
        if (local[i] == 0)
            local[i] = 1;
        global[i] = (params->global[i] + local[i] - 1) / local[i] * local[i];
        if (global[i] == 0)
            return false;
    }
    return true;
}

static cl_int enqueue(kn_stream *stream, kn_kernel *kernel, int dims, const size_t *global, const size_t *local)
{
    return clEnqueueNDRangeKernel(stream->queue, kernel->handle, (cl_uint)dims, NULL, global, local, 0, NULL, NULL);
}

/* Drivers that compile when a kernel first runs are given the time to: see quirks.h. Costs one wait per kernel and
 * process. */
static void await_compilation(kn_stream *stream, kn_kernel *kernel)
{
    if (!kernel->launched && stream->device->quirks.compiles_at_first_launch)
        clFinish(stream->queue);
    kernel->launched = true;
}

kn_status kn_launch(kn_stream *stream, const kn_launch_params *params)
{
    size_t global[3], local[3];
    bool has_local;
    kn_device *device = stream->device;
    if (!work_sizes(device, params, global, local, &has_local))
        return KN_OK;
    kn_kernel *kernel;
    KN_TRY(kn_kernel_get(&kernel, device, params->source, params->options, params->kernel));
    kn_lock(&kernel->lock);
    kn_status status = set_arguments(kernel, stream, params);
    if (status == KN_OK) {
        const size_t *local_size = has_local ? local : NULL;
        cl_int error = enqueue(stream, kernel, params->dims, global, local_size);
        if (kn_cl_is_out_of_memory(error) && kn_pool_empty_cache(device) == KN_OK)
            error = enqueue(stream, kernel, params->dims, global,
                            local_size); /* drivers take memory at first use: the cache may be in the way */
        if (error != CL_SUCCESS)
            status = kn_cl_fail(error, device, "%s: running kernel `%s`",
                                params->operation ? params->operation : params->source, params->kernel);
        else
            await_compilation(stream, kernel);
    }
    kn_unlock(&kernel->lock);
    return status == KN_OK ? kn_stream_count_launch(stream) : status;
}

size_t kn_work_items(const kn_limits *limits, int64_t n, int64_t grain)
{
    if (n <= 0)
        return 0;
    int64_t per_unit = limits->is_cpu ? 4 : 2048;
    int64_t most = (int64_t)limits->compute_units * per_unit;
    int64_t wanted = limits->is_cpu ? (n + grain - 1) / grain : n;
    return (size_t)(wanted < most ? wanted : most);
}
