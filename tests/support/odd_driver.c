/* support/odd_driver.c - an OpenCL layer (OPENCL_LAYERS) that does what real drivers have done. ODD_DRIVER names the
 * oddities, separated by commas; those of enumeration concern the second device:
 *
 *   old, unavailable, no-compiler  has OpenCL 1.1; cannot be used now; cannot compile
 *   copy                           is the first device, a GPU, once more, under a platform called rusticl
 *   unlike                         is a GeForce RTX 4090 (128 multiprocessors), the first an Arc A770 (512 units)
 *
 *   fill                           fills of 2 GiB and more fail
 *   dims                           launches of more than 65535 work-groups, or as many as ODD_DRIVER_GROUPS says, in
 *                                  dimension 1 or 2 fail
 *
 * Kernels run on the actual device. */
#include "support/layer.h"

#include <stdbool.h>
#include <stdlib.h>

static cl_platform_id real_platform;
static cl_device_id second; /* of the real platform */

/* A platform of our own: the loader finds its functions in an object's first member. */
static struct {
    struct _cl_icd_dispatch *dispatch;
} copy_platform;
#define COPY_PLATFORM ((cl_platform_id)(void *)&copy_platform)

static bool is_on(const char *oddity)
{
    const char *list = getenv("ODD_DRIVER");
    const size_t length = strlen(oddity);
    for (const char *at = list ? strstr(list, oddity) : NULL; at; at = strstr(at + 1, oddity))
        if ((at == list || at[-1] == ',') && (at[length] == '\0' || at[length] == ','))
            return true;
    return false;
}

/* --- platforms ---------------------------------------------------------------------------------------------------- */

static cl_int CL_API_CALL get_platforms(cl_uint room, cl_platform_id *platforms, cl_uint *count_ret)
{
    cl_platform_id found[2];
    cl_uint count = 0;
    cl_int error = below->clGetPlatformIDs(1, found, &count);
    if (error != CL_SUCCESS)
        return error;
    real_platform = found[0];
    count = 1;
    if (is_on("copy"))
        found[count++] = COPY_PLATFORM;
    for (cl_uint i = 0; platforms && i < count && i < room; i++)
        platforms[i] = found[i];
    if (count_ret)
        *count_ret = count;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL get_platform_info(cl_platform_id platform, cl_platform_info what, size_t size, void *to,
                                            size_t *size_ret)
{
    if (platform != COPY_PLATFORM)
        return below->clGetPlatformInfo(platform, what, size, to, size_ret);
    return what == CL_PLATFORM_NAME ? answer_text("rusticl", size, to, size_ret)
                                    : below->clGetPlatformInfo(real_platform, what, size, to, size_ret);
}

static cl_int CL_API_CALL get_devices(cl_platform_id platform, cl_device_type type, cl_uint room, cl_device_id *devices,
                                      cl_uint *count_ret)
{
    cl_device_id found[2] = {NULL, NULL};
    cl_uint count = 0;
    cl_int error = below->clGetDeviceIDs(real_platform, type, 2, found, &count);
    if (error != CL_SUCCESS)
        return error;
    second = found[1];
    const bool all = !is_on("copy");
    const cl_device_id *first = found + (platform == COPY_PLATFORM);
    count = all && count > 1 ? 2 : 1;
    for (cl_uint i = 0; devices && i < count && i < room; i++)
        devices[i] = first[i];
    if (count_ret)
        *count_ret = count;
    return CL_SUCCESS;
}

static cl_context CL_API_CALL create_context(const cl_context_properties *properties, cl_uint count,
                                             const cl_device_id *devices,
                                             void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
                                             void *user, cl_int *error)
{
    const cl_context_properties real[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)real_platform, 0};
    return below->clCreateContext(properties ? real : NULL, count, devices, notify, user, error);
}

/* --- devices ------------------------------------------------------------------------------------------------------ */

static cl_int answer_copy(cl_device_id device, cl_device_info what, size_t size, void *to, size_t *size_ret)
{
    static const cl_uint address[4] = {0, 0x65, 0, 0};
    static const cl_device_type gpu = CL_DEVICE_TYPE_GPU;
    char text[8192] = "cl_khr_pci_bus_info ";
    switch (what) {
    case CL_DEVICE_TYPE:
        return answer(&gpu, sizeof gpu, size, to, size_ret);
    case CL_DEVICE_EXTENSIONS:
        below->clGetDeviceInfo(device, what, sizeof text - strlen(text), text + strlen(text), NULL);
        return answer_text(text, size, to, size_ret);
    case 0x410F: /* CL_DEVICE_PCI_BUS_INFO_KHR */
        return answer(address, sizeof address, size, to, size_ret);
    default:
        return below->clGetDeviceInfo(device, what, size, to, size_ret);
    }
}

static cl_int answer_unlike(cl_device_id device, cl_device_info what, size_t size, void *to, size_t *size_ret)
{
    static const cl_device_type gpu = CL_DEVICE_TYPE_GPU;
    const bool arc = device != second;
    char text[8192] = "";
    switch (what) {
    case CL_DEVICE_TYPE:
        return answer(&gpu, sizeof gpu, size, to, size_ret);
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
        return answer_number(CL_FALSE, size, to, size_ret);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
        return answer_number(arc ? 512 : 128, size, to, size_ret);
    case CL_DEVICE_MAX_CLOCK_FREQUENCY:
        return answer_number(arc ? 2400 : 2520, size, to, size_ret);
    case CL_DEVICE_EXTENSIONS:
        strcpy(text, arc ? "cl_intel_device_attribute_query " : "cl_nv_device_attribute_query ");
        below->clGetDeviceInfo(device, what, sizeof text - strlen(text), text + strlen(text), NULL);
        return answer_text(text, size, to, size_ret);
    case 0x4000: /* compute capability 8.9 */
        return answer_number(8, size, to, size_ret);
    case 0x4001:
        return answer_number(9, size, to, size_ret);
    case 0x4003: /* warp */
        return answer_number(32, size, to, size_ret);
    default:
        return below->clGetDeviceInfo(device, what, size, to, size_ret);
    }
}

static cl_int CL_API_CALL get_device_info(cl_device_id device, cl_device_info what, size_t size, void *to,
                                          size_t *size_ret)
{
    if (is_on("copy"))
        return answer_copy(device, what, size, to, size_ret);
    if (is_on("unlike"))
        return answer_unlike(device, what, size, to, size_ret);
    if (device != second)
        return below->clGetDeviceInfo(device, what, size, to, size_ret);
    if (what == CL_DEVICE_VERSION && is_on("old"))
        return answer_text("OpenCL 1.1 Mesa", size, to, size_ret);
    if ((what == CL_DEVICE_AVAILABLE && is_on("unavailable")) ||
        (what == CL_DEVICE_COMPILER_AVAILABLE && is_on("no-compiler")))
        return answer_number(CL_FALSE, size, to, size_ret);
    return below->clGetDeviceInfo(device, what, size, to, size_ret);
}

/* --- commands ----------------------------------------------------------------------------------------------------- */

static cl_int CL_API_CALL enqueue_fill(cl_command_queue queue, cl_mem memory, const void *pattern, size_t pattern_bytes,
                                       size_t offset, size_t bytes, cl_uint waits, const cl_event *list,
                                       cl_event *event)
{
    if (is_on("fill") && bytes >= (size_t)1 << 31)
        return CL_OUT_OF_RESOURCES;
    return below->clEnqueueFillBuffer(queue, memory, pattern, pattern_bytes, offset, bytes, waits, list, event);
}

static cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset,
                                         const size_t *global, const size_t *local, cl_uint waits, const cl_event *list,
                                         cl_event *event)
{
    const char *most = getenv("ODD_DRIVER_GROUPS");
    for (cl_uint i = 1; i < dims && is_on("dims"); i++)
        if (global[i] / (local ? local[i] : 1) > (most ? strtoul(most, NULL, 10) : 65535))
            return CL_INVALID_GLOBAL_WORK_SIZE;
    return below->clEnqueueNDRangeKernel(queue, kernel, dims, offset, global, local, waits, list, event);
}

/* --- the layer ---------------------------------------------------------------------------------------------------- */

static void install(void)
{
    ours.clGetPlatformIDs = get_platforms;
    ours.clGetPlatformInfo = get_platform_info;
    ours.clGetDeviceIDs = get_devices;
    ours.clGetDeviceInfo = get_device_info;
    ours.clCreateContext = create_context;
    ours.clEnqueueFillBuffer = enqueue_fill;
    ours.clEnqueueNDRangeKernel = enqueue_kernel;
    copy_platform.dispatch = &ours;
}

LAYER("odd_driver", install)
