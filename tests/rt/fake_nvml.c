/* fake_nvml.c - an NVML with three devices, for test_usage.c and tests/cli/test_smi.c: one reports everything, another
 * only its memory, and the third has many processes. Functions are those of NVML's reference. */
#include <stdio.h>
#include <string.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, MANY = 70 };
enum { DEVICES = 3 };
typedef struct device {
    const char *address, *uuid;
    int reports_all, has_many;
} device;
typedef struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
} process;

static device devices[DEVICES] = {{"0000:65:00.0", "GPU-00000000-0000-0000-0000-000000000065", 1, 0},
                                  {"0000:66:00.0", "GPU-00000000-0000-0000-0000-000000000066", 0, 0},
                                  {"0000:67:00.0", "GPU-00000000-0000-0000-0000-000000000067", 1, 1}};

#define EXPORT __attribute__((visibility("default")))
EXPORT int nvmlInit_v2(void);
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *address, device **found);
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, device **found);
EXPORT int nvmlDeviceGetMemoryInfo(device *d, unsigned long long memory[3]);
EXPORT int nvmlDeviceGetUtilizationRates(device *d, unsigned rates[2]);
EXPORT int nvmlDeviceGetTemperature(device *d, int sensor, unsigned *value);
EXPORT int nvmlDeviceGetPowerUsage(device *d, unsigned *value);
EXPORT int nvmlDeviceGetEnforcedPowerLimit(device *d, unsigned *value);
EXPORT int nvmlDeviceGetClockInfo(device *d, int kind, unsigned *value);
EXPORT int nvmlDeviceGetFanSpeed(device *d, unsigned *value);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(device *d, unsigned *count, process *list);
EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(device *d, unsigned *count, process *list);
EXPORT int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned size);

int nvmlInit_v2(void) { return SUCCESS; }

int nvmlDeviceGetHandleByPciBusId_v2(const char *address, device **found)
{
    for (int i = 0; i < DEVICES; i++)
        if (strcmp(devices[i].address, address) == 0) {
            *found = &devices[i];
            return SUCCESS;
        }
    return NOT_FOUND;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, device **found)
{
    for (int i = 0; i < DEVICES; i++)
        if (strcmp(devices[i].uuid, uuid) == 0) {
            *found = &devices[i];
            return SUCCESS;
        }
    return NOT_FOUND;
}

int nvmlDeviceGetMemoryInfo(device *d, unsigned long long memory[3])
{
    (void)d;
    memory[0] = 16ull << 30; /* total, free, used */
    memory[1] = 12ull << 30;
    memory[2] = 4ull << 30;
    return SUCCESS;
}

static int tell(const device *d, unsigned *value, unsigned number)
{
    if (!d->reports_all)
        return NOT_SUPPORTED;
    *value = number;
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(device *d, unsigned rates[2])
{
    return tell(d, &rates[0], 87) == SUCCESS ? tell(d, &rates[1], 31) : NOT_SUPPORTED;
}

int nvmlDeviceGetTemperature(device *d, int sensor, unsigned *value)
{
    return sensor == 0 ? tell(d, value, 61) : NOT_SUPPORTED;
}

int nvmlDeviceGetPowerUsage(device *d, unsigned *value) { return tell(d, value, 254500); }
int nvmlDeviceGetEnforcedPowerLimit(device *d, unsigned *value) { return tell(d, value, 700000); }
int nvmlDeviceGetClockInfo(device *d, int kind, unsigned *value) { return tell(d, value, kind == 1 ? 1980 : 2619); }
int nvmlDeviceGetFanSpeed(device *d, unsigned *value) { return tell(d, value, 40); }

int nvmlDeviceGetComputeRunningProcesses_v3(device *d, unsigned *count, process *list)
{
    if (!d->reports_all)
        return NOT_SUPPORTED;
    unsigned room = *count;
    *count = d->has_many ? MANY : 3;
    if (room < *count)
        return INSUFFICIENT_SIZE;
    for (unsigned i = 0; d->has_many && i < MANY; i++)
        list[i] = (process){200001 + i, (1 + i) << 20, 0, 0};
    if (d->has_many)
        return SUCCESS;
    list[0] = (process){100001, 512ull << 20, 0, 0};
    list[1] = (process){100002, ~0ull, 0, 0}; /* not available, as under Windows' driver model */
    list[2] = (process){100003, 2048ull << 20, 0, 0};
    return SUCCESS;
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(device *d, unsigned *count, process *list)
{
    if (!d->reports_all)
        return NOT_SUPPORTED;
    list[0] = (process){100004, 1ull << 20, 0, 0};
    *count = 1;
    return SUCCESS;
}

int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned size)
{
    if (pid != 100003)
        return NOT_FOUND;
    snprintf(name, size, "/usr/bin/train");
    return SUCCESS;
}
