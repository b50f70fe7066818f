/* watch/usage/usage.c - chooses the source of a device's figures, and returns single ones under torch.cuda's names. */
#include "watch/usage/usage.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/load.h"
#include "base/system.h"
#include "base/text.h"
#include "rt/memory/reported.h"

const char *kn_usage_root(void)
{
    const char *root = kn_trusted_environment("KOINE_DOCTOR_ROOT");
    return root ? root : "";
}

kn_status kn_device_usage(const kn_device *device, kn_usage *usage)
{
    kn_device_properties p;
    const char *root = kn_usage_root();
    if (!device || !usage)
        return kn_fail_argument_null("kn_device_usage", device ? "usage" : "device");
    if (kn_device_is_host(device))
        return kn_fail(KN_ERR_DEVICE,
                       "kn_device_usage: the host is not an OpenCL device; use a CPU device for its figures");
    KN_TRY(kn_device_get_properties(device, &p));
    kn_usage_clear(usage);
    if (p.type == KN_DEVICE_CPU)
        kn_usage_from_host(usage, root);
    else if (!kn_usage_from_nvml(usage, p.pci_address, p.uuid, root) && kn_usage_from_sysfs(usage, p.pci_address, root))
        kn_usage_drm_processes(usage, p.pci_address, root);
    if (usage->memory_total < 0)
        usage->memory_total = (int64_t)p.total_memory;
    return KN_OK;
}

/* For kn_mem_get_info. Not the figures of other memory: all of a GPU's of which the device is a part (MIG), or the
 * reserved part of the host's memory that an integrated GPU has. */
static bool free_memory(const kn_device *device, uint64_t *free_bytes)
{
    kn_device_properties p;
    kn_usage usage;
    if (kn_device_get_type(device) != KN_DEVICE_GPU || kn_device_get_properties(device, &p) != KN_OK)
        return false;
    kn_usage_clear(&usage);
    if (!kn_usage_memory_from_nvml(&usage, p.pci_address, p.uuid) &&
        !kn_usage_memory_from_sysfs(&usage, p.pci_address, kn_usage_root()))
        return false;
    const double share = (double)usage.memory_total / (double)kn_device_limits(device)->global_memory;
    if (!(share > 0.75 && share < 1.25))
        return false;
    *free_bytes = usage.memory_total > usage.memory_used ? (uint64_t)(usage.memory_total - usage.memory_used) : 0;
    return true;
}

KN_AT_LOAD register_free_memory(void) { kn_memory_reported_free = free_memory; }

/* Single figures: reads everything, which costs little more. */
static kn_usage read_all(const kn_device *device)
{
    kn_usage usage;
    kn_usage_clear(&usage);
    kn_device_usage(device, &usage);
    return usage;
}

double kn_utilization(const kn_device *device) { return read_all(device).load; }
double kn_memory_usage(const kn_device *device) { return read_all(device).memory_load; }
double kn_temperature(const kn_device *device) { return read_all(device).temperature; }
double kn_power_draw(const kn_device *device) { return read_all(device).power * 1000; }
double kn_clock_rate(const kn_device *device) { return read_all(device).clock; }
int64_t kn_device_memory_used(const kn_device *device) { return read_all(device).memory_used; }

char *kn_list_gpu_processes(const kn_device *device)
{
    kn_usage usage;
    if (kn_device_usage(device, &usage) != KN_OK)
        return NULL;
    kn_text text = {0};
    kn_text_format(&text, "%s\n", kn_device_string(device));
    if (usage.num_processes < 0)
        kn_text_append(&text, "the driver does not tell which processes use it\n");
    else if (usage.num_processes == 0)
        kn_text_append(&text, "no processes are running\n");
    for (int i = 0; i < usage.num_processes && i < KN_USAGE_MAX_PROCESSES; i++) {
        const kn_device_process *process = &usage.processes[i];
        kn_text_format(&text, "process %10" PRId64 " uses ", process->pid);
        if (process->memory_used >= 0)
            kn_text_format(&text, "%12.3f MB GPU memory", (double)process->memory_used / (1024 * 1024));
        else
            kn_text_append(&text, "GPU memory that the driver does not tell");
        if (*process->name)
            kn_text_format(&text, " (%s)", process->name);
        kn_text_append(&text, "\n");
    }
    return kn_text_finish(&text);
}
