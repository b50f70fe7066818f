/* support/odd_driver/transfers.c - fills that fail, transfers that block. */
#include "support/odd_driver/odd.h"

static cl_bool blocks(cl_bool wanted) { return wanted || odd[ODD_BLOCKING].is_on; }

static cl_int CL_API_CALL enqueue_fill(cl_command_queue queue, cl_mem memory, const void *pattern, size_t pattern_bytes,
                                       size_t offset, size_t bytes, cl_uint waits, const cl_event *list,
                                       cl_event *event)
{
    if (odd[ODD_FILL].is_on && bytes >= (size_t)1 << 31)
        return odd_refuse(CL_OUT_OF_RESOURCES, "a fill of %zu bytes", bytes);
    cl_int error = odd_use_memory(memory);
    return error ? error
                 : below->clEnqueueFillBuffer(queue, memory, pattern, pattern_bytes, offset, bytes, waits, list, event);
}

static cl_int CL_API_CALL enqueue_read(cl_command_queue queue, cl_mem memory, cl_bool wait, size_t offset, size_t bytes,
                                       void *to, cl_uint waits, const cl_event *list, cl_event *event)
{
    cl_int error = odd_use_memory(memory);
    return error ? error
                 : below->clEnqueueReadBuffer(queue, memory, blocks(wait), offset, bytes, to, waits, list, event);
}

static cl_int CL_API_CALL enqueue_write(cl_command_queue queue, cl_mem memory, cl_bool wait, size_t offset,
                                        size_t bytes, const void *from, cl_uint waits, const cl_event *list,
                                        cl_event *event)
{
    cl_int error = odd_use_memory(memory);
    return error ? error
                 : below->clEnqueueWriteBuffer(queue, memory, blocks(wait), offset, bytes, from, waits, list, event);
}

static cl_int CL_API_CALL enqueue_copy(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset,
                                       size_t to_offset, size_t bytes, cl_uint waits, const cl_event *list,
                                       cl_event *event)
{
    cl_int error = odd_use_memory(from);
    if (error == CL_SUCCESS)
        error = odd_use_memory(to);
    return error ? error
                 : below->clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, bytes, waits, list, event);
}

static void *CL_API_CALL enqueue_map(cl_command_queue queue, cl_mem memory, cl_bool wait, cl_map_flags flags,
                                     size_t offset, size_t bytes, cl_uint waits, const cl_event *list, cl_event *event,
                                     cl_int *error)
{
    const cl_int lacking = odd_use_memory(memory);
    if (lacking && error)
        *error = lacking;
    return lacking ? NULL
                   : below->clEnqueueMapBuffer(queue, memory, blocks(wait), flags, offset, bytes, waits, list, event,
                                               error);
}

void odd_install_transfers(void)
{
    ours.clEnqueueFillBuffer = enqueue_fill;
    ours.clEnqueueReadBuffer = enqueue_read;
    ours.clEnqueueWriteBuffer = enqueue_write;
    ours.clEnqueueCopyBuffer = enqueue_copy;
    ours.clEnqueueMapBuffer = enqueue_map;
}
