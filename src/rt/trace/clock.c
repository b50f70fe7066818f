/* rt/trace/clock.c - the offset between a device's clock and the host's. */
#include "rt/device/device_struct.h"
#include "rt/trace/profile.h"

/* A device's timer read between two readings of the host's; the closest pair of several. OpenCL 2.1; drivers of 3.0 may
 * refuse (PoCL 3.1 does). */
static bool ask_device(kn_device *device, int64_t *offset)
{
    if (device->limits.opencl_version < 210)
        return false;
    int64_t narrowest = INT64_MAX;
    for (int i = 0; i < 5; i++) {
        cl_ulong device_time, host_time; /* the latter's clock is not specified by OpenCL */
        int64_t before = kn_clock_now();
        if (clGetDeviceAndHostTimer(device->id, &device_time, &host_time) != CL_SUCCESS)
            return false;
        int64_t after = kn_clock_now();
        if (after - before < narrowest) {
            narrowest = after - before;
            *offset = before + (after - before) / 2 - (int64_t)device_time;
        }
    }
    return true;
}

/* The commands' times bound the offset from above, to within the few microseconds of an enqueue. The timer is more
 * exact, unless it contradicts that bound: then it is not the events' clock. */
int64_t kn_profile_clock_offset(const kn_profile *profile, kn_device *device)
{
    const int64_t slack = 1000000; /* 1 ms */
    int64_t offset = 0, bound = profile->clock_bound[device->slot];
    if (!profile->clock_known[device->slot])
        return 0;
    bool agrees = ask_device(device, &offset) && offset <= bound + slack && offset >= bound - slack;
    return agrees ? offset : bound;
}
