/* rt/trace/profiler.c - starting the profiler, the schedule's steps, stopping it. */
#include <koine/profiler.h>

#include "base/error.h"
#include "rt/device/table.h"
#include "rt/stream/open.h"
#include "rt/stream/submit.h"
#include "rt/trace/profile.h"
#include "rt/trace/range_tools.h"

/* --- the schedule ----------------------------------------------------------------------------- */

/* The step's phase by torch.profiler.schedule. `last`: it is the last one of its cycle. */
static kn_phase phase_of_step(const kn_profiler_params *p, int step, bool *last)
{
    *last = false;
    if (p->active == 0)
        return KN_PHASE_ACTIVE;
    if (step < p->skip_first)
        return KN_PHASE_WAIT;
    step -= p->skip_first;
    int cycle = p->wait + p->warmup + p->active;
    if (p->repeat > 0 && step / cycle >= p->repeat)
        return KN_PHASE_WAIT;
    int at = step % cycle;
    *last = at == cycle - 1;
    return at < p->wait ? KN_PHASE_WAIT : at < p->wait + p->warmup ? KN_PHASE_WARMUP : KN_PHASE_ACTIVE;
}

/* The lock is held. */
static void enter_phase(kn_profile *profile, kn_phase phase)
{
    if (phase != profile->phase && phase != KN_PHASE_WAIT) { /* warm-up or recording begins, without records */
        kn_profile_forget(profile);
        profile->has_results = false;
        profile->started = kn_clock_now();
    }
    profile->phase = phase;
    profile->step_started = kn_clock_now();
    kn_profile_update_watching(profile);
}

static void note_step(kn_profile *profile, int64_t now)
{
    if (profile->params.active > 0 && profile->phase == KN_PHASE_ACTIVE && KN_PROFILE_RESERVE(profile, steps))
        profile->steps[profile->num_steps++] = (kn_step_record){profile->step, profile->step_started, now};
}

/* Other threads enqueue replays (rt/stream/submit.h): waits for them, so that all replays so far are recorded. No lock
 * may be held, since those threads take it. */
static void await_replays(void)
{
    for (int slot = 1; slot < kn_device_slots(); slot++) {
        kn_device *device = kn_device_slot_at(slot);
        kn_stream *stream;
        if (!atomic_load_explicit(&device->is_open, memory_order_acquire))
            continue;
        unsigned long long id = 0;
        while ((stream = kn_device_next_stream(device, &id)))
            kn_submitter_drain(stream);
    }
}

/* Ends the recording and calls the user's function. The lock is held on entry and return, but not during the call, when
 * `is_changing` keeps other threads out. */
static void finish_recording(kn_profile *profile)
{
    kn_unlock(&kn_profile_lock);
    await_replays();
    kn_lock(&kn_profile_lock);
    profile->phase = KN_PHASE_ENDING;
    kn_profile_update_watching(profile);
    kn_unlock(&kn_profile_lock);
    kn_profile_drain(profile);
    kn_lock(&kn_profile_lock);
    profile->stopped = kn_clock_now();
    kn_profile_close_open_spans(profile, profile->stopped);
    profile->has_results = true;
    void (*ready)(void *) = profile->params.on_trace_ready;
    void *user = profile->params.user;
    if (!ready)
        return;
    kn_unlock(&kn_profile_lock);
    ready(user);
    kn_lock(&kn_profile_lock);
}

/* The lock is held, and stays so in either case. */
static kn_status begin_change(kn_profile *profile, const char *function, bool should_run)
{
    if (profile->is_changing)
        return kn_fail(KN_ERR_STATE,
                       "%s: the profiler is being started, stepped or stopped just now, or its "
                       "on_trace_ready runs",
                       function);
    if (profile->is_running != should_run)
        return should_run ? kn_fail(KN_ERR_STATE, "%s: the profiler is not running", function)
                          : kn_fail(KN_ERR_STATE,
                                    "%s: the profiler is running already; there is one per process, kn_profiler_stop "
                                    "ends it",
                                    function);
    profile->is_changing = true;
    return KN_OK;
}

/* --- the interface ---------------------------------------------------------------------------- */

static kn_status check_params(const kn_profiler_params *p)
{
    if (p->skip_first < 0 || p->wait < 0 || p->warmup < 0 || p->active < 0 || p->repeat < 0)
        return kn_fail(KN_ERR_ARGUMENT,
                       "kn_profiler_start: a schedule counts steps from 0 up, not skip_first %d, wait "
                       "%d, warmup %d, active %d, repeat %d",
                       p->skip_first, p->wait, p->warmup, p->active, p->repeat);
    if (p->active == 0 && (p->skip_first || p->wait || p->warmup || p->repeat))
        return kn_fail(KN_ERR_ARGUMENT, "kn_profiler_start: a schedule must have active steps; active is 0");
    if ((int64_t)p->wait + p->warmup + p->active > INT32_MAX)
        return kn_fail(KN_ERR_ARGUMENT, "kn_profiler_start: a schedule of more than %d steps", INT32_MAX);
    return KN_OK;
}

kn_profiler_params kn_profiler_params_init(void) { return (kn_profiler_params){KN_PROFILER_DEFAULTS}; }

kn_status kn_profiler_start_with(const kn_profiler_params *params)
{
    kn_profile *profile = &kn_the_profile;
    bool last;
    params = params ? params : &(kn_profiler_params){KN_PROFILER_DEFAULTS};
    KN_TRY(check_params(params));
    kn_range_tools_find();
    kn_lock(&kn_profile_lock);
    kn_status status = begin_change(profile, "kn_profiler_start", false);
    if (status == KN_OK) {
        kn_profile_forget(profile);
        profile->params = *params;
        profile->is_running = true;
        profile->step = 0;
        enter_phase(profile, phase_of_step(params, 0, &last));
        profile->is_changing = false;
    }
    kn_unlock(&kn_profile_lock);
    return status;
}

bool kn_profiler_enter(const kn_profiler_params *params)
{
    if (kn_profiler_start_with(params) == KN_OK)
        return true;
    kn_error_make_sticky();
    return false;
}

kn_status kn_profiler_step(void)
{
    kn_profile *profile = &kn_the_profile;
    bool ends, last;
    kn_lock(&kn_profile_lock);
    kn_status status = begin_change(profile, "kn_profiler_step", true);
    if (status == KN_OK) {
        note_step(profile, kn_clock_now());
        phase_of_step(&profile->params, profile->step, &ends);
        if (ends)
            finish_recording(profile);
        profile->step++;
        enter_phase(profile, phase_of_step(&profile->params, profile->step, &last));
        profile->is_changing = false;
    }
    kn_unlock(&kn_profile_lock);
    return status;
}

kn_status kn_profiler_stop(void)
{
    kn_profile *profile = &kn_the_profile;
    kn_lock(&kn_profile_lock);
    kn_status status = begin_change(profile, "kn_profiler_stop", true);
    if (status == KN_OK) {
        if (profile->phase == KN_PHASE_ACTIVE)
            finish_recording(profile);
        else if (profile->phase == KN_PHASE_WARMUP)
            kn_profile_forget(profile);
        profile->phase = KN_PHASE_OFF;
        profile->is_running = profile->is_changing = false;
        kn_profile_update_watching(profile);
    }
    kn_unlock(&kn_profile_lock);
    return status;
}

bool kn_profiler_is_running(void)
{
    kn_lock(&kn_profile_lock);
    bool running = kn_the_profile.is_running;
    kn_unlock(&kn_profile_lock);
    return running;
}

void kn_profiler_clear(void)
{
    kn_lock(&kn_profile_lock);
    if (!kn_the_profile.is_running)
        kn_profile_forget(&kn_the_profile);
    kn_unlock(&kn_profile_lock);
}

bool kn_emit_ranges(bool enabled, bool record_shapes)
{
    if (enabled)
        kn_range_tools_find();
    kn_lock(&kn_profile_lock);
    kn_the_profile.is_emitting = enabled && kn_has_range_tools();
    kn_the_profile.emits_shapes = enabled && record_shapes;
    kn_profile_update_watching(&kn_the_profile);
    kn_unlock(&kn_profile_lock);
    return kn_has_range_tools();
}
