/* told_driver.c - an OpenCL layer (OPENCL_LAYERS) that a test can tell what to do while it runs, and that counts. (The
 * oddities of support/odd_driver are set before.) */
#include "support/layer.h"

#include <time.h>

#include "rt/told_driver.h"

extern EXPORT told_driver told;
told_driver told;

/* --- work-groups -------------------------------------------------------------------------------------------------- */

static bool has_limit(cl_kernel kernel, cl_device_id device)
{
    size_t size[3] = {0};
    below->clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof size, size, NULL);
    return told.group && (told.is_stubborn || size[0] == 0);
}

static cl_int CL_API_CALL get_group_info(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what,
                                         size_t size, void *to, size_t *size_ret)
{
    if (what == CL_KERNEL_WORK_GROUP_SIZE && has_limit(kernel, device))
        return answer(&told.group, sizeof told.group, size, to, size_ret);
    return below->clGetKernelWorkGroupInfo(kernel, device, what, size, to, size_ret);
}

/* --- queues and waits --------------------------------------------------------------------------------------------- */

static cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset,
                                         const size_t *global, const size_t *local, cl_uint waits, const cl_event *list,
                                         cl_event *event)
{
    cl_command_queue_properties properties = 0;
    cl_device_id device = NULL;
    size_t items = 1;
    below->clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    below->clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
    for (cl_uint i = 0; local && i < dims; i++)
        items *= local[i];
    if (items > told.group && has_limit(kernel, device))
        return CL_INVALID_WORK_GROUP_SIZE;
    __atomic_fetch_add(&told.launches[(properties & CL_QUEUE_PROFILING_ENABLE) != 0], 1, __ATOMIC_RELAXED);
    return below->clEnqueueNDRangeKernel(queue, kernel, dims, offset, global, local, waits, list, event);
}

static void count_wait(cl_bool blocks)
{
    if (blocks)
        __atomic_fetch_add(&told.waits, 1, __ATOMIC_RELAXED);
}

static cl_int CL_API_CALL finish(cl_command_queue queue)
{
    count_wait(CL_TRUE);
    return below->clFinish(queue);
}

static cl_int CL_API_CALL wait_for(cl_uint count, const cl_event *events)
{
    count_wait(CL_TRUE);
    return below->clWaitForEvents(count, events);
}

static cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem memory, cl_bool blocks, size_t offset,
                                      size_t bytes, void *to, cl_uint waits, const cl_event *list, cl_event *event)
{
    count_wait(blocks);
    return below->clEnqueueReadBuffer(queue, memory, blocks, offset, bytes, to, waits, list, event);
}

static cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem memory, cl_bool blocks, size_t offset,
                                       size_t bytes, const void *from, cl_uint waits, const cl_event *list,
                                       cl_event *event)
{
    count_wait(blocks);
    return below->clEnqueueWriteBuffer(queue, memory, blocks, offset, bytes, from, waits, list, event);
}

/* --- times -------------------------------------------------------------------------------------------------------- */

static cl_int CL_API_CALL get_time(cl_event event, cl_profiling_info what, size_t size, void *to, size_t *size_ret)
{
    cl_command_type type = 0;
    cl_ulong time = 0;
    below->clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL);
    const told_times kind = type == CL_COMMAND_MARKER ? told.markers : told.times;
    cl_int error = below->clGetEventProfilingInfo(event, what, sizeof time, &time, NULL);
    if (error != CL_SUCCESS || kind == TOLD_NO_TIMES)
        return error != CL_SUCCESS ? error : CL_PROFILING_INFO_NOT_AVAILABLE;
    if (kind == TOLD_ZEROS)
        time = 0;
    else if (kind == TOLD_IN_OTHER_UNITS)
        time /= 83;
    else if (kind == TOLD_OUT_OF_ORDER)
        time += 5000000; /* the clocks of two engines */
    return answer(&time, sizeof time, size, to, size_ret);
}

/* --- buffers ------------------------------------------------------------------------------------------------------ */

static void CL_CALLBACK forget_buffer(cl_mem memory, void *bytes)
{
    (void)memory;
    __atomic_fetch_sub(&told.bytes, (size_t)bytes, __ATOMIC_RELAXED);
}

/* PoCL's thread frees a released buffer once it has cleaned up the last command that used it, perhaps after that was
 * waited for: so what does not fit is tried for some time. */
static bool has_room(size_t bytes)
{
    enum { TRIALS = 300 }; /* milliseconds */
    for (int i = 0;; i++) {
        const size_t all = __atomic_add_fetch(&told.bytes, bytes, __ATOMIC_RELAXED);
        if (!told.room || all <= told.room)
            return true;
        __atomic_fetch_sub(&told.bytes, bytes, __ATOMIC_RELAXED);
        if (i == TRIALS)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t bytes, void *data, cl_int *error)
{
    if (!has_room(bytes)) {
        __atomic_fetch_add(&told.refused, 1, __ATOMIC_RELAXED);
        if (error)
            *error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
        return NULL;
    }
    cl_mem memory = below->clCreateBuffer(context, flags, bytes, data, error);
    if (memory)
        below->clSetMemObjectDestructorCallback(memory, forget_buffer, (void *)bytes);
    return memory;
}

static void install(void)
{
    ours.clEnqueueNDRangeKernel = enqueue_kernel;
    ours.clFinish = finish;
    ours.clWaitForEvents = wait_for;
    ours.clEnqueueReadBuffer = read_buffer;
    ours.clEnqueueWriteBuffer = write_buffer;
    ours.clGetEventProfilingInfo = get_time;
    ours.clGetKernelWorkGroupInfo = get_group_info;
    ours.clCreateBuffer = create_buffer;
}

LAYER("told_driver", install)
