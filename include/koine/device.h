/* koine/device.h - the devices of all OpenCL platforms, and the host.
 *
 * Devices are found once, at the first call that needs them, and live until the process ends: a kn_device pointer is
 * never freed and may be shared by all threads. All functions here are thread-safe. A platform or device that does not
 * answer a question about itself is left out, with a warning; where nothing else is found the error says which.
 *
 * Fork: neither drivers' threads nor the library's survive it. In a child forked after devices were found (or a loader
 * had workers) whatever needs a device or a worker is KN_ERR_DEVICE at once, and what is freed is left to the process's
 * end. Fork before the first use, or let the child call exec.
 *
 * Where POCL_CACHE_DIR is not set and PoCL's usual folder cannot be written, finding the devices sets it (setenv,
 * before OpenCL's first call) to a folder that can. */
#ifndef KOINE_DEVICE_H
#define KOINE_DEVICE_H

#include <koine/common.h>
#include <koine/status.h>

KN_BEGIN_DECLS

typedef enum kn_device_type { KN_DEVICE_HOST, KN_DEVICE_CPU, KN_DEVICE_GPU, KN_DEVICE_ACCELERATOR } kn_device_type;

/* What torch.cuda.get_device_properties tells, for any vendor. Strings belong to the device. */
typedef struct kn_device_properties {
    const char *name; /* as the driver gives it */
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
    uint64_t global_cache;     /* bytes of the cache in front of global memory; 0: none, or not told */
    int cache_line;            /* bytes of one of its lines; 0: not told */
    int memory_align;          /* bytes: how buffers are aligned at least */
    int multi_processor_count; /* compute units */
    int clock_mhz;             /* maximum clock */
    int max_work_group_size;   /* work-items */
    int max_work_items[3];     /* work-items of a work-group along each dimension */
    int warp_size;             /* work-items that run in lockstep (warp, wavefront, subgroup); 0: not told */
    int capability_major;      /* as kn_device_capability */
    int capability_minor;
    int vector_width; /* native f32 vector width, in elements */
    bool has_f64, has_f16, has_subgroups;
    bool unified_memory;     /* shares the host's memory */
    bool error_correction;   /* of all its memories (ECC) */
    uint32_t vendor_id;      /* the PCI vendor's number where there is one: 0x10de, 0x1002, 0x8086 */
    const char *pci_address; /* "0000:65:00.0": domain, bus, device, function in hexadecimal; "" when not told */
    const char *uuid;        /* "5f1c7a0e-....": the driver's name for this very device; "" when not told */
} kn_device_properties;

/* Opens the device that `name` names:
 *   "auto" (or NULL)    the environment variable KOINE_DEVICE if set, else the best GPU, else a CPU device
 *   "gpu", "gpu:1"      the best GPU; the second GPU over all platforms, best first
 *   "cpu"               an OpenCL CPU device (PoCL, Intel)
 *   "nvidia", "amd", "intel", "pocl:0", "cuda:0"   by vendor or platform, with an optional number
 *   "0:1"               platform 0, device 1, as `clinfo -l` shows them
 *   "host"              the host's memory: holds tensors, runs no operations
 *   anything else       part of a device's own name, in any case
 * KN_ERR_DEVICE when nothing matches; the message lists what there is, or says which package to install. */
KN_API kn_status kn_device_open(kn_device **device, const char *name);

/* The host as a device: a tensor made there is plain memory (kn_data); an operation on it is an error that says to move
 * it. */
KN_API kn_device *kn_device_host(void);

/* Finds the devices now rather than at first need. KN_ERR_DEVICE when there is none (or KOINE_VISIBLE_DEVICES hides
 * them all); calling it again does nothing. */
KN_API kn_status kn_init(void);
KN_API bool kn_is_initialized(void); /* have the devices been looked for? Does not look for them */

KN_API bool kn_is_available(void);         /* is there any OpenCL device? */
KN_API int kn_device_count(void);          /* OpenCL devices over all platforms, CPUs included */
KN_API kn_device *kn_device_at(int index); /* 0 .. kn_device_count() - 1; NULL with an error outside */
KN_API int kn_gpu_count(void);             /* GPUs among them */
KN_API kn_device *kn_try_gpu(int index);   /* that GPU if it exists, else the CPU device, else NULL with an error */

/* All GPUs, or the CPU device when there is none: writes up to `capacity` devices, returns how many there are. */
KN_API int kn_try_all_gpus(kn_device **devices, int capacity);

/* The calling thread's current device: where tensors and modules are made when no device is given. It starts as "auto".
 * kn_device_current returns NULL with an error when there is no device at all. */
KN_API kn_device *kn_device_current(void);
KN_API kn_status kn_device_set_current(kn_device *device);

/* `device` is the calling thread's current device from here to the end of the enclosing block, as under
 * torch.cuda.device(); then the one before is again (a guard: koine/common.h).
 *
 *     {
 *         KN_DEVICE(kn_device_at(1));
 *         x = kn_zeros(KN_SHAPE(2, 3));          // on device 1
 *     }
 *
 * NULL sets an error that sticks, and to the end of the block the thread does no work on any device
 * (kn_refuse_work). */
#define KN_DEVICE(device) KN_GUARD(kn_device_guard, kn_device_guard_, kn_device_enter(device), kn_device_leave)

/* What the guard is made of: one leave per enter, in reverse order, on the same thread, also after a failed one. */
typedef struct kn_device_guard {
    kn_device *before; /* NULL: none had been chosen */
    bool entered;
} kn_device_guard;
KN_API kn_device_guard kn_device_enter(kn_device *device);
KN_API void kn_device_leave(kn_device_guard *guard);

KN_API const char *kn_device_name(const kn_device *device);   /* the driver's name for it, "host" for the host */
KN_API const char *kn_device_string(const kn_device *device); /* what kn_device_open takes: "gpu:0", "cpu:0", "host" */
KN_API int kn_device_index(const kn_device *device);          /* i of kn_device_at(i); -1 for the host and NULL */
KN_API kn_device_type kn_device_get_type(const kn_device *device);
KN_API kn_status kn_device_get_properties(const kn_device *device, kn_device_properties *properties);

/* The compute capability on NVIDIA devices, the OpenCL C version elsewhere; 0.0 for the host. */
KN_API kn_status kn_device_capability(const kn_device *device, int *major, int *minor);

/* What programs the device takes, as words with blanks between them: OpenCL C versions ("CL1.2"), intermediate
 * languages
 * ("SPIR-V_1.2"), and "sm_90" where the device tells a compute capability. Koine builds its kernels from source for the
 * device at hand, so the list decides nothing. The caller frees it with kn_free. KN_ERR_DEVICE for the host. */
KN_API kn_status kn_device_arch_list(char **list, const kn_device *device);

/* Can `device` and `peer` share memory without a copy through the host? True when they belong to one platform and
 * either both compute in the host's memory (CPU devices, integrated GPUs), or the driver lists `peer` as reachable
 * (cl_amd_copy_buffer_p2p). OpenCL has no other query, so false may mean "not told". A device with itself is false, as
 * in CUDA; so is the host. False with an error when one is NULL. */
KN_API bool kn_can_device_access_peer(const kn_device *device, const kn_device *peer);

/* Was the device lost: reset by its driver after a fault or a hang, unplugged, taken away? OpenCL has no way back
 * within a process: from the call that found out on, every call that would enqueue, wait or allocate on the device
 * returns KN_ERR_DEVICE at once and says so, and tensors there can only be released. Other devices go on. False for
 * NULL. */
KN_API bool kn_device_is_lost(const kn_device *device);

/* Waits for all work of the device's streams, then reports any error that kernels found (an index out of range). */
KN_API kn_status kn_synchronize(kn_device *device);

KN_END_DECLS

#endif
