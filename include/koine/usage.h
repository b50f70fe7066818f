/* koine/usage.h - what a device is doing: memory, load, temperature, power, clocks, processes; for all its users
 * together, not this process alone.
 *
 * OpenCL tells none of it. It comes from NVIDIA's management library (libnvidia-ml.so.1, NVML) where it is installed,
 * else from what the kernel's driver shows under /sys (amdgpu, i915, xe), both found by the device's PCI address; for
 * CPU devices from /proc and /sys. Nothing of it needs rights, but some drivers show some figures to root only. A
 * figure that is not to be had is NAN, or -1 where it is a whole number; that is no error. All functions are
 * thread-safe. They read files or ask a library: microseconds to milliseconds, and nothing is enqueued or opened on the
 * device. */
#ifndef KOINE_USAGE_H
#define KOINE_USAGE_H

#include <koine/common.h>
#include <koine/status.h>

KN_BEGIN_DECLS

#define KN_USAGE_MAX_PROCESSES 64

typedef struct kn_device_process {
    int64_t pid;         /* as this process would see it, or as the driver counts (containers) */
    int64_t memory_used; /* bytes of the device's memory; -1: not told */
    char name[64];       /* of the program, without its folder; "" when not told */
} kn_device_process;

typedef struct kn_usage {
    int64_t memory_used;  /* bytes of the device's memory in use; of the host's for CPU devices */
    int64_t memory_total; /* bytes */
    double load;          /* percent of the last moments in which the device computed; over all cores for CPU devices */
    double memory_load;   /* percent of the last moments in which its memory was read or written */
    double temperature;   /* degrees Celsius */
    double power;         /* watts */
    double power_limit;   /* watts that the driver holds it to */
    double clock;         /* MHz now, of the compute units */
    double memory_clock;  /* MHz now */
    double fan;           /* percent of the fan's full speed */
    const char *source;   /* "NVML", "amdgpu", "i915", "xe", "proc", or "" when there is none; a static string */
    int num_processes; /* that use the device; -1: not told. More than KN_USAGE_MAX_PROCESSES are counted, not listed */
    kn_device_process processes[KN_USAGE_MAX_PROCESSES]; /* those with the most memory first */
} kn_usage;

/* Fills `usage`. The load of a CPU device is that since the last call (at least 100 ms ago, else the last answer holds;
 * the first call waits that long). KN_ERR_ARGUMENT for NULL, KN_ERR_DEVICE for the host. */
KN_API kn_status kn_device_usage(const kn_device *device, kn_usage *usage);

/* Single figures by torch.cuda's names, in its units; NAN or -1 when not told, and with an error set for NULL and the
 * host. */
KN_API double kn_utilization(const kn_device *device);         /* percent of time in which kernels ran */
KN_API double kn_memory_usage(const kn_device *device);        /* percent of time in which memory was accessed */
KN_API double kn_temperature(const kn_device *device);         /* degrees Celsius */
KN_API double kn_power_draw(const kn_device *device);          /* milliwatts */
KN_API double kn_clock_rate(const kn_device *device);          /* MHz */
KN_API int64_t kn_device_memory_used(const kn_device *device); /* bytes */

/* The processes that use the device and their memory, as text of a line each under a line "gpu:0":
 *
 *     gpu:0
 *     process       1234 uses      512.000 MB GPU memory (train)
 *
 * or a line that says that no process runs, or that the driver does not tell. The caller frees it with kn_free; NULL
 * with an error. */
KN_API char *kn_list_gpu_processes(const kn_device *device);

KN_END_DECLS

#endif
