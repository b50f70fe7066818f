/* rt/trace/watch.c - pending commands: each is recorded when it is enqueued; its event stays in a list until it has
 * completed, and is then read in a batch. */
#include "rt/trace/watch.h"

#include "base/memory.h"
#include "rt/device/await.h"
#include "rt/stream/stream_struct.h"
#include "rt/stream/timing.h"
#include "rt/trace/profile.h"

/* With this many pending events, the completed ones are read. The host runs at most a few hundred launches ahead of
 * each stream, so there are never many more. */
#define BATCH 256

/* --- noting a command; the lock is held ------------------------------------------------------- */

static int track_of(kn_profile *profile, kn_stream *stream)
{
    int number = 0;
    uint64_t id = atomic_load(&stream->id);
    for (size_t i = 0; i < profile->num_tracks; i++) {
        if (profile->tracks[i].stream == id)
            return (int)i;
        number += profile->tracks[i].device == stream->device;
    }
    if (!KN_PROFILE_RESERVE(profile, tracks))
        return -1;
    profile->tracks[profile->num_tracks] = (kn_track){id, stream->device, number};
    return (int)profile->num_tracks++;
}

static kn_command_record *note(kn_profile *profile, kn_stream *stream, const kn_command_info *info, int64_t now)
{
    int track = track_of(profile, stream);
    if (track < 0 || !KN_PROFILE_RESERVE(profile, commands))
        return NULL;
    kn_command_record record = {.kind = info->kind,
                                .thread = kn_profile_thread(),
                                .track = track,
                                .parent = kn_profile_innermost(profile),
                                .operation = info->operation ? kn_intern(&profile->names, info->operation) : NULL,
                                .kernel = info->kernel ? kn_intern(&profile->names, info->kernel) : NULL,
                                .dims = info->dims,
                                .bytes = info->bytes,
                                .correlation = kn_profile_correlation,
                                .enqueued = now};
    for (int d = 0; d < info->dims && d < 3; d++) {
        record.global[d] = info->global[d];
        record.local[d] = info->local[d];
    }
    profile->commands[profile->num_commands] = record;
    return &profile->commands[profile->num_commands++];
}

/* Its event is read later. */
static bool note_pending(kn_profile *profile, kn_stream *stream, const kn_command_info *info, cl_event event,
                         int64_t now)
{
    if (!KN_PROFILE_RESERVE(profile, pending) || !note(profile, stream, info, now))
        return false;
    profile->pending[profile->num_pending++] = (kn_pending){event, (int64_t)profile->num_commands - 1};
    return true;
}

/* --- reading events --------------------------------------------------------------------------- */

/* The data read from one event. */
typedef struct reading {
    kn_pending of;
    kn_device *device;
    bool is_done, is_timed;
    cl_ulong queued, submit, start, end;
} reading;

static bool read_times(reading *r)
{
    cl_event event = r->of.event;
    return clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED, sizeof r->queued, &r->queued, NULL) ==
               CL_SUCCESS &&
           clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_SUBMIT, sizeof r->submit, &r->submit, NULL) ==
               CL_SUCCESS &&
           clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof r->start, &r->start, NULL) == CL_SUCCESS &&
           clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof r->end, &r->end, NULL) == CL_SUCCESS &&
           r->end >= r->start && r->start != 0 && r->queued != 0 && kn_timing_has_commands(r->device);
}

static void read_event(reading *r, bool wait)
{
    cl_int status = CL_QUEUED;
    cl_event event = r->of.event;
    if (wait && !kn_device_is_lost(r->device)) /* its events may never complete */
        kn_await_event(event);
    cl_int error = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    r->is_done = wait || error != CL_SUCCESS || status <= CL_COMPLETE; /* negative: it failed */
    if (!r->is_done)
        return;
    r->is_timed = error == CL_SUCCESS && status == CL_COMPLETE && read_times(r);
    clReleaseEvent(r->of.event);
}

/* The lock is held for these. */
static reading reading_of(const kn_profile *profile, const kn_pending *pending)
{
    int track = profile->commands[pending->command].track;
    return (reading){.of = *pending, .device = profile->tracks[track].device};
}

static void store(kn_profile *profile, const reading *r)
{
    kn_command_record *command = &profile->commands[r->of.command];
    command->is_timed = r->is_timed;
    command->queued = r->queued;
    command->submit = r->submit;
    command->start = r->start;
    command->end = r->end;
    if (!r->is_timed)
        return;
    int slot = profile->tracks[command->track].device->slot;
    int64_t ahead = command->enqueued - (int64_t)r->queued;
    if (!profile->clock_known[slot] || ahead < profile->clock_bound[slot])
        profile->clock_bound[slot] = ahead;
    profile->clock_known[slot] = true;
}

/* Takes the pending events, reads those that have completed (all, if `wait`) and returns the others to the list. Does
 * not call the driver under the profile's lock, so other threads can enqueue meanwhile. The caller holds
 * kn_profile_harvest.
 */
static void harvest(kn_profile *profile, bool wait)
{
    kn_lock(&kn_profile_lock);
    size_t count = profile->num_pending;
    uint64_t session = profile->session;
    reading *readings = count ? kn_malloc(count * sizeof *readings) : NULL;
    if (readings) {
        for (size_t i = 0; i < count; i++)
            readings[i] = reading_of(profile, &profile->pending[i]);
        profile->num_pending = 0;
    }
    kn_unlock(&kn_profile_lock);
    if (!readings)
        return; /* out of memory: they stay pending */
    for (size_t i = 0; i < count; i++)
        read_event(&readings[i], wait);
    kn_lock(&kn_profile_lock);
    for (size_t i = 0; i < count; i++) {
        bool is_current = session == profile->session;
        if (readings[i].is_done && is_current)
            store(profile, &readings[i]);
        else if (!readings[i].is_done && is_current && KN_PROFILE_RESERVE(profile, pending))
            profile->pending[profile->num_pending++] = readings[i].of;
        else if (!readings[i].is_done)
            clReleaseEvent(readings[i].of.event);
    }
    kn_unlock(&kn_profile_lock);
    kn_free(readings);
}

void kn_profile_drain(kn_profile *profile)
{
    kn_lock(&kn_profile_harvest);
    harvest(profile, true);
    kn_unlock(&kn_profile_harvest);
}

/* --- the interface ---------------------------------------------------------------------------- */

_Thread_local uint64_t kn_profile_correlation;

uint64_t kn_profiler_correlate(uint64_t correlation)
{
    uint64_t before = kn_profile_correlation;
    kn_profile_correlation = correlation;
    return before;
}

void kn_watch_direct_command(kn_stream *stream, const kn_command_info *info, int64_t began)
{
    kn_profile *profile = &kn_the_profile;
    const int64_t now = kn_clock_now();
    kn_lock(&kn_profile_lock);
    kn_command_record *record = kn_profile_records(profile) ? note(profile, stream, info, began) : NULL;
    if (record) {
        record->is_timed = record->is_direct = true;
        record->queued = record->submit = record->start = (uint64_t)began;
        record->end = (uint64_t)now;
    }
    kn_unlock(&kn_profile_lock);
}

void kn_watch_command(kn_stream *stream, const kn_command_info *info, cl_event event)
{
    kn_profile *profile = &kn_the_profile;
    int64_t now = kn_clock_now();
    kn_lock(&kn_profile_lock);
    bool noted = event && kn_profile_records(profile) && note_pending(profile, stream, info, event, now);
    bool is_time = noted && profile->num_pending % BATCH == 0;
    kn_unlock(&kn_profile_lock);
    if (event && !noted)
        clReleaseEvent(event);
    if (is_time && pthread_mutex_trylock(&kn_profile_harvest) == 0) {
        harvest(profile, false);
        kn_unlock(&kn_profile_harvest);
    }
}
