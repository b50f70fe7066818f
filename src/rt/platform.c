/* rt/platform.c - finds the devices of all platforms, once, and asks each what it can do. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "rt/driver_cache.h"
#include "rt/lost.h"
#include "rt/query.h"
#include "rt/visible.h"

/* From cl_ext.h; named here because older headers lack them. */
#define NV_COMPUTE_CAPABILITY_MAJOR 0x4000
#define NV_COMPUTE_CAPABILITY_MINOR 0x4001

static struct {
    kn_mutex lock;
    atomic_bool done;
    kn_device *devices[KN_MAX_DEVICES]; /* slot 0: the host */
    int count;
    kn_device *hidden[KN_MAX_DEVICES]; /* by KOINE_VISIBLE_DEVICES */
    int num_hidden;
    char *names[KN_MAX_DEVICES]; /* of the platforms, which devices point to */
    int num_names;
    char trouble[256]; /* why something was left out; "": nothing was */
} found = {.lock = KN_MUTEX_INIT};

static kn_device host = {
    .gpu_rank = -1,
    .label = "host",
    .properties = {.name = "host",
                   .vendor = "",
                   .platform = "",
                   .driver_version = "",
                   .opencl_version = "",
                   .type = KN_DEVICE_HOST,
                   .pci_address = "",
                   .uuid = "",
                   .platform_index = -1,
                   .device_index = -1},
    .extensions = "",
    .lock = KN_MUTEX_INIT,
};

/* --- what cannot be used ---------------------------------------------------------------------- */

/* A platform or a device is left out: said in the log, and kept to be said where no other is found. */
static void KN_PRINTF(1, 2) leave_out(const char *format, ...)
{
    char what[sizeof found.trouble];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    kn_log_message(KN_LOG_WARNING, "%s", what);
    if (!found.trouble[0])
        memcpy(found.trouble, what, sizeof what);
}

/* --- asking ----------------------------------------------------------------------------------- */

/* The platform's name, which lives as long as the process; NULL with the error in *error. */
static char *platform_name(cl_platform_id id, cl_int *error)
{
    size_t size = 0;
    *error = clGetPlatformInfo(id, CL_PLATFORM_NAME, 0, NULL, &size);
    char *text = *error == CL_SUCCESS ? kn_calloc(1, size + 1) : NULL;
    if (!text) {
        *error = *error == CL_SUCCESS ? CL_OUT_OF_HOST_MEMORY : *error;
        return NULL;
    }
    *error = size ? clGetPlatformInfo(id, CL_PLATFORM_NAME, size, text, NULL) : CL_SUCCESS;
    if (*error == CL_SUCCESS)
        return text;
    kn_free(text);
    return NULL;
}

/* "OpenCL 3.0 PoCL ..." or "OpenCL C 1.2 ..." gives 300 or 120. */
static int parse_version(const char *text)
{
    int major = 1, minor = 0;
    const char *digits = strpbrk(text, "0123456789");
    if (!digits || sscanf(digits, "%d.%d", &major, &minor) < 1)
        return 100;
    return major * 100 + minor * 10;
}

/* OpenCL has no query for this. A CPU device is the processor that this runs on. */
static int count_vector_registers(const kn_limits *limits)
{
#if defined(__aarch64__) || defined(_M_ARM64)
    bool arm = true;
#else
    bool arm = false;
#endif
    return limits->is_cpu && (arm || limits->vector_width_f32 >= 16) ? 32 : 16;
}

static void query_capability(kn_query *query, kn_device *device)
{
    kn_limits *limits = &device->limits;
    if (kn_has_word(device->extensions, "cl_nv_device_attribute_query")) {
        limits->capability_major = (int)kn_query_number(query, NV_COMPUTE_CAPABILITY_MAJOR);
        limits->capability_minor = (int)kn_query_number(query, NV_COMPUTE_CAPABILITY_MINOR);
        limits->ptx_capability = 10 * limits->capability_major + limits->capability_minor;
        return;
    }
    char *text = kn_query_string(query, CL_DEVICE_OPENCL_C_VERSION);
    int version = parse_version(text);
    limits->capability_major = version / 100;
    limits->capability_minor = version / 10 % 10;
    kn_query_free(text);
}

static void query_limits(kn_query *query, kn_device *device)
{
    kn_limits *limits = &device->limits;
    cl_device_type type = (cl_device_type)kn_query_number(query, CL_DEVICE_TYPE);
    limits->is_cpu = type & CL_DEVICE_TYPE_CPU;
    limits->is_gpu = type & CL_DEVICE_TYPE_GPU;
    limits->has_f64 = kn_query_number_if_known(query, CL_DEVICE_DOUBLE_FP_CONFIG) != 0 ||
                      kn_has_word(device->extensions, "cl_khr_fp64");
    limits->has_f16 = kn_has_word(device->extensions, "cl_khr_fp16") || device->quirks.f16_unannounced;
    limits->has_subgroups = kn_has_word(device->extensions, "cl_khr_subgroups");
    limits->unified_memory = kn_query_number_if_known(query, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0; /* not in 2.0 */
    limits->opencl_version = parse_version(device->properties.opencl_version);
    limits->compute_units = (int)kn_query_number(query, CL_DEVICE_MAX_COMPUTE_UNITS);
    limits->clock_mhz = (int)kn_query_number(query, CL_DEVICE_MAX_CLOCK_FREQUENCY);
    limits->vector_width_f32 = (int)kn_query_number(query, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
    limits->vector_width_f64 = (int)kn_query_number(query, CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE);
    limits->max_work_group_size = (size_t)kn_query_number(query, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    limits->local_memory = (size_t)kn_query_number(query, CL_DEVICE_LOCAL_MEM_SIZE);
    limits->address_align = (size_t)kn_query_number(query, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
    limits->global_memory = kn_query_number(query, CL_DEVICE_GLOBAL_MEM_SIZE);
    limits->max_allocation = kn_query_number(query, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    query_capability(query, device);
    if (limits->vector_width_f32 < 1)
        limits->vector_width_f32 = 1;
    if (limits->vector_width_f64 < 1)
        limits->vector_width_f64 = 1;
    limits->vector_registers = count_vector_registers(limits);
    if (limits->compute_units < 1)
        limits->compute_units = 1;
}

static void copy_properties(kn_query *query, kn_device *device)
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
    kn_query_properties(query, device);
}

static void free_device(kn_device *device)
{
    const kn_device_properties *p = &device->properties;
    const char *const texts[] = {device->extensions, p->name,        p->vendor, p->driver_version,
                                 p->opencl_version,  p->pci_address, p->uuid};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        kn_query_free(texts[i]);
    kn_free(device);
}

/* NULL: it does not answer, which is said; or memory is short, which *status says. */
static kn_device *new_device(cl_platform_id platform, const char *platform_name, int platform_index, cl_device_id id,
                             int device_index, kn_status *status)
{
    kn_query query = {.id = id};
    kn_device *device = kn_calloc(1, sizeof *device);
    if (!device) {
        *status = KN_ERR_MEMORY;
        return NULL;
    }
    device->gpu_rank = -1;
    device->platform = platform;
    device->id = id;
    device->extensions = kn_query_string(&query, CL_DEVICE_EXTENSIONS);
    device->properties = (kn_device_properties){
        .name = kn_query_string(&query, CL_DEVICE_NAME),
        .vendor = kn_query_string(&query, CL_DEVICE_VENDOR),
        .platform = platform_name,
        .driver_version = kn_query_string(&query, CL_DRIVER_VERSION),
        .opencl_version = kn_query_string(&query, CL_DEVICE_VERSION),
        .platform_index = platform_index,
        .device_index = device_index,
    };
    device->quirks = kn_quirks_of(platform_name, device->properties.driver_version);
    query_limits(&query, device);
    copy_properties(&query, device);
    if (query.error == CL_SUCCESS)
        return device;
    free_device(device);
    leave_out("device %d of platform %d (%s) is left out: the question %s failed with %s", device_index, platform_index,
              platform_name, query.failed, kn_cl_error_name(query.error));
    return NULL;
}

static kn_status add_device(cl_platform_id platform, const char *platform_name, int platform_index, cl_device_id id,
                            int device_index)
{
    kn_status status = KN_OK;
    if (found.count >= KN_MAX_DEVICES) {
        kn_log_message(KN_LOG_WARNING, "more than %d OpenCL devices: the rest are left out", KN_MAX_DEVICES - 1);
        return KN_OK;
    }
    kn_device *device = new_device(platform, platform_name, platform_index, id, device_index, &status);
    if (!device)
        return status;
    device->slot = found.count;
    kn_mutex_init(&device->lock);
    kn_mutex_init(&device->staging_lock);
    kn_pool_init(&device->pool);
    kn_program_table_init(&device->programs);
    found.devices[found.count++] = device;
    return KN_OK;
}

/* Those from slot `first` on. */
static void forget_devices(int first)
{
    while (found.count > first)
        free_device(found.devices[--found.count]);
}

static kn_status add_devices(cl_platform_id platform, const char *name, int index)
{
    cl_device_id ids[KN_MAX_DEVICES];
    cl_uint count = 0;
    cl_int error = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, KN_MAX_DEVICES, ids, &count);
    if (error == CL_DEVICE_NOT_FOUND || (error == CL_SUCCESS && count == 0)) {
        kn_log_message(KN_LOG_INFO, "platform %d (%s) shows no device", index, name);
        return KN_OK;
    }
    if (error != CL_SUCCESS) {
        leave_out("platform %d (%s) is left out: asking for its devices failed with %s", index, name,
                  kn_cl_error_name(error));
        return KN_OK;
    }
    for (cl_uint i = 0; i < count && i < KN_MAX_DEVICES; i++)
        KN_TRY(add_device(platform, name, index, ids[i], (int)i));
    return KN_OK;
}

/* The name stays as long as a device tells it as its platform's. */
static kn_status add_platform(cl_platform_id platform, int index)
{
    const int before = found.count;
    cl_int error;
    char *name = platform_name(platform, &error);
    if (!name) {
        leave_out("platform %d is left out: asking for its name failed with %s", index, kn_cl_error_name(error));
        return KN_OK;
    }
    kn_status status = add_devices(platform, name, index);
    if (status != KN_OK)
        forget_devices(before);
    if (found.count > before)
        found.names[found.num_names++] = name;
    else
        kn_free(name);
    return status;
}

/* How fast a GPU is likely to be, from what all drivers tell; memory of its own counts for more than a share of the
 * host's. */
static double gpu_score(const kn_device *device)
{
    double score = (double)device->limits.compute_units * (device->limits.clock_mhz ? device->limits.clock_mhz : 1);
    return device->limits.unified_memory ? score : score * 100;
}

/* GPUs are numbered best first, or, where the user ordered the devices, in that order. */
static void rank_and_label(bool ordered)
{
    int gpus = 0, cpus = 0;
    for (int i = 1; i < found.count; i++) {
        kn_device *device = found.devices[i];
        if (device->properties.type == KN_DEVICE_CPU)
            snprintf(device->label, sizeof device->label, "cpu:%d", cpus++);
        else if (device->properties.type == KN_DEVICE_ACCELERATOR)
            snprintf(device->label, sizeof device->label, "%d:%d", device->properties.platform_index,
                     device->properties.device_index);
        else
            gpus++;
    }
    for (int rank = 0; rank < gpus; rank++) {
        kn_device *best = NULL;
        for (int i = 1; i < found.count; i++) {
            kn_device *device = found.devices[i];
            if (device->properties.type == KN_DEVICE_GPU && device->gpu_rank < 0 &&
                (!best || (!ordered && gpu_score(device) > gpu_score(best))))
                best = device;
        }
        if (!best)
            break;
        best->gpu_rank = rank;
        snprintf(best->label, sizeof best->label, "gpu:%d", rank);
    }
}

/* Leaves the devices that KOINE_VISIBLE_DEVICES names, in its order. */
static void heed_visible_devices(void)
{
    kn_device *chosen[KN_MAX_DEVICES];
    int count = kn_visible_choose(chosen);
    if (count < 0)
        return;
    for (int slot = 1; slot < found.count; slot++) {
        found.devices[slot]->slot = -1;
        found.devices[slot]->gpu_rank = -1;
    }
    for (int i = 0; i < count; i++)
        chosen[i]->slot = i + 1;
    for (int slot = 1; slot < found.count; slot++)
        if (found.devices[slot]->slot < 0)
            found.hidden[found.num_hidden++] = found.devices[slot];
    for (int i = 0; i < count; i++)
        found.devices[i + 1] = chosen[i];
    found.count = count + 1;
    rank_and_label(true);
}

static void forget_all(void)
{
    forget_devices(1);
    while (found.num_names > 0)
        kn_free(found.names[--found.num_names]);
}

/* PoCL without a folder to write to shows no device, and does not say why. */
static void explain_no_device(cl_uint platforms)
{
    char *folder = platforms > 0 ? kn_driver_cache_folder() : NULL;
    if (folder && !kn_driver_cache_is_usable(folder))
        leave_out("'%s' cannot be written, and PoCL, the driver for CPUs, needs a folder that can: set POCL_CACHE_DIR",
                  folder);
    kn_free(folder);
}

/* Beside the loader's way to say that no driver is registered. */
static kn_status check_platforms(cl_int error)
{
    const cl_int platform_not_found_khr = -1001;
    if (error == CL_SUCCESS || error == platform_not_found_khr)
        return KN_OK;
    leave_out("asking for the OpenCL platforms failed with %s", kn_cl_error_name(error));
    return KN_ERR_DEVICE;
}

static kn_status find_all(void)
{
    cl_platform_id platforms[KN_MAX_DEVICES];
    cl_uint count = 0;
    kn_status status = KN_OK;
    found.devices[0] = &host;
    found.count = 1;
    found.num_hidden = 0;
    found.trouble[0] = '\0';
    kn_devices_watch_forks();
    kn_driver_cache_prepare();
    if (check_platforms(clGetPlatformIDs(KN_MAX_DEVICES, platforms, &count)) != KN_OK)
        count = 0;
    for (cl_uint i = 0; i < count && i < KN_MAX_DEVICES && status == KN_OK; i++)
        status = add_platform(platforms[i], (int)i);
    if (found.count == 1 && !found.trouble[0])
        explain_no_device(count);
    if (status == KN_OK && found.count == 1 && found.trouble[0])
        status = kn_fail(KN_ERR_DEVICE, "no OpenCL device can be used: %s; `koine doctor` tells more", found.trouble);
    if (status != KN_OK) { /* the next call tries again */
        forget_all();
        return status;
    }
    rank_and_label(false);
    heed_visible_devices();
    for (int slot = 0; slot < found.count; slot++)
        found.devices[slot]->limits.slot = slot;
    return KN_OK;
}

kn_status kn_devices_find(void)
{
    if (atomic_load_explicit(&found.done, memory_order_acquire))
        return KN_OK;
    if (kn_is_forked()) /* from a process that was at it */
        return kn_fail_forked();
    kn_lock(&found.lock);
    kn_status status = KN_OK;
    if (!atomic_load(&found.done)) {
        status = find_all();
        if (status == KN_OK)
            atomic_store_explicit(&found.done, true, memory_order_release);
    }
    kn_unlock(&found.lock);
    return status;
}

bool kn_devices_are_found(void) { return atomic_load_explicit(&found.done, memory_order_acquire); }
int kn_devices_hidden(void) { return found.num_hidden; }
const kn_device *kn_device_hidden_at(int i) { return found.hidden[i]; }
kn_device *kn_device_slot_at(int slot) { return slot >= 0 && slot < found.count ? found.devices[slot] : NULL; }
int kn_device_slots(void) { return found.count; }
kn_device *kn_device_host(void) { return &host; }
