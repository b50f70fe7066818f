/* support/odd_driver/launches.c - which launches are refused. */
#include "support/odd_driver/odd.h"

#include <pthread.h>
#include <stdlib.h>

#define MAX_ARGUMENTS 256

/* What was set of a kernel's arguments. */
typedef struct known_kernel {
    cl_kernel handle;
    size_t bytes[MAX_ARGUMENTS];
    cl_mem memory[MAX_ARGUMENTS]; /* of those that may be a memory object */
    struct known_kernel *next;
} known_kernel;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static known_kernel *kernels[1024];

/* The lock is held. */
static known_kernel *find(cl_kernel handle)
{
    known_kernel **bucket = &kernels[(size_t)handle / 64 % 1024], *found = *bucket;
    while (found && found->handle != handle)
        found = found->next;
    if (!found && (found = calloc(1, sizeof *found))) {
        found->handle = handle;
        found->next = *bucket;
        *bucket = found;
    }
    return found;
}

static void forget(cl_kernel handle)
{
    pthread_mutex_lock(&lock);
    known_kernel **link = &kernels[(size_t)handle / 64 % 1024];
    while (*link && (*link)->handle != handle)
        link = &(*link)->next;
    known_kernel *gone = *link;
    if (gone)
        *link = gone->next;
    pthread_mutex_unlock(&lock);
    free(gone);
}

static cl_int CL_API_CALL release_kernel(cl_kernel kernel)
{
    cl_uint references = 0;
    below->clGetKernelInfo(kernel, CL_KERNEL_REFERENCE_COUNT, sizeof references, &references, NULL);
    if (references == 1)
        forget(kernel);
    return below->clReleaseKernel(kernel);
}

static cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, size_t bytes, const void *value)
{
    cl_int error = below->clSetKernelArg(kernel, index, bytes, value);
    pthread_mutex_lock(&lock);
    known_kernel *known = error == CL_SUCCESS && index < MAX_ARGUMENTS ? find(kernel) : NULL;
    if (known) {
        known->bytes[index] = value ? bytes : 0; /* local memory is no argument */
        known->memory[index] = NULL;
        if (value && bytes == sizeof(cl_mem))
            memcpy(&known->memory[index], value, bytes);
    }
    pthread_mutex_unlock(&lock);
    return error;
}

static cl_int use_arguments(cl_kernel kernel, const char *name)
{
    size_t bytes = 0;
    cl_int error = CL_SUCCESS;
    if (!odd[ODD_ARGUMENTS].is_on && !odd[ODD_LAZY].is_on)
        return CL_SUCCESS;
    pthread_mutex_lock(&lock);
    known_kernel known = *find(kernel);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < MAX_ARGUMENTS && error == CL_SUCCESS; i++) {
        bytes += known.bytes[i];
        error = known.memory[i] ? odd_use_memory(known.memory[i]) : CL_SUCCESS;
    }
    if (odd[ODD_ARGUMENTS].is_on && bytes > odd[ODD_ARGUMENTS].number)
        return odd_refuse(CL_OUT_OF_RESOURCES, "%s has arguments of %zu bytes", name, bytes);
    return error;
}

/* A size that the kernel requires is one that it can have: the compiler has seen to that. */
static bool requires_size(cl_kernel kernel, cl_device_id device)
{
    size_t size[3] = {0};
    below->clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof size, size, NULL);
    return size[0] != 0;
}

static cl_int CL_API_CALL get_work_group_info(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what,
                                              size_t size, void *to, size_t *size_ret)
{
    const size_t most = odd[ODD_GROUP].number;
    if (what == CL_KERNEL_WORK_GROUP_SIZE && odd[ODD_GROUP].is_on && !requires_size(kernel, device))
        return answer(&most, sizeof most, size, to, size_ret);
    return below->clGetKernelWorkGroupInfo(kernel, device, what, size, to, size_ret);
}

static cl_int judge_groups(cl_kernel kernel, cl_device_id device, const char *name, cl_uint dims, const size_t *global,
                           const size_t *local)
{
    static const size_t most[] = {1024, 1024, 64};
    size_t items = 1;
    for (cl_uint i = 0; i < dims; i++) {
        const size_t unit = local ? local[i] : 1;
        items *= unit;
        if (i > 0 && odd[ODD_DIMS].is_on && global[i] / unit > odd[ODD_DIMS].number)
            return odd_refuse(CL_INVALID_GLOBAL_WORK_SIZE, "%s has %zu groups in dimension %u", name, global[i] / unit,
                              i);
        if (odd[ODD_STRICT].is_on && global[i] == 0)
            return odd_refuse(CL_INVALID_GLOBAL_WORK_SIZE, "%s has no work", name);
        if (odd[ODD_STRICT].is_on && global[i] % unit != 0)
            return odd_refuse(CL_INVALID_WORK_GROUP_SIZE, "%s has %zu work-items in groups of %zu", name, global[i],
                              unit);
        if (odd[ODD_STRICT].is_on && unit > most[i])
            return odd_refuse(CL_INVALID_WORK_ITEM_SIZE, "%s has groups of %zu in dimension %u", name, unit, i);
    }
    if (odd[ODD_STRICT].is_on && items > 1024)
        return odd_refuse(CL_INVALID_WORK_GROUP_SIZE, "%s has groups of %zu", name, items);
    if (odd[ODD_GROUP].is_on && items > odd[ODD_GROUP].number && !requires_size(kernel, device))
        return odd_refuse(CL_INVALID_WORK_GROUP_SIZE, "%s has groups of %zu", name, items);
    return CL_SUCCESS;
}

static cl_int judge_local(cl_kernel kernel, cl_device_id device, const char *name)
{
    cl_ulong bytes = 0;
    below->clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof bytes, &bytes, NULL);
    if (odd[ODD_LOCAL].is_on && bytes > odd[ODD_LOCAL].number << 10)
        return odd_refuse(CL_OUT_OF_RESOURCES, "%s uses %zu bytes of local memory", name, (size_t)bytes);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset,
                                         const size_t *global, const size_t *local, cl_uint waits, const cl_event *list,
                                         cl_event *event)
{
    char name[256] = "";
    cl_device_id device = odd_device_of(queue);
    below->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name - 1, name, NULL);
    cl_int error = judge_groups(kernel, device, name, dims, global, local);
    if (error == CL_SUCCESS)
        error = judge_local(kernel, device, name);
    if (error == CL_SUCCESS)
        error = use_arguments(kernel, name);
    if (error == CL_SUCCESS)
        error = below->clEnqueueNDRangeKernel(queue, kernel, dims, offset, global, local, waits, list, event);
    odd_count_launch(name);
    return error;
}

void odd_install_launches(void)
{
    ours.clReleaseKernel = release_kernel;
    ours.clSetKernelArg = set_argument;
    ours.clGetKernelWorkGroupInfo = get_work_group_info;
    ours.clEnqueueNDRangeKernel = enqueue_kernel;
}
