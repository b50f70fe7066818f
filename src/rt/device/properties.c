/* rt/device/properties.c - kn_device_properties beyond the limits. Each vendor has its own query for PCI addresses and
 * warp sizes; which one is used depends on the extension, not on the vendor's name. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "rt/device/query.h"

/* From cl_ext.h; named here because older headers lack them. */
#define PCI_BUS_INFO_KHR 0x410F
#define DEVICE_UUID_KHR 0x106A
#define PREFERRED_WORK_GROUP_SIZE_MULTIPLE 0x1067
#define NV_WARP_SIZE 0x4003
#define NV_PCI_BUS_ID 0x4008
#define NV_PCI_SLOT_ID 0x4009
#define NV_PCI_DOMAIN_ID 0x400A
#define AMD_TOPOLOGY 0x4037
#define AMD_WAVEFRONT_WIDTH 0x4043

/* --- queries ---------------------------------------------------------------------------------- */

static char nothing[] = "";

static void note(kn_query *query, cl_int error, const char *name)
{
    if (error == CL_SUCCESS || query->error != CL_SUCCESS)
        return;
    query->error = error;
    query->failed = name;
}

char *kn_ask_string(kn_query *query, cl_device_info what, const char *name)
{
    size_t size = 0;
    cl_int error = clGetDeviceInfo(query->id, what, 0, NULL, &size);
    char *text = error == CL_SUCCESS && size > 0 ? kn_calloc(1, size + 1) : NULL;
    if (text)
        error = clGetDeviceInfo(query->id, what, size, text, NULL);
    else if (error == CL_SUCCESS && size > 0)
        error = CL_OUT_OF_HOST_MEMORY;
    note(query, error, name);
    if (error == CL_SUCCESS && text)
        return text;
    kn_free(text);
    return nothing;
}

void kn_query_free(const char *text)
{
    if (text != nothing)
        kn_free((char *)(uintptr_t)text);
}

static uint64_t ask_number(cl_device_id id, cl_device_info what, cl_int *error)
{
    union {
        uint64_t u64;
        cl_uint u32;
    } value = {0};
    size_t size = 0;
    *error = clGetDeviceInfo(id, what, sizeof value, &value, &size);
    if (*error != CL_SUCCESS)
        return 0;
    return size == sizeof value.u32 ? value.u32 : value.u64;
}

uint64_t kn_ask_number(kn_query *query, cl_device_info what, const char *name, bool if_known)
{
    cl_int error;
    uint64_t number = ask_number(query->id, what, &error);
    note(query, if_known && error == CL_INVALID_VALUE ? CL_SUCCESS : error, name);
    return number;
}

void kn_ask_bytes(kn_query *query, cl_device_info what, size_t size, void *to, const char *name)
{
    memset(to, 0, size);
    cl_int error = clGetDeviceInfo(query->id, what, size, to, NULL);
    if (error != CL_SUCCESS)
        memset(to, 0, size);
    note(query, error, name);
}

/* --- the PCI address -------------------------------------------------------------------------- */

typedef struct pci_address {
    unsigned domain, bus, device, function;
} pci_address;

static bool khr_address(const kn_device *device, pci_address *address)
{
    cl_uint info[4] = {0}; /* cl_device_pci_bus_info_khr: domain, bus, device, function */
    size_t size = 0;
    if (!kn_has_word(device->extensions, "cl_khr_pci_bus_info") ||
        clGetDeviceInfo(device->id, PCI_BUS_INFO_KHR, sizeof info, info, &size) != CL_SUCCESS || size < sizeof info)
        return false;
    *address = (pci_address){info[0], info[1], info[2], info[3]};
    return true;
}

static bool nv_address(const kn_device *device, pci_address *address)
{
    if (!kn_has_word(device->extensions, "cl_nv_device_attribute_query"))
        return false;
    cl_uint bus = 0, slot = 0;
    cl_int domain_error;
    if (clGetDeviceInfo(device->id, NV_PCI_BUS_ID, sizeof bus, &bus, NULL) != CL_SUCCESS ||
        clGetDeviceInfo(device->id, NV_PCI_SLOT_ID, sizeof slot, &slot, NULL) != CL_SUCCESS)
        return false;
    /* the slot holds device and function as PCI configuration space numbers them */
    *address =
        (pci_address){(unsigned)ask_number(device->id, NV_PCI_DOMAIN_ID, &domain_error), bus, slot >> 3, slot & 7};
    return true;
}

static bool amd_address(const kn_device *device, pci_address *address)
{
    unsigned char topology[24] = {0}; /* a uint that says PCIe (1), 17 unused bytes, bus, device, function */
    cl_uint type = 0;
    if (!kn_has_word(device->extensions, "cl_amd_device_attribute_query") ||
        clGetDeviceInfo(device->id, AMD_TOPOLOGY, sizeof topology, topology, NULL) != CL_SUCCESS)
        return false;
    memcpy(&type, topology, sizeof type);
    if (type != 1)
        return false;
    *address = (pci_address){0, topology[21], topology[22], topology[23]};
    return true;
}

static const char *keep(kn_query *query, const char *text, const char *name)
{
    char *kept = kn_strdup(text);
    if (!kept)
        note(query, CL_OUT_OF_HOST_MEMORY, name);
    return kept ? kept : nothing;
}

static const char *query_pci_address(kn_query *query, const kn_device *device)
{
    pci_address a;
    if (!khr_address(device, &a) && !nv_address(device, &a) && !amd_address(device, &a))
        return nothing;
    char text[32];
    snprintf(text, sizeof text, "%04x:%02x:%02x.%x", a.domain, a.bus, a.device, a.function);
    return keep(query, text, "PCI address");
}

/* --- the rest --------------------------------------------------------------------------------- */

static const char *query_uuid(kn_query *query, const kn_device *device)
{
    unsigned char u[16] = {0};
    size_t size = 0;
    if (!kn_has_word(device->extensions, "cl_khr_device_uuid") ||
        clGetDeviceInfo(device->id, DEVICE_UUID_KHR, sizeof u, u, &size) != CL_SUCCESS || size != sizeof u)
        return nothing;
    char text[40];
    snprintf(text, sizeof text, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
             u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
    return keep(query, text, "UUID");
}

/* 0 on CPU devices: their work-items run one after another. */
static int query_warp_size(kn_query *query, const kn_device *device)
{
    if (device->limits.is_cpu)
        return 0;
    if (kn_has_word(device->extensions, "cl_nv_device_attribute_query"))
        return (int)kn_query_number(query, NV_WARP_SIZE);
    if (kn_has_word(device->extensions, "cl_amd_device_attribute_query"))
        return (int)kn_query_number(query, AMD_WAVEFRONT_WIDTH);
    if (device->limits.opencl_version < 300)
        return 0;
    return (int)kn_query_number(query, PREFERRED_WORK_GROUP_SIZE_MULTIPLE);
}

static void query_work_items(kn_query *query, int sizes[3])
{
    size_t reported[8] = {0};
    uint64_t dims = kn_query_number(query, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS);
    if (dims >= 3 && dims <= 8)
        kn_query_bytes(query, CL_DEVICE_MAX_WORK_ITEM_SIZES, (size_t)dims * sizeof reported[0], reported);
    for (int i = 0; i < 3; i++)
        sizes[i] = (int)reported[i];
}

void kn_query_properties(kn_query *query, kn_device *device)
{
    const kn_limits *limits = &device->limits;
    kn_device_properties *p = &device->properties;
    p->type = limits->is_gpu ? KN_DEVICE_GPU : limits->is_cpu ? KN_DEVICE_CPU : KN_DEVICE_ACCELERATOR;
    p->total_memory = limits->global_memory;
    p->max_allocation = limits->max_allocation;
    p->local_memory = limits->local_memory;
    p->multi_processor_count = limits->compute_units;
    p->clock_mhz = limits->clock_mhz;
    p->max_work_group_size = (int)limits->max_work_group_size;
    p->vector_width = limits->vector_width_f32;
    p->has_f64 = limits->has_f64;
    p->has_f16 = limits->has_f16;
    p->has_subgroups = limits->has_subgroups;
    p->unified_memory = limits->unified_memory;
    p->constant_memory = kn_query_number(query, CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE);
    p->global_cache = limits->global_cache;
    p->cache_line = (int)kn_query_number(query, CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE);
    p->memory_align = (int)device->limits.address_align;
    query_work_items(query, p->max_work_items);
    p->warp_size = query_warp_size(query, device);
    p->capability_major = device->limits.capability_major;
    p->capability_minor = device->limits.capability_minor;
    p->error_correction = kn_query_number(query, CL_DEVICE_ERROR_CORRECTION_SUPPORT) != 0;
    p->vendor_id = (uint32_t)kn_query_number(query, CL_DEVICE_VENDOR_ID);
    p->pci_address = query_pci_address(query, device);
    p->uuid = query_uuid(query, device);
}
