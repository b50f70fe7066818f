/* rt/find/platforms.c - enumerates the devices of all platforms once and queries them. */
#include <string.h>

#include "base/fork.h"
#include "base/log.h"
#include "base/memory.h"
#include "rt/compile/cold.h"
#include "rt/device/driver_cache.h"
#include "rt/device/lost.h"
#include "rt/device/query.h"
#include "rt/device/table.h"
#include "rt/find/find.h"
#include "rt/find/left_out.h"
#include "rt/find/match.h"
#include "rt/find/rank.h"
#include "rt/memory/pool.h"
#include "rt/program/program.h"

static struct {
    kn_mutex lock;
    atomic_bool done;
    char *names[KN_MAX_DEVICES]; /* the platforms' names, which devices point to */
    int num_names;
} found = {.lock = KN_MUTEX_INIT};

static kn_pool host_pool = {.lock = KN_MUTEX_INIT}; /* always empty, for its statistics */

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
    .pool = &host_pool,
};

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

static void free_device(kn_device *device)
{
    const kn_device_properties *p = &device->properties;
    const char *const texts[] = {device->extensions, p->name,        p->vendor, p->driver_version,
                                 p->opencl_version,  p->pci_address, p->uuid};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        kn_query_free(texts[i]);
    kn_free(device->pool);
    kn_free(device->programs);
    kn_cold_free(device->cold);
    kn_free(device);
}

/* Why a device cannot be used, or NULL. */
static const char *find_obstacle(kn_query *query, const kn_device *device)
{
    if (kn_query_version(device) < 120)
        return "it has OpenCL 1.1 or older, and Koine needs 1.2: update its driver, or use another one";
    if (!kn_query_number(query, CL_DEVICE_AVAILABLE) && query->error == CL_SUCCESS)
        return "its driver says that it is not available: another process may hold it, or its hardware failed";
    if (!kn_query_number(query, CL_DEVICE_COMPILER_AVAILABLE) && query->error == CL_SUCCESS)
        return "its driver has no compiler for OpenCL C: install the complete driver";
    return NULL;
}

/* False if the device cannot be used or a query fails, which is logged. */
static bool describe_device(kn_device *device, const char *platform_name, int platform_index, int device_index)
{
    kn_query query = {.id = device->id};
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
    if (device->quirks.fails_in_exit_after_fork)
        kn_fork_note_exit();
    const char *obstacle = query.error == CL_SUCCESS ? find_obstacle(&query, device) : NULL;
    if (obstacle) {
        kn_leave_out("device %d of platform %d (%s: %s) is skipped: %s", device_index, platform_index, platform_name,
                     device->properties.name, obstacle);
        return false;
    }
    kn_query_limits(&query, device);
    kn_query_properties(&query, device);
    if (query.error != CL_SUCCESS)
        kn_leave_out("device %d of platform %d (%s) is skipped: the query %s failed with %s", device_index,
                     platform_index, platform_name, query.failed, kn_cl_error_name(query.error));
    return query.error == CL_SUCCESS;
}

static kn_status add_device(cl_platform_id platform, const char *platform_name, int platform_index, cl_device_id id,
                            int device_index)
{
    if (kn_devices.count >= KN_MAX_DEVICES) {
        kn_log_message(KN_LOG_WARNING, "more than %d OpenCL devices: the rest are skipped", KN_MAX_DEVICES - 1);
        return KN_OK;
    }
    kn_device *device = kn_calloc(1, sizeof *device);
    if (!device)
        return KN_ERR_MEMORY;
    *device = (kn_device){
        .slot = kn_devices.count, .gpu_rank = -1, .platform = platform, .id = id, .leave_pool = kn_pool_leave_stream};
    if (!describe_device(device, platform_name, platform_index, device_index)) {
        free_device(device);
        return KN_OK;
    }
    kn_mutex_init(&device->lock);
    kn_mutex_init(&device->staging_lock);
    device->pool = kn_pool_new();
    device->programs = kn_program_table_new();
    if (!device->pool || !device->programs) {
        free_device(device);
        return KN_ERR_MEMORY;
    }
    device->cold = kn_cold_new(device);
    kn_devices.devices[kn_devices.count++] = device;
    return KN_OK;
}

/* Those from slot `first` on. */
static void forget_devices(int first)
{
    while (kn_devices.count > first)
        free_device(kn_devices.devices[--kn_devices.count]);
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
        kn_leave_out("platform %d (%s) is skipped: querying its devices failed with %s", index, name,
                     kn_cl_error_name(error));
        return KN_OK;
    }
    for (cl_uint i = 0; i < count && i < KN_MAX_DEVICES; i++)
        KN_TRY(add_device(platform, name, index, ids[i], (int)i));
    return KN_OK;
}

/* The name lives as long as a device refers to it. */
static kn_status add_platform(cl_platform_id platform, int index)
{
    const int before = kn_devices.count;
    cl_int error;
    char *name = platform_name(platform, &error);
    if (!name) {
        kn_leave_out("platform %d is skipped: querying its name failed with %s", index, kn_cl_error_name(error));
        return KN_OK;
    }
    kn_status status = add_devices(platform, name, index);
    if (status != KN_OK)
        forget_devices(before);
    if (kn_devices.count > before)
        found.names[found.num_names++] = name;
    else
        kn_free(name);
    return status;
}

/* Keeps the devices that KOINE_VISIBLE_DEVICES names, in its order; false without the variable. */
static bool apply_visible_devices(void)
{
    kn_device *chosen[KN_MAX_DEVICES];
    int count = kn_visible_choose(chosen);
    if (count < 0)
        return false;
    for (int slot = 1; slot < kn_devices.count; slot++)
        kn_devices.devices[slot]->slot = -1;
    for (int i = 0; i < count; i++)
        chosen[i]->slot = i + 1;
    for (int slot = 1; slot < kn_devices.count; slot++)
        if (kn_devices.devices[slot]->slot < 0)
            kn_devices.hidden[kn_devices.num_hidden++] = kn_devices.devices[slot];
    for (int i = 0; i < count; i++)
        kn_devices.devices[i + 1] = chosen[i];
    kn_devices.count = count + 1;
    return true;
}

/* The names in KOINE_VISIBLE_DEVICES count all devices; what it leaves is numbered anew. */
static void order_devices(void)
{
    kn_twins_find();
    kn_rank_devices(false);
    const bool ordered = apply_visible_devices();
    kn_twins_remove(free_device);
    kn_rank_devices(ordered);
    for (int slot = 0; slot < kn_devices.count; slot++)
        kn_devices.devices[slot]->limits.slot = slot;
}

static void forget_all(void)
{
    forget_devices(1);
    while (found.num_names > 0)
        kn_free(found.names[--found.num_names]);
}

/* Without a writable folder PoCL shows no device and does not say why. */
static void explain_no_device(cl_uint platforms)
{
    char *folder = platforms > 0 ? kn_driver_cache_folder() : NULL;
    if (folder && !kn_driver_cache_is_usable(folder))
        kn_leave_out("'%s' is not writable, and PoCL, the driver for CPUs, needs a writable folder: set POCL_CACHE_DIR",
                     folder);
    kn_free(folder);
}

/* The loader's error for "no driver registered" is not an error here. */
static kn_status check_platforms(cl_int error)
{
    const cl_int platform_not_found_khr = -1001;
    if (error == CL_SUCCESS || error == platform_not_found_khr)
        return KN_OK;
    kn_leave_out("querying the OpenCL platforms failed with %s", kn_cl_error_name(error));
    return KN_ERR_DEVICE;
}

static kn_status find_all(void)
{
    cl_platform_id platforms[KN_MAX_DEVICES];
    cl_uint count = 0;
    kn_status status = KN_OK;
    kn_devices.devices[0] = &host;
    kn_devices.count = 1;
    kn_devices.num_hidden = 0;
    kn_left_out_clear();
    kn_devices_watch_forks();
    kn_driver_cache_prepare();
    if (check_platforms(clGetPlatformIDs(KN_MAX_DEVICES, platforms, &count)) != KN_OK)
        count = 0;
    for (cl_uint i = 0; i < count && i < KN_MAX_DEVICES && status == KN_OK; i++)
        status = add_platform(platforms[i], (int)i);
    if (kn_devices.count == 1 && kn_left_out() == 0)
        explain_no_device(count);
    if (status == KN_OK && kn_devices.count == 1 && kn_left_out() > 0)
        status = kn_fail(KN_ERR_DEVICE, "no OpenCL device can be used: %s; run `koine doctor` for details",
                         kn_left_out_at(0));
    if (status != KN_OK) { /* the next call tries again */
        forget_all();
        return status;
    }
    order_devices();
    return KN_OK;
}

kn_status kn_devices_find(void)
{
    if (atomic_load_explicit(&found.done, memory_order_acquire))
        return KN_OK;
    if (kn_is_forked()) /* the parent process was searching */
        return kn_fail_forked();
    kn_log_check_environment();
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
kn_device *kn_device_host(void) { return &host; }
