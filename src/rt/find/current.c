/* rt/find/current.c - the calling thread's current device. */
#include <koine/device.h>

#include "base/error.h"
#include "rt/stream/wait.h"

static _Thread_local kn_device *current;

kn_device *kn_device_current(void)
{
    if (!current)
        current = kn_device_open("auto");
    return current;
}

kn_status kn_device_set_current(kn_device *device)
{
    if (!device)
        return kn_fail_argument_null("kn_device_set_current", "device");
    current = device;
    return KN_OK;
}

kn_status kn_synchronize(kn_device *device)
{
    if (!device)
        device = kn_device_current();
    return device ? kn_device_synchronize(device) : kn_error_status();
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
    if (!guard)
        return;
    if (guard->entered)
        current = guard->before;
    else
        kn_accept_work();
}
