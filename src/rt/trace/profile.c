/* rt/trace/profile.c - the process's profile: its lists, and its recording flags. */
#include "rt/trace/profile.h"

#include "base/memory.h"
#include "rt/device/opencl.h"

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
    atomic_store_explicit(&kn_profiler_wishes, wishes, memory_order_relaxed);
    atomic_store_explicit(&kn_watching, records || profile->is_emitting, memory_order_relaxed);
}
