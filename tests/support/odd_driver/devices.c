/* support/odd_driver/devices.c - odd platforms and devices. */
#include "support/odd_driver/odd.h"

static cl_platform_id real_platform;
static cl_device_id second; /* of the real platform */

/* A platform of our own: the loader finds its functions in an object's first member. */
static struct {
    struct _cl_icd_dispatch *dispatch;
} copy_platform;
#define COPY_PLATFORM ((cl_platform_id)(void *)&copy_platform)

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
    if (odd[ODD_COPY].is_on)
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
    if (!odd[ODD_COPY].is_on)
        return below->clGetDeviceIDs(real_platform, type, room, devices, count_ret);
    if (devices && room > 0)
        devices[0] = found[platform == COPY_PLATFORM];
    if (count_ret)
        *count_ret = 1;
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
    cl_int error;
    if (odd_answer_limit(device, what, size, to, size_ret, &error))
        return error;
    if (odd[ODD_COPY].is_on)
        return answer_copy(device, what, size, to, size_ret);
    if (odd[ODD_UNLIKE].is_on)
        return answer_unlike(device, what, size, to, size_ret);
    if (device != second)
        return below->clGetDeviceInfo(device, what, size, to, size_ret);
    if (what == CL_DEVICE_VERSION && odd[ODD_OLD].is_on)
        return answer_text("OpenCL 1.1 Mesa", size, to, size_ret);
    if ((what == CL_DEVICE_AVAILABLE && odd[ODD_UNAVAILABLE].is_on) ||
        (what == CL_DEVICE_COMPILER_AVAILABLE && odd[ODD_NO_COMPILER].is_on))
        return answer_number(CL_FALSE, size, to, size_ret);
    return below->clGetDeviceInfo(device, what, size, to, size_ret);
}

/* --- the layer ---------------------------------------------------------------------------------------------------- */

void odd_install_devices(void)
{
    ours.clGetPlatformIDs = get_platforms;
    ours.clGetPlatformInfo = get_platform_info;
    ours.clGetDeviceIDs = get_devices;
    ours.clGetDeviceInfo = get_device_info;
    ours.clCreateContext = create_context;
    copy_platform.dispatch = &ours;
}
