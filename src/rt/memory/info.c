/* rt/memory/info.c - a device's total and free memory, and this process's limit. */
#include <koine/memory.h>
#include <string.h>

#include "base/error.h"
#include "rt/device/device_struct.h"
#include "rt/memory/pool.h"
#include "rt/stream/wait.h"

bool (*kn_memory_reported_free)(const kn_device *device, uint64_t *free_bytes);

/* Free memory according to the OpenCL driver, which may not know other processes'; false if it does not report it.
 * AMD's drivers answer CL_DEVICE_GLOBAL_FREE_MEMORY_AMD (cl_amd_device_attribute_query) with the free KiB in total and
 * in the largest piece. Core OpenCL has no such query. */
static bool driver_free_memory(const kn_device *device, uint64_t *free_bytes)
{
    const cl_device_info global_free_memory_amd = 0x4039;
    size_t kib[2] = {0, 0}, length = 0;
    if (!device->extensions || !strstr(device->extensions, "cl_amd_device_attribute_query"))
        return false;
    if (clGetDeviceInfo(device->id, global_free_memory_amd, sizeof kib, kib, &length) != CL_SUCCESS ||
        length < sizeof kib[0])
        return false;
    *free_bytes = (uint64_t)kib[0] * 1024;
    return true;
}

kn_status kn_mem_get_info(kn_device *device, uint64_t *free_bytes, uint64_t *total_bytes)
{
    if (!device || !free_bytes || !total_bytes)
        return kn_fail_argument_null("kn_mem_get_info", device ? "free_bytes or total_bytes" : "device");
    kn_pool_figures figures = kn_pool_read_figures(device);
    uint64_t reserved = (uint64_t)figures.stats[KN_STAT_RESERVED_BYTES][KN_PART_ALL].current;
    uint64_t total = kn_pool_total(device), left = total > reserved ? total - reserved : 0, reported;
    if (driver_free_memory(device, &reported) && reported < left)
        left = reported;
    if (kn_memory_reported_free && kn_memory_reported_free(device, &reported) && reported < left)
        left = reported; /* other processes use some */
    *total_bytes = total;
    *free_bytes = left;
    return KN_OK;
}

kn_status kn_set_per_process_memory_fraction(kn_device *device, double fraction)
{
    if (!device)
        return kn_fail_argument_null("kn_set_per_process_memory_fraction", "device");
    if (!(fraction > 0 && fraction <= 1)) /* NaN too */
        return kn_fail(KN_ERR_ARGUMENT,
                       "kn_set_per_process_memory_fraction: the fraction is %g; it must be above 0 and at most 1",
                       fraction);
    kn_lock(&device->pool->lock);
    device->pool->fraction = fraction;
    kn_unlock(&device->pool->lock);
    return KN_OK;
}

double kn_get_per_process_memory_fraction(kn_device *device)
{
    if (!device)
        return kn_fail_argument_null("kn_get_per_process_memory_fraction", "device"), 0;
    kn_lock(&device->pool->lock);
    double fraction = device->pool->fraction;
    kn_unlock(&device->pool->lock);
    return fraction;
}

kn_status kn_empty_cache(kn_device *device)
{
    if (!device)
        return kn_fail_argument_null("kn_empty_cache", "device");
    if (!atomic_load(&device->is_open))
        return KN_OK;
    kn_pinned_empty_cache(device);
    KN_TRY(kn_device_synchronize(device));
    kn_pool_empty_cache(device);
    return KN_OK;
}
