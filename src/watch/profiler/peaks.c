/* watch/profiler/peaks.c - the peaks that a profile's work is compared with.
 *
 * Measuring allocates and launches kernels, which take the profile's lock: it must be done before the profile is locked
 * for an analysis. */
#include "base/error.h"
#include "base/log.h"
#include "rt/device/device.h"
#include "watch/peak.h"
#include "watch/profiler/analysis.h"

typedef struct wanted {
    kn_device *device;
    bool f32, f64;
} wanted;

/* One entry per device with commands. Returns how many; the lock is held. */
static int find_wanted(wanted list[KN_MAX_DEVICES], const kn_profile *profile)
{
    int count = 0, place[KN_MAX_DEVICES] = {0}; /* in the list, from 1 */
    for (size_t i = 0; i < profile->num_commands; i++) {
        const kn_command_record *command = &profile->commands[i];
        kn_device *device = profile->tracks[command->track].device;
        if (place[kn_device_slot(device)] == 0) {
            list[count] = (wanted){.device = device};
            place[kn_device_slot(device)] = ++count;
        }
        wanted *w = &list[place[kn_device_slot(device)] - 1];
        for (int64_t at = command->parent; at >= 0; at = profile->spans[at].parent) {
            const kn_span_work *work = &profile->spans[at].work;
            w->f64 |= work->flops > 0 && work->is_f64;
            w->f32 |= work->flops > 0 && !work->is_f64;
        }
    }
    return count;
}

static void measure(const wanted *w)
{
    double unused;
    KN_PRESERVE_ERROR;
    bool fine = (!w->f32 || kn_peak_flops(w->device, false, &unused) == KN_OK) &&
                (!w->f64 || kn_peak_flops(w->device, true, &unused) == KN_OK) &&
                kn_peak_bytes(w->device, &unused) == KN_OK;
    if (!fine)
        kn_log_message(KN_LOG_WARNING, "the peaks of %s could not be measured: %s", kn_device_string(w->device),
                       kn_error_message());
}

void kn_profile_measure_peaks(void)
{
    const kn_profile *profile = &kn_the_profile;
    wanted list[KN_MAX_DEVICES];
    kn_lock(&kn_profile_lock);
    bool asked = profile->has_results && profile->params.with_flops && !kn_profile_records(profile);
    int count = asked ? find_wanted(list, profile) : 0;
    kn_unlock(&kn_profile_lock);
    for (int i = 0; i < count; i++)
        measure(&list[i]);
}
