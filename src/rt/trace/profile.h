/* rt/trace/profile.h - the process's profile: what is recorded while the profiler runs.
 *
 * Host side: spans (rt/trace/spans.h), appended under the profile's lock as they begin. Device side: commands; their
 * OpenCL events wait in a list and are read in batches once they have completed (rt/trace/watch.c), so that a long run
 * holds few of them. Both kinds are kept by index: the arrays move when they grow. All times are nanoseconds of
 * CLOCK_MONOTONIC; those of devices stay on the device's clock until kn_profile_clock_offset is added. */
#pragma once

#include <koine/profiler.h>

#include "base/clock.h"
#include "base/intern.h"
#include "base/threads.h"
#include "rt/device/device.h"
#include "rt/trace/spans.h"

/* --- records ---------------------------------------------------------------------------------- */

typedef struct kn_span_record {
    kn_span_kind kind;
    bool is_open, was_cut;              /* closed by the stop, not by its owner */
    int thread;                         /* numbered from 1 as threads first appear */
    int64_t parent;                     /* the span around it on its thread; -1: none */
    const char *name, *shapes, *dtypes; /* interned; the last two may be NULL */
    int64_t start, end;
    kn_span_work work; /* of operations, when asked for */
    uint64_t memory_before;
    int64_t memory; /* bytes allocated minus bytes freed meanwhile */
} kn_span_record;

typedef struct kn_command_record {
    kn_command_kind kind;
    bool is_timed, is_direct; /* direct: the host has run it (rt/direct/direct.h), and all times are the host's */
    int thread, track;
    int64_t parent;                 /* the span that enqueued it; -1: none */
    const char *operation, *kernel; /* interned; may be NULL */
    int dims;
    size_t global[3], local[3], bytes;
    uint64_t correlation;                /* the user's: kn_profiler_correlate */
    int64_t enqueued;                    /* host: just after the call that enqueued it */
    uint64_t queued, submit, start, end; /* of the device's clock */
} kn_command_record;

/* A stream that commands were enqueued on. */
typedef struct kn_track {
    uint64_t stream; /* its id, unique in the process */
    kn_device *device;
    int number; /* among the device's tracks, from 0 */
} kn_track;

typedef struct kn_step_record {
    int number;
    int64_t start, end;
} kn_step_record;

typedef struct kn_memory_record {
    int64_t time;
    kn_device *device;
    uint64_t allocated, reserved;
} kn_memory_record;

/* An event that has not been read yet. */
typedef struct kn_pending {
    void *event; /* a cl_event */
    int64_t command;
} kn_pending;

/* --- the profile ------------------------------------------------------------------------------ */

typedef enum kn_phase { KN_PHASE_OFF, KN_PHASE_WAIT, KN_PHASE_WARMUP, KN_PHASE_ACTIVE, KN_PHASE_ENDING } kn_phase;

typedef struct kn_profile {
    kn_profiler_params params;
    kn_phase phase;
    bool is_running;  /* between start and stop */
    bool is_changing; /* a start, step or stop is in progress, including the user's on_trace_ready */
    bool is_emitting, emits_shapes;
    bool is_timing; /* streams use queues with times for it */
    bool has_results;
    uint64_t session; /* changes whenever the records are discarded */
    int64_t started, stopped;
    int step; /* of the schedule, from 0 */
    int64_t step_started;

    kn_intern_table names;
    kn_span_record *spans;
    kn_command_record *commands;
    kn_step_record *steps;
    kn_memory_record *memory;
    kn_track *tracks;
    kn_pending *pending;
    size_t num_spans, num_commands, num_steps, num_memory, num_tracks, num_pending;
    size_t spans_capacity, commands_capacity, steps_capacity, memory_capacity, tracks_capacity, pending_capacity;
    int64_t cut, dropped;
    size_t
        last_memory[KN_MAX_DEVICES]; /* per device slot: the index of its latest entry in `memory`, from 1; 0: none */

    /* Per device slot: the smallest difference between the host time just after a command was enqueued and the
     * command's queued time, a close upper bound on the offset between the clocks. */
    int64_t clock_bound[KN_MAX_DEVICES];
    bool clock_known[KN_MAX_DEVICES];
} kn_profile;

extern kn_profile kn_the_profile;
extern kn_mutex kn_profile_lock;    /* guards it */
extern kn_mutex kn_profile_harvest; /* held while events are read; taken before kn_profile_lock */

/* The lock is held for these. */

/* Makes room for one more of `*items`; false, counted as dropped, when memory is short. */
bool kn_profile_reserve(kn_profile *profile, void **items, size_t *capacity, size_t count, size_t size);
#define KN_PROFILE_RESERVE(profile, list)                                                                              \
    kn_profile_reserve(profile, (void **)&(profile)->list, &(profile)->list##_capacity, (profile)->num_##list,         \
                       sizeof *(profile)->list)
static inline bool kn_profile_records(const kn_profile *profile)
{
    return profile->phase == KN_PHASE_WARMUP || profile->phase == KN_PHASE_ACTIVE;
}
void kn_profile_forget(kn_profile *profile); /* frees all records and releases the events; a new session */
void kn_profile_update_watching(kn_profile *profile);

/* The calling thread's number, and its innermost open span in this session (-1: none). spans.c */
int kn_profile_thread(void);
int64_t kn_profile_innermost(const kn_profile *profile);
void kn_profile_close_open_spans(kn_profile *profile, int64_t now);

/* Waits for the pending events and reads them; `lock` is not held. watch.c */
void kn_profile_drain(kn_profile *profile);

/* Device time + offset = host time. */
int64_t kn_profile_clock_offset(const kn_profile *profile, kn_device *device);
