/* koine/usage.h - device usage: memory, load, temperature, power, clocks, processes; for all users of the device, not
 * only this process.
 *
 * OpenCL does not report any of this. It comes from NVIDIA's management library (libnvidia-ml.so.1, NVML) if it is
 * installed, else from the kernel driver's files under /sys (amdgpu, i915, xe), both found by the device's PCI address;
 * for CPU devices from /proc and /sys. No privileges are needed, but some drivers show some figures only to root.
 * Unknown figures are NAN, or -1 for integers; that is not an error. All functions are thread-safe. They read files or
 * call a library, which takes microseconds to milliseconds; nothing is enqueued or opened on the device. */
#ifndef KOINE_USAGE_H
#define KOINE_USAGE_H

#include <koine/common.h>
#include <koine/status.h>

KN_BEGIN_DECLS

#define KN_USAGE_MAX_PROCESSES 64

typedef struct kn_device_process {
    int64_t pid;         /* as seen by this process, or by the driver (containers) */
    int64_t memory_used; /* bytes of device memory; -1: unknown */
    char name[64];       /* of the program, without its folder; "" if unknown */
} kn_device_process;

typedef struct kn_usage {
    int64_t memory_used;  /* bytes of device memory in use; of host memory for CPU devices */
    int64_t memory_total; /* bytes */
    double load;          /* percent of recent time in which the device computed; over all cores for CPU devices */
    double memory_load;   /* percent of recent time in which its memory was read or written */
    double temperature;   /* degrees Celsius */
    double power;         /* watts */
    double power_limit;   /* the driver's limit in watts */
    double clock;         /* current MHz of the compute units */
    double memory_clock;  /* current MHz */
    double fan;           /* percent of the fan's full speed */
    const char *source;   /* "NVML", "amdgpu", "i915", "xe", "proc", or "" if there is none; a static string */
    int num_processes;    /* using the device; -1: unknown. At most KN_USAGE_MAX_PROCESSES of them are listed */
    kn_device_process processes[KN_USAGE_MAX_PROCESSES]; /* those with the most memory first */
} kn_usage;

/* Fills `usage`. A CPU device's load is the average since the last call (if that was at least 100 ms ago, else its
 * result is returned again; the first call waits that long). KN_ERR_ARGUMENT for NULL, KN_ERR_DEVICE for the host. */
KN_API kn_status kn_device_usage(const kn_device *device, kn_usage *usage);

/* Single figures by torch.cuda's names, in its units; NAN or -1 if unknown, and with an error for NULL and the host. */
KN_API double kn_utilization(const kn_device *device);         /* percent of time in which kernels ran */
KN_API double kn_memory_usage(const kn_device *device);        /* percent of time in which memory was accessed */
KN_API double kn_temperature(const kn_device *device);         /* degrees Celsius */
KN_API double kn_power_draw(const kn_device *device);          /* milliwatts */
KN_API double kn_clock_rate(const kn_device *device);          /* MHz */
KN_API int64_t kn_device_memory_used(const kn_device *device); /* bytes */

/* The processes that use the device and their memory, one per line after a line "gpu:0":
 *
 *     gpu:0
 *     process       1234 uses      512.000 MB GPU memory (train)
 *
 * or a line that says that there are none, or that the driver does not report them. The caller frees it with kn_free;
 * NULL with an error on failure. */
KN_API char *kn_list_gpu_processes(const kn_device *device);

KN_END_DECLS

#endif
