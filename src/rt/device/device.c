/* rt/device/device.c - a device as its user sees it: opening, the current one, its name and properties. */
#include <stdlib.h>

#include "base/fork.h"
#include "rt/device/lost.h"

static _Thread_local kn_device *current;

/* At exit: queued work ends before the drivers are taken down under it. */
static void finish_all_devices(void)
{
    if (kn_is_forked()) /* the queues are there, the driver's threads are not */
        return;
    for (int slot = 1; slot < kn_device_slots(); slot++) {
        kn_device *device = kn_device_slot_at(slot);
        if (!atomic_load(&device->is_open))
            continue;
        kn_lock(&device->lock);
        for (kn_stream *stream = device->streams; stream; stream = stream->next)
            kn_stream_finish(stream);
        kn_unlock(&device->lock);
    }
}

static void register_finish(void) { atexit(finish_all_devices); }

static kn_status open_service(kn_device *device)
{
    cl_int error;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* see rt/stream/stream.c */
    device->service = clCreateCommandQueue(device->context, device->id, 0, &error);
#pragma GCC diagnostic pop
    return error == CL_SUCCESS ? KN_OK : kn_cl_fail(error, device, "making a queue for host memory");
}

static kn_status open_locked(kn_device *device)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    cl_int error;
    cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)device->platform, 0};
    device->context = clCreateContext(properties, 1, &device->id, NULL, NULL, &error);
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, device, "making an OpenCL context");
    kn_status status = kn_stream_open(&device->default_stream, device, 0, NULL);
    if (status == KN_OK)
        status = open_service(device);
    if (status != KN_OK) { /* all of it goes: a later try makes a new context */
        kn_stream_close(&device->default_stream);
        clReleaseContext(device->context);
        device->context = NULL;
        return status;
    }
    device->default_stream.is_default = true;
    device->streams = &device->default_stream;
    atomic_store_explicit(&device->is_open, true, memory_order_release);
    pthread_once(&once, register_finish);
    kn_inject_from_environment();
    return KN_OK;
}

kn_status kn_device_ensure_open(kn_device *device)
{
    if (atomic_load_explicit(&device->is_open, memory_order_acquire))
        return kn_device_check_lost(device);
    if (kn_device_is_host(device))
        return kn_fail(KN_ERR_DEVICE,
                       "the host runs no operations: move the tensor to a device first, kn_to(tensor, device)");
    KN_TRY(kn_device_check_lost(device)); /* by fork */
    kn_lock(&device->lock);
    kn_status status = atomic_load(&device->is_open) ? KN_OK : open_locked(device);
    kn_unlock(&device->lock);
    return status;
}

kn_status kn_init(void)
{
    KN_TRY(kn_devices_find());
    return kn_device_slots() > 1 ? KN_OK : kn_fail_no_device();
}

bool kn_is_initialized(void) { return kn_devices_are_found(); }

bool kn_is_available(void)
{
    KN_ATTEMPT;
    return kn_device_count() > 0;
}

int kn_device_count(void) { return kn_devices_find() == KN_OK ? kn_device_slots() - 1 : 0; }

int kn_gpu_count(void)
{
    int count = 0;
    for (int i = 0; i < kn_device_count(); i++)
        count += kn_device_slot_at(i + 1)->properties.type == KN_DEVICE_GPU;
    return count;
}

kn_device *kn_device_at(int index)
{
    int count = kn_device_count();
    if (index >= 0 && index < count)
        return kn_device_slot_at(index + 1);
    kn_fail(KN_ERR_DEVICE, "device %d does not exist: there are %d devices, counted from 0", index, count);
    return NULL;
}

kn_device *kn_device_current(void)
{
    if (!current && kn_device_open(&current, "auto") != KN_OK)
        return NULL;
    return current;
}

kn_status kn_device_set_current(kn_device *device)
{
    if (!device)
        return kn_fail_argument_null("kn_device_set_current", "device");
    current = device;
    return KN_OK;
}

kn_device_guard kn_device_enter(kn_device *device)
{
    if (!device) {
        kn_fail_argument_null("KN_DEVICE", "device");
        kn_refuse_work();
        return (kn_device_guard){0};
    }
    kn_device_guard guard = {.before = current, .entered = true};
    current = device;
    return guard;
}

void kn_device_leave(kn_device_guard *guard)
{
    if (guard->entered)
        current = guard->before;
    else
        kn_accept_work();
}

int kn_device_index(const kn_device *device) { return device ? device->slot - 1 : -1; }

const char *kn_device_name(const kn_device *device) { return device ? device->properties.name : "no device"; }
const char *kn_device_string(const kn_device *device) { return device ? device->label : "no device"; }
kn_device_type kn_device_get_type(const kn_device *device) { return device ? device->properties.type : KN_DEVICE_HOST; }

kn_status kn_device_get_properties(const kn_device *device, kn_device_properties *properties)
{
    if (!device || !properties)
        return kn_fail_argument_null("kn_device_get_properties", device ? "properties" : "device");
    *properties = device->properties;
    return KN_OK;
}

kn_status kn_device_capability(const kn_device *device, int *major, int *minor)
{
    if (!device || !major || !minor)
        return kn_fail_argument_null("kn_device_capability", device ? "major or minor" : "device");
    *major = device->limits.capability_major;
    *minor = device->limits.capability_minor;
    return KN_OK;
}

const kn_limits *kn_device_limits(const kn_device *device) { return &device->limits; }
bool kn_device_is_host(const kn_device *device) { return device->slot == 0; }
int kn_device_slot(const kn_device *device) { return device->slot; }
const char *kn_device_extensions(const kn_device *device) { return device->extensions; }
