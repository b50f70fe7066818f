/* rt/device/lost.c - which errors mean a lost device, and the messages afterwards. */
#include "rt/device/lost.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "base/log.h"
#include "rt/device/inject.h"
#include "rt/device/table.h"

/* What NVIDIA's driver returns after a kernel accessed memory out of bounds; not one of OpenCL's errors. */
#define NV_ILLEGAL_ACCESS (-9999)

typedef enum verdict { IS_LOST, ASK_IT, IS_FINE } verdict;

/* A driver that reports a live queue or context as invalid has lost it; but a queue may also be invalid because the
 * user destroyed its stream. CL_OUT_OF_RESOURCES means "no memory" and, on NVIDIA, is returned when waiting for a
 * crashed kernel. Work that ended abnormally may or may not leave the context usable. In doubt the device is probed. */
static verdict judge(cl_int error)
{
    switch (error) {
    case CL_DEVICE_NOT_AVAILABLE:
    case NV_ILLEGAL_ACCESS:
        return IS_LOST;
    case CL_INVALID_COMMAND_QUEUE:
    case CL_INVALID_CONTEXT:
    case CL_INVALID_DEVICE:
    case CL_OUT_OF_RESOURCES:
    case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST:
        return ASK_IT;
    default:
        return IS_FINE;
    }
}

/* Reads a few bytes on the service queue, where no user's work is waiting. */
static bool answers(kn_device *device)
{
    cl_int word;
    return KN_CL(KN_CL_PROBE, clEnqueueReadBuffer(device->service, device->probe, CL_TRUE, 0, sizeof word, &word, 0,
                                                  NULL, NULL)) == CL_SUCCESS;
}

bool kn_launches_block(void)
{
    static atomic_int known = -1;
    int blocks = atomic_load_explicit(&known, memory_order_relaxed);
    if (blocks < 0) {
        const char *wanted = getenv("KOINE_LAUNCH_BLOCKING");
        blocks = wanted && *wanted && strcmp(wanted, "0") != 0;
        atomic_store_explicit(&known, blocks, memory_order_relaxed);
    }
    return blocks;
}

/* A kernel that accesses invalid memory is reported by whichever call waits for it. */
static const char *how_to_find_the_kernel(cl_int error)
{
    const bool may_be_a_kernel = error != CL_DEVICE_NOT_AVAILABLE && error != CL_INVALID_DEVICE;
    return may_be_a_kernel && !kn_launches_block() ? "; KOINE_LAUNCH_BLOCKING=1 tells at which kernel" : "";
}

static void mark(kn_device *device, cl_int error, const char *what)
{
    if (atomic_exchange(&device->is_losing, true))
        return; /* another thread detected it first and records why */
    snprintf(device->lost_when, sizeof device->lost_when, "%s failed with %s, %d%s", what, kn_cl_error_name(error),
             (int)error, how_to_find_the_kernel(error));
    atomic_store_explicit(&device->is_lost, true, memory_order_release);
    kn_log_message(KN_LOG_ERROR, "%s (%s) was lost: %s", device->label, device->properties.name, device->lost_when);
}

bool kn_device_note_error(const kn_device *constant, cl_int error, const char *what)
{
    kn_device *device = (kn_device *)(uintptr_t)constant; /* the mark belongs to the runtime, not to the caller */
    if (atomic_load(&device->is_lost))
        return true;
    if (!atomic_load(&device->is_open)) /* a device that was never opened cannot be lost */
        return false;
    verdict found = judge(error);
    if (found == ASK_IT)
        found = answers(device) ? IS_FINE : IS_LOST;
    if (found == IS_LOST)
        mark(device, error, what);
    return found == IS_LOST;
}

static void in_child(void)
{
    for (int slot = 1; slot < kn_device_slots(); slot++)
        atomic_store(&kn_device_slot_at(slot)->is_lost, true);
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }

void kn_devices_watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    kn_fork_watch();
    pthread_once(&once, watch_forks);
}

kn_status kn_device_fail_lost(const kn_device *device)
{
    if (kn_is_forked())
        return kn_fail_forked();
    bool is_marked = atomic_load_explicit(&device->is_lost, memory_order_acquire);
    return kn_fail(KN_ERR_DEVICE,
                   "%s (%s) was lost (%s): its contents are gone, and it can only be used again by a new process",
                   device->label, device->properties.name, is_marked ? device->lost_when : "it no longer answers");
}

bool kn_device_is_lost(const kn_device *device) { return device && atomic_load(&device->is_lost); }

kn_status kn_cl_fail(cl_int error, const kn_device *device, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (kn_device_note_error(device, error, what))
        return kn_device_fail_lost(device);
    const char *remedy =
        error == CL_MEM_OBJECT_ALLOCATION_FAILURE ? ": the device's memory is used up; a smaller batch needs less" : "";
    return kn_fail(kn_cl_is_out_of_memory(error) ? KN_ERR_MEMORY : KN_ERR_DEVICE, "%s failed on %s (%s): %s (%d)%s",
                   what, device->label, device->properties.name, kn_cl_error_name(error), error, remedy);
}
