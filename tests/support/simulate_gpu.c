/* support/simulate_gpu.c - an OpenCL layer (OPENCL_LAYERS) that makes the devices of any driver look like discrete GPUs
 * on the PCI bus, to test queries that only GPUs answer without having one. SIMULATE_GPU selects whose queries they
 * answer: "khr" (cl_khr_pci_bus_info, cl_khr_device_uuid), "nv", "amd", "amd-p2p". The first device queried is at
 * 0000:65:00.0, the next at 0000:66:00.0. Kernels still run on the actual device. */
#include "support/layer.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_DEVICES 8
#define FIRST_BUS 0x65

static cl_device_id known[MAX_DEVICES];
static int num_known;

static unsigned bus_of(cl_device_id device)
{
    for (int i = 0; i < num_known; i++)
        if (known[i] == device)
            return FIRST_BUS + (unsigned)i;
    if (num_known < MAX_DEVICES)
        known[num_known++] = device;
    return FIRST_BUS + (unsigned)num_known - 1;
}

static cl_int answer_extensions(cl_device_id device, const char *more, size_t size, void *to, size_t *size_ret)
{
    char text[8192] = "";
    below->clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof text - 256, text, NULL);
    snprintf(text + strlen(text), 256, " %s", more);
    return answer(text, strlen(text) + 1, size, to, size_ret);
}

static cl_int answer_khr(cl_device_id device, cl_device_info what, size_t size, void *to, size_t *size_ret)
{
    cl_uint address[4] = {0, bus_of(device), 0, 0};
    unsigned char uuid[16] = {[15] = (unsigned char)bus_of(device)};
    switch (what) {
    case CL_DEVICE_EXTENSIONS:
        return answer_extensions(device, "cl_khr_pci_bus_info cl_khr_device_uuid", size, to, size_ret);
    case 0x410F: /* CL_DEVICE_PCI_BUS_INFO_KHR */
        return answer(address, sizeof address, size, to, size_ret);
    case 0x106A: /* CL_DEVICE_UUID_KHR */
        return answer(uuid, sizeof uuid, size, to, size_ret);
    default:
        return below->clGetDeviceInfo(device, what, size, to, size_ret);
    }
}

static cl_int answer_nv(cl_device_id device, cl_device_info what, size_t size, void *to, size_t *size_ret)
{
    switch (what) {
    case CL_DEVICE_EXTENSIONS:
        return answer_extensions(device, "cl_nv_device_attribute_query", size, to, size_ret);
    case 0x4000: /* compute capability */
        return answer_number(9, size, to, size_ret);
    case 0x4001:
        return answer_number(0, size, to, size_ret);
    case 0x4003: /* warp */
        return answer_number(32, size, to, size_ret);
    case 0x4008: /* bus, slot, domain */
        return answer_number(bus_of(device), size, to, size_ret);
    case 0x4009:
        return answer_number(2 << 3 | 1, size, to, size_ret);
    case 0x400A:
        return answer_number(1, size, to, size_ret);
    default:
        return below->clGetDeviceInfo(device, what, size, to, size_ret);
    }
}

static cl_int answer_amd(cl_device_id device, cl_device_info what, size_t size, void *to, size_t *size_ret)
{
    int p2p = strcmp(getenv("SIMULATE_GPU"), "amd-p2p") == 0;
    unsigned char topology[24] = {1, [21] = (unsigned char)bus_of(device)};
    cl_device_id peer = device == known[0] ? known[1] : known[0];
    switch (what) {
    case CL_DEVICE_EXTENSIONS:
        return answer_extensions(
            device, p2p ? "cl_amd_device_attribute_query cl_amd_copy_buffer_p2p" : "cl_amd_device_attribute_query",
            size, to, size_ret);
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
        return answer_number(0, size, to, size_ret);
    case 0x4037: /* topology */
        return answer(topology, sizeof topology, size, to, size_ret);
    case 0x4043: /* wavefront */
        return answer_number(64, size, to, size_ret);
    case 0x4088: /* peers */
        return answer_number(1, size, to, size_ret);
    case 0x4089:
        return answer(&peer, sizeof peer, size, to, size_ret);
    default:
        return below->clGetDeviceInfo(device, what, size, to, size_ret);
    }
}

static cl_int CL_API_CALL get_device_info(cl_device_id device, cl_device_info what, size_t size, void *to,
                                          size_t *size_ret)
{
    const char *kind = getenv("SIMULATE_GPU");
    cl_device_type gpu = CL_DEVICE_TYPE_GPU;
    bus_of(device);
    if (what == CL_DEVICE_TYPE)
        return answer(&gpu, sizeof gpu, size, to, size_ret);
    if (kind && strcmp(kind, "khr") == 0)
        return answer_khr(device, what, size, to, size_ret);
    if (kind && strcmp(kind, "nv") == 0)
        return answer_nv(device, what, size, to, size_ret);
    if (kind && strncmp(kind, "amd", 3) == 0)
        return answer_amd(device, what, size, to, size_ret);
    return below->clGetDeviceInfo(device, what, size, to, size_ret);
}

static void install(void) { ours.clGetDeviceInfo = get_device_info; }

LAYER("simulate_gpu", install)
