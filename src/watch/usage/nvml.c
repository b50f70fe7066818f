/* watch/usage/nvml.c - NVIDIA's management library, loaded if available. The prototypes are its documented interface
 * ("NVML API Reference Guide"); names ending in _v2 or _v3 are what its header's plain names stand for. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/system.h"
#include "base/threads.h"
#include "watch/usage/usage.h"

enum { NVML_SUCCESS = 0, NVML_INSUFFICIENT_SIZE = 7, NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2, NVML_SENSOR_GPU = 0 };
#define NVML_NOT_AVAILABLE UINT64_MAX /* of a process's memory */

typedef struct nvml_device *nvml_handle;
typedef struct nvml_memory {
    unsigned long long total, free, used;
} nvml_memory;
typedef struct nvml_load {
    unsigned gpu, memory;
} nvml_load;
typedef struct nvml_process { /* of ..._v2 and _v3 */
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
} nvml_process;

/* Functions that a library may lack are NULL there. */
static struct {
    pthread_once_t once;
    bool works;
    int (*init)(void);
    int (*by_address)(const char *, nvml_handle *);
    int (*by_uuid)(const char *, nvml_handle *);
    int (*memory)(nvml_handle, nvml_memory *);
    int (*load)(nvml_handle, nvml_load *);
    int (*temperature)(nvml_handle, int, unsigned *);
    int (*power)(nvml_handle, unsigned *);
    int (*power_limit)(nvml_handle, unsigned *);
    int (*clock)(nvml_handle, int, unsigned *);
    int (*fan)(nvml_handle, unsigned *);
    int (*compute_processes)(nvml_handle, unsigned *, nvml_process *);
    int (*graphics_processes)(nvml_handle, unsigned *, nvml_process *);
    int (*process_name)(unsigned, char *, unsigned);
} nvml = {.once = PTHREAD_ONCE_INIT};

/* ISO C has no conversion from an object's pointer to a function's; POSIX promises that the bits are the same. */
static void find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
}

/* The library stays loaded: other code of the process may use it, and unloading it at exit races with that. */
static void load_library(void)
{
    const char *wanted = kn_trusted_environment("KOINE_NVML_LIBRARY");
    const char *name = wanted && *wanted ? wanted : "libnvidia-ml.so.1";
    void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        kn_log_message(wanted ? KN_LOG_WARNING : KN_LOG_DEBUG, "NVML is not there: %s", dlerror());
        return;
    }
    find(library, "nvmlInit_v2", &nvml.init);
    find(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml.by_address);
    find(library, "nvmlDeviceGetHandleByUUID", &nvml.by_uuid);
    find(library, "nvmlDeviceGetMemoryInfo", &nvml.memory);
    find(library, "nvmlDeviceGetUtilizationRates", &nvml.load);
    find(library, "nvmlDeviceGetTemperature", &nvml.temperature);
    find(library, "nvmlDeviceGetPowerUsage", &nvml.power);
    find(library, "nvmlDeviceGetEnforcedPowerLimit", &nvml.power_limit);
    find(library, "nvmlDeviceGetClockInfo", &nvml.clock);
    find(library, "nvmlDeviceGetFanSpeed", &nvml.fan);
    find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml.compute_processes);
    find(library, "nvmlDeviceGetGraphicsRunningProcesses_v3", &nvml.graphics_processes);
    find(library, "nvmlSystemGetProcessName", &nvml.process_name);
    int error = nvml.init ? nvml.init() : -1;
    nvml.works = error == NVML_SUCCESS;
    if (!nvml.works)
        kn_log_message(KN_LOG_INFO, "NVML does not start: error %d", error);
}

static bool find_device(nvml_handle *device, const char *pci_address, const char *uuid)
{
    pthread_once(&nvml.once, load_library);
    if (!nvml.works)
        return false;
    if (*pci_address && nvml.by_address && nvml.by_address(pci_address, device) == NVML_SUCCESS)
        return true;
    char name[64];
    snprintf(name, sizeof name, "GPU-%s", uuid);
    return *uuid && nvml.by_uuid && nvml.by_uuid(name, device) == NVML_SUCCESS;
}

static void add_process(kn_usage *usage, const nvml_process *process, const char *root)
{
    char path[256] = "", comm[64];
    if (!nvml.process_name || nvml.process_name(process->pid, path, sizeof path) != NVML_SUCCESS)
        path[0] = '\0';
    const char *slash = strrchr(path, '/');
    kn_usage_process_name(comm, root, process->pid);
    kn_usage_add_process(usage, process->pid, process->used == NVML_NOT_AVAILABLE ? -1 : (int64_t)process->used,
                         *path ? (slash ? slash + 1 : path) : comm);
}

/* Adds the processes of one of the two lists, if available. */
static void add_processes(kn_usage *usage, nvml_handle device, int (*list)(nvml_handle, unsigned *, nvml_process *),
                          const char *root)
{
    nvml_process few[KN_USAGE_MAX_PROCESSES], *processes = few;
    unsigned count = KN_USAGE_MAX_PROCESSES;
    int error = list ? list(device, &count, few) : -1;
    if (error == NVML_INSUFFICIENT_SIZE) { /* `count` is how many there are; others may start meanwhile */
        count += KN_USAGE_MAX_PROCESSES;
        processes = kn_malloc(count * sizeof *processes);
        error = processes ? list(device, &count, processes) : -1;
    }
    if (error == NVML_SUCCESS && usage->num_processes < 0)
        usage->num_processes = 0;
    for (unsigned i = 0; error == NVML_SUCCESS && i < count; i++)
        add_process(usage, &processes[i], root);
    if (processes != few)
        kn_free(processes);
}

static bool read_memory(kn_usage *usage, nvml_handle device)
{
    nvml_memory memory;
    if (!nvml.memory || nvml.memory(device, &memory) != NVML_SUCCESS)
        return false;
    usage->memory_used = (int64_t)memory.used;
    usage->memory_total = (int64_t)memory.total;
    return true;
}

static void read_figures(kn_usage *usage, nvml_handle device)
{
    nvml_load load;
    unsigned number;
    read_memory(usage, device);
    if (nvml.load && nvml.load(device, &load) == NVML_SUCCESS) {
        usage->load = load.gpu;
        usage->memory_load = load.memory;
    }
    if (nvml.temperature && nvml.temperature(device, NVML_SENSOR_GPU, &number) == NVML_SUCCESS)
        usage->temperature = number;
    if (nvml.power && nvml.power(device, &number) == NVML_SUCCESS)
        usage->power = number * 1e-3;
    if (nvml.power_limit && nvml.power_limit(device, &number) == NVML_SUCCESS)
        usage->power_limit = number * 1e-3;
    if (nvml.clock && nvml.clock(device, NVML_CLOCK_SM, &number) == NVML_SUCCESS)
        usage->clock = number;
    if (nvml.clock && nvml.clock(device, NVML_CLOCK_MEMORY, &number) == NVML_SUCCESS)
        usage->memory_clock = number;
    if (nvml.fan && nvml.fan(device, &number) == NVML_SUCCESS)
        usage->fan = number;
}

bool kn_usage_memory_from_nvml(kn_usage *usage, const char *pci_address, const char *uuid)
{
    nvml_handle device;
    return find_device(&device, pci_address, uuid) && read_memory(usage, device);
}

bool kn_usage_from_nvml(kn_usage *usage, const char *pci_address, const char *uuid, const char *root)
{
    nvml_handle device;
    if (!find_device(&device, pci_address, uuid))
        return false;
    read_figures(usage, device);
    add_processes(usage, device, nvml.compute_processes, root);
    add_processes(usage, device, nvml.graphics_processes, root);
    kn_usage_sort_processes(usage);
    usage->source = "NVML";
    return true;
}
