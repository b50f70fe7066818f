/* rt/trace/profile.c - the process's profile: its lists, its recording flags, and the clocks of its devices. */
#include "rt/trace/profile.h"

#include "base/memory.h"
#include "rt/device/device_struct.h"
#include "rt/stream/queue.h"

kn_profile kn_the_profile = {.session = 1};
kn_mutex kn_profile_lock = KN_MUTEX_INIT, kn_profile_harvest = KN_MUTEX_INIT;
atomic_bool kn_watching;
atomic_uint kn_profiler_wishes;

bool kn_profile_reserve(kn_profile *profile, void **items, size_t *capacity, size_t count, size_t size)
{
    if (count < *capacity)
        return true;
    size_t wanted = *capacity ? 2 * *capacity : 1024;
    void *grown = kn_realloc(*items, wanted * size);
    if (!grown) {
        profile->dropped++;
        return false;
    }
    *items = grown;
    *capacity = wanted;
    return true;
}

void kn_profile_forget(kn_profile *profile)
{
    for (size_t i = 0; i < profile->num_pending; i++)
        clReleaseEvent(profile->pending[i].event);
    kn_free(profile->spans);
    kn_free(profile->commands);
    kn_free(profile->steps);
    kn_free(profile->memory);
    kn_free(profile->tracks);
    kn_free(profile->pending);
    kn_intern_free(&profile->names);
    *profile = (kn_profile){.params = profile->params,
                            .phase = profile->phase,
                            .is_running = profile->is_running,
                            .is_changing = profile->is_changing,
                            .is_emitting = profile->is_emitting,
                            .emits_shapes = profile->emits_shapes,
                            .is_timing = profile->is_timing,
                            .step = profile->step,
                            .session = profile->session + 1};
}

void kn_profile_update_watching(kn_profile *profile)
{
    const kn_profiler_params *p = &profile->params;
    bool records = kn_profile_records(profile);
    unsigned wishes =
        (records && p->record_shapes) || (profile->is_emitting && profile->emits_shapes) ? KN_WANTS_SHAPES : 0;
    wishes |= records && p->profile_memory ? KN_WANTS_MEMORY : 0;
    wishes |= records && p->with_flops ? KN_WANTS_WORK : 0;
    wishes |= profile->is_emitting ? KN_WANTS_RANGES : 0;
    if (records && !profile->is_timing)
        kn_timing_begin(); /* first, so that the commands that are watched have times */
    atomic_store_explicit(&kn_profiler_wishes, wishes, memory_order_relaxed);
    atomic_store_explicit(&kn_watching, records || profile->is_emitting, memory_order_relaxed);
    if (!records && profile->is_timing)
        kn_timing_end();
    profile->is_timing = records;
}

/* --- the offset between a device's clock and the host's ---------------------------------------- */

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
