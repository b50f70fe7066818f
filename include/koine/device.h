/* koine/device.h - the devices of all OpenCL platforms, and the host.
 *
 * Devices are found once, at the first call that needs them, and live until the process ends: a kn_device pointer is
 * never freed and may be shared by all threads. All functions here are thread-safe. A platform or device that fails a
 * query of its properties is left out, with a warning; if nothing else is found the error says which query failed.
 *
 * Fork: neither the drivers' threads nor the library's survive a fork. In a child forked after devices were found (or a
 * loader had workers), everything that needs a device or a worker returns KN_ERR_DEVICE at once, and freed objects are
 * left until the process ends. Fork before the first use, or call exec in the child. A child that does neither should
 * end with _exit: in exit a driver may wait for commands that were under way at the fork (Intel's for CPUs does).
 *
 * If POCL_CACHE_DIR is not set and PoCL's default folder is not writable, finding the devices sets it (setenv, before
 * the first OpenCL call) to a folder that is. */
#ifndef KOINE_DEVICE_H
#define KOINE_DEVICE_H

#include <koine/common.h>
#include <koine/status.h>

KN_BEGIN_DECLS

typedef enum kn_device_type { KN_DEVICE_HOST, KN_DEVICE_CPU, KN_DEVICE_GPU, KN_DEVICE_ACCELERATOR } kn_device_type;

/* As torch.cuda.get_device_properties, for any vendor. Strings belong to the device. */
typedef struct kn_device_properties {
    const char *name; /* as reported by the driver */
    const char *vendor;
    const char *platform; /* name of the OpenCL platform */
    const char *driver_version;
    const char *opencl_version; /* e.g. "OpenCL 3.0 PoCL HSTR: ..." */
    kn_device_type type;
    int platform_index; /* P and D of "P:D", as `clinfo -l` numbers them */
    int device_index;
    uint64_t total_memory;     /* bytes of global memory */
    uint64_t max_allocation;   /* bytes of the largest single buffer */
    uint64_t local_memory;     /* bytes of local memory per work-group */
    uint64_t constant_memory;  /* bytes of the largest constant buffer */
    uint64_t global_cache;     /* bytes of the global memory cache; 0: none, or unknown */
    int cache_line;            /* bytes of a cache line; 0: unknown */
    int memory_align;          /* bytes: the least alignment of buffers */
    int multi_processor_count; /* compute units */
    int clock_mhz;             /* maximum clock */
    int max_work_group_size;   /* work-items */
    int max_work_items[3];     /* work-items of a work-group along each dimension */
    int warp_size;             /* work-items that run in lockstep (warp, wavefront, subgroup); 0: unknown */
    int capability_major;      /* as kn_device_capability */
    int capability_minor;
    int vector_width; /* native f32 vector width, in elements */
    bool has_f64, has_f16, has_subgroups;
    bool unified_memory;     /* shares the host's memory */
    bool error_correction;   /* for all its memories (ECC) */
    uint32_t vendor_id;      /* the PCI vendor ID if there is one: 0x10de, 0x1002, 0x8086 */
    const char *pci_address; /* "0000:65:00.0": domain, bus, device, function in hexadecimal; "" if unknown */
    const char *uuid;        /* "5f1c7a0e-....": the driver's identifier of this device; "" if unknown */
} kn_device_properties;

/* Opens a device by name:
 *   "auto" (or NULL)    the environment variable KOINE_DEVICE if set, else the best GPU, else a CPU device
 *   "gpu", "gpu:1"      the best GPU; the second GPU over all platforms, best first
 *   "cpu"               an OpenCL CPU device (PoCL, Intel)
 *   "nvidia", "amd", "intel", "pocl:0", "cuda:0"   by vendor or platform, with an optional number
 *   "0:1"               platform 0, device 1, as `clinfo -l` shows them
 *   "host"              host memory: holds tensors, runs no operations
 *   anything else       part of a device's name, case-insensitive
 * NULL with an error if nothing matches; the message lists the devices, or says which package to install. */
KN_API kn_device *kn_device_open(const char *name);

/* The host as a device: its tensors are plain memory (kn_data); an operation on one is an error that says to move
 * it. */
KN_API kn_device *kn_device_host(void);

/* Finds the devices now rather than at first use. KN_ERR_DEVICE if there is none (or KOINE_VISIBLE_DEVICES hides them
 * all); later calls do nothing. */
KN_API kn_status kn_init(void);
KN_API bool kn_is_initialized(void); /* have the devices been searched for? Does not search */

KN_API bool kn_is_available(void);         /* is there any OpenCL device? */
KN_API int kn_device_count(void);          /* OpenCL devices of all platforms, including CPUs */
KN_API kn_device *kn_device_at(int index); /* 0 .. kn_device_count() - 1; NULL with an error otherwise */
KN_API int kn_gpu_count(void);             /* GPUs among them */
KN_API kn_device *kn_try_gpu(int index);   /* that GPU if it exists, else the CPU device, else NULL with an error */

/* All GPUs, or the CPU device if there are none: writes up to `capacity` devices, returns how many there are. */
KN_API int kn_try_all_gpus(kn_device **devices, int capacity);

/* The calling thread's current device: where tensors and modules are created if no device is given. It is initially
 * "auto". kn_device_current returns NULL with an error if there is no device at all. */
KN_API kn_device *kn_device_current(void);
KN_API kn_status kn_device_set_current(kn_device *device);

/* Makes `device` the calling thread's current device to the end of the enclosing block, as torch.cuda.device() does;
 * then the previous one is restored (a guard: koine/common.h).
 *
 *     {
 *         KN_DEVICE(kn_device_at(1));
 *         x = kn_zeros(KN_SHAPE(2, 3));          // on device 1
 *     }
 *
 * NULL sets a sticky error, and to the end of the block the thread does no work on any device (kn_refuse_work). */
#define KN_DEVICE(device) KN_GUARD(kn_device_guard, kn_device_guard_, kn_device_enter(device), kn_device_leave)

/* The guard's functions: call one leave per enter, in reverse order, on the same thread, also after a failed enter. */
typedef struct kn_device_guard {
    kn_device *before; /* NULL: none had been set */
    bool entered;
} kn_device_guard;
KN_API kn_device_guard kn_device_enter(kn_device *device);
KN_API void kn_device_leave(kn_device_guard *guard);

KN_API const char *kn_device_name(const kn_device *device);   /* the driver's name, "host" for the host */
KN_API const char *kn_device_string(const kn_device *device); /* what kn_device_open takes: "gpu:0", "cpu:0", "host" */
KN_API int kn_device_index(const kn_device *device);          /* i of kn_device_at(i); -1 for the host and NULL */
KN_API kn_device_type kn_device_get_type(const kn_device *device);
KN_API kn_status kn_device_get_properties(const kn_device *device, kn_device_properties *properties);

/* The compute capability on NVIDIA devices, the OpenCL C version elsewhere; 0.0 for the host. */
KN_API kn_status kn_device_capability(const kn_device *device, int *major, int *minor);

/* The kinds of programs the device accepts, separated by blanks: OpenCL C versions ("CL1.2"), intermediate languages
 * ("SPIR-V_1.2"), and "sm_90" if the compute capability is known. For information only: Koine compiles its kernels from
 * source. The caller frees the text with kn_free. NULL with an error for the host. */
KN_API char *kn_device_arch_list(const kn_device *device);

/* Can `device` and `peer` share memory without a copy through the host? True if they belong to the same platform and
 * either both use host memory (CPU devices, integrated GPUs), or the driver lists `peer` as reachable
 * (cl_amd_copy_buffer_p2p). OpenCL has no other query, so false may mean "unknown". False for a device with itself, as
 * in CUDA, and for the host. False with an error if one is NULL. */
KN_API bool kn_can_device_access_peer(const kn_device *device, const kn_device *peer);

/* Was the device lost: reset by its driver after a fault or a hang, or removed? OpenCL cannot recover within a process:
 * starting with the call that detects the loss, every call that enqueues, waits or allocates on the device returns
 * KN_ERR_DEVICE at once, and its tensors can only be released. Other devices keep working. False for NULL. */
KN_API bool kn_device_is_lost(const kn_device *device);

/* Waits for the work of all streams of the device (NULL: the current device), then reports any error detected by
 * kernels (an index out of range). torch.accelerator.synchronize. */
KN_API kn_status kn_synchronize(kn_device *device);

KN_END_DECLS

#endif
