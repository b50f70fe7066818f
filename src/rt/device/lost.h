/* rt/device/lost.h - OpenCL's errors, and lost devices: reset by the driver after a fault or a hang, unplugged, or
 * detached from a virtual machine.
 *
 * OpenCL offers no recovery within a process: the context is dead, and a driver may do anything with further calls,
 * even wait forever. So the first error that means a lost device marks it, and from then on nothing is enqueued, waited
 * for or allocated on it: such calls return KN_ERR_DEVICE immediately. Releasing is still allowed. */
#pragma once

#include "base/error.h"
#include "rt/device/device_struct.h"

/* "CL_OUT_OF_RESOURCES" for -5. */
const char *kn_cl_error_name(cl_int error);
bool kn_cl_is_out_of_memory(cl_int error);

/* KN_ERR_DEVICE: "gpu:0 (NAME) was lost (running kernel `x` failed with ...): ...". */
kn_status kn_device_fail_lost(const kn_device *device);

/* In forked processes all devices found so far are lost: their queues exist, the drivers' threads do not. */
void kn_devices_watch_forks(void);

/* Before anything is enqueued, waited for or allocated. One relaxed load. */
static inline kn_status kn_device_check_lost(const kn_device *device)
{
    return atomic_load_explicit(&device->is_lost, memory_order_relaxed) ? kn_device_fail_lost(device) : KN_OK;
}

/* Marks the device as lost if the error of an OpenCL call on it means that; `what` describes the call ("running kernel
 * `x`"). If the error is ambiguous (it may mean out of memory), probes the device. Returns whether the device is
 * lost. */
bool kn_device_note_error(const kn_device *device, cl_int error, const char *what);

/* Reports an OpenCL error: "WHAT failed on DEVICE: CL_NAME", as KN_ERR_MEMORY if it means that memory ran out,
 * otherwise KN_ERR_DEVICE. An error that means a lost device marks the device, and the message says so instead. */
kn_status kn_cl_fail(cl_int error, const kn_device *device, const char *format, ...) KN_PRINTF(3, 4);

/* KOINE_LAUNCH_BLOCKING=1: every launch waits until its kernel is done, so that an error is that kernel's. */
bool kn_launches_block(void);
