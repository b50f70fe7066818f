/* watch/profiler/timeline.c - the trace, in the JSON that Chrome and Perfetto read ("Trace Event Format").
 *
 * Events are written one by one, so that a long profile needs no tree in memory. Process 0 is the host, with a track
 * per thread and one for the schedule's steps; each device is a process, with a track per stream; one more has the
 * calls of groups. In the trace of several ranks each rank is one process, with all these tracks. Category names are
 * PyTorch's, so that tools for its traces understand them. */
#include "watch/profiler/timeline.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "rt/device/device.h"
#include "watch/profiler/trace.h"

#define STEPS_TRACK 0

/* --- the host --------------------------------------------------------------------------------- */

static kn_status write_async(kn_trace *t, const kn_span_record *span, size_t number)
{
    for (int end = 0; end < 2; end++) {
        cJSON *event = kn_trace_event(t, end ? "e" : "b", "range", span->name, KN_TRACE_HOST, span->thread,
                                      kn_trace_host_time(t, end ? span->end : span->start));
        kn_trace_add_id(event, t, number);
        KN_TRY(kn_trace_emit(t, event));
    }
    return KN_OK;
}

static kn_status write_span(kn_trace *t, size_t number)
{
    const kn_span_record *span = &t->profile->spans[number];
    double start = kn_trace_host_time(t, span->start);
    if (span->kind == KN_SPAN_CALL || span->kind == KN_SPAN_PART)
        return kn_trace_write_call_span(t, number);
    if (span->kind == KN_SPAN_ASYNC)
        return write_async(t, span, number);
    if (span->kind == KN_SPAN_MARK) {
        cJSON *mark = kn_trace_event(t, "i", "user_annotation", span->name, KN_TRACE_HOST, span->thread, start);
        cJSON_AddStringToObject(mark, "s", "t");
        return kn_trace_emit(t, mark);
    }
    cJSON *event = kn_trace_event(t, "X", span->kind == KN_SPAN_OP ? "cpu_op" : "user_annotation", span->name,
                                  KN_TRACE_HOST, span->thread, start);
    kn_trace_add_time(event, "dur", t->analysis->spans[number].cpu);
    cJSON *args = cJSON_AddObjectToObject(event, "args");
    if (span->shapes)
        cJSON_AddRawToObject(args, "Input Dims", span->shapes);
    if (span->dtypes)
        cJSON_AddRawToObject(args, "Input type", span->dtypes);
    if (span->kind == KN_SPAN_OP)
        kn_trace_add_work(args, span->work.flops, span->work.bytes);
    if (span->was_cut)
        cJSON_AddTrueToObject(args, "still open at the end");
    return kn_trace_emit(t, event);
}

static kn_status write_steps(kn_trace *t)
{
    for (size_t i = 0; i < t->profile->num_steps; i++) {
        const kn_step_record *step = &t->profile->steps[i];
        char text[48];
        snprintf(text, sizeof text, "ProfilerStep#%d", step->number);
        cJSON *event = kn_trace_event(t, "X", "user_annotation", text, KN_TRACE_HOST, STEPS_TRACK,
                                      kn_trace_host_time(t, step->start));
        kn_trace_add_time(event, "dur", (double)(step->end - step->start) * 1e-3);
        KN_TRY(kn_trace_emit(t, event));
    }
    return t->profile->num_steps > 0 ? kn_trace_name_track(t, KN_TRACE_HOST, STEPS_TRACK, "", "steps") : KN_OK;
}

static kn_status name_threads(kn_trace *t)
{
    char text[32];
    int last = 0;
    KN_TRY(kn_trace_name_process(t, KN_TRACE_HOST, "host"));
    for (size_t i = 0; i < t->profile->num_spans; i++)
        last = t->profile->spans[i].thread > last ? t->profile->spans[i].thread : last;
    bool *seen = kn_calloc((size_t)last + 1, sizeof *seen);
    kn_status status = seen ? KN_OK : KN_ERR_MEMORY;
    for (size_t i = 0; i < t->profile->num_spans && seen; i++) {
        const kn_span_record *span = &t->profile->spans[i];
        seen[span->thread] |= span->kind != KN_SPAN_CALL && span->kind != KN_SPAN_PART;
    }
    for (int thread = 1; thread <= last && status == KN_OK; thread++) {
        snprintf(text, sizeof text, "thread %d", thread);
        if (seen[thread])
            status = kn_trace_name_track(t, KN_TRACE_HOST, thread, "host", text);
    }
    kn_free(seen);
    return status;
}

/* --- the devices ------------------------------------------------------------------------------ */

static void add_sizes(cJSON *args, const char *key, int dims, const size_t *sizes)
{
    cJSON *list = cJSON_AddArrayToObject(args, key);
    for (int d = 0; d < dims; d++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber((double)sizes[d]));
}

static void describe_command(cJSON *args, const kn_trace *t, size_t number)
{
    const kn_command_record *command = &t->profile->commands[number];
    const kn_command_figures *figures = &t->analysis->commands[number];
    double ideal = figures->ideal_compute > figures->ideal_memory ? figures->ideal_compute : figures->ideal_memory;
    if (command->operation)
        kn_trace_add_text(args, "operation", command->operation);
    if (command->parent >= 0)
        kn_trace_add_text(args, "enqueued by", t->profile->spans[command->parent].name);
    if (command->kind == KN_COMMAND_KERNEL) {
        add_sizes(args, "global", command->dims, command->global);
        if (command->dims > 0 && command->local[0] > 0)
            add_sizes(args, "local", command->dims, command->local);
    }
    kn_trace_add_time(args, "queued us", (double)(int64_t)(command->submit - command->queued) * 1e-3);
    kn_trace_add_time(args, "submitted us", (double)(int64_t)(command->start - command->submit) * 1e-3);
    kn_trace_add_work(args, figures->flops, figures->bytes);
    if (figures->flops > 0 && figures->time > 0)
        cJSON_AddNumberToObject(args, "GFLOP/s", figures->flops / figures->time * 1e-3);
    if (figures->bytes > 0 && figures->time > 0)
        cJSON_AddNumberToObject(args, "GB/s", figures->bytes / figures->time * 1e-3);
    if (ideal > 0 && figures->time > 0)
        cJSON_AddNumberToObject(args, "share of peak", ideal / figures->time);
}

/* An arrow from the time of the enqueue, inside the operation, to the command. */
static kn_status write_arrow(kn_trace *t, size_t number, int process, int track)
{
    const kn_command_record *command = &t->profile->commands[number];
    const kn_span_record *span = &t->profile->spans[command->parent];
    int64_t from = command->enqueued < span->end ? command->enqueued : span->end;
    cJSON *event =
        kn_trace_event(t, "s", "ac2g", "enqueue", KN_TRACE_HOST, command->thread, kn_trace_host_time(t, from));
    kn_trace_add_id(event, t, number);
    KN_TRY(kn_trace_emit(t, event));
    event = kn_trace_event(t, "f", "ac2g", "enqueue", process, track,
                           kn_trace_time(t, t->analysis->commands[number].start));
    kn_trace_add_id(event, t, number);
    cJSON_AddStringToObject(event, "bp", "e"); /* ends at the event that begins then */
    return kn_trace_emit(t, event);
}

static kn_status write_command(kn_trace *t, size_t number)
{
    const kn_command_record *command = &t->profile->commands[number];
    const kn_command_figures *figures = &t->analysis->commands[number];
    const kn_track *track = &t->profile->tracks[command->track];
    const char *category = command->kind == KN_COMMAND_KERNEL ? "kernel"
                           : command->kind == KN_COMMAND_FILL ? "gpu_memset"
                                                              : "gpu_memcpy";
    if (!command->is_timed)
        return KN_OK;
    cJSON *event = kn_trace_event(t, "X", category, kn_command_name(command), kn_device_slot(track->device),
                                  track->number, kn_trace_time(t, figures->start));
    kn_trace_add_time(event, "dur", figures->time);
    describe_command(cJSON_AddObjectToObject(event, "args"), t, number);
    KN_TRY(kn_trace_emit(t, event));
    const bool has_origin = command->parent >= 0 && t->profile->spans[command->parent].kind != KN_SPAN_PART;
    return has_origin ? write_arrow(t, number, kn_device_slot(track->device), track->number) : KN_OK;
}

static kn_status name_streams(kn_trace *t)
{
    char text[160];
    for (size_t i = 0; i < t->profile->num_tracks; i++) {
        const kn_track *track = &t->profile->tracks[i];
        const kn_device *device = track->device;
        snprintf(text, sizeof text, "%s (%.120s)", kn_device_string(device), kn_device_name(device));
        if (track->number == 0)
            KN_TRY(kn_trace_name_process(t, kn_device_slot(device), text));
        snprintf(text, sizeof text, "stream %d", track->number);
        KN_TRY(kn_trace_name_track(t, kn_device_slot(device), track->number, kn_device_string(device), text));
    }
    return KN_OK;
}

static kn_status write_memory(kn_trace *t)
{
    for (size_t i = 0; i < t->profile->num_memory; i++) {
        const kn_memory_record *record = &t->profile->memory[i];
        char text[64];
        snprintf(text, sizeof text, "memory%s%.40s", t->of ? " of " : "",
                 t->of ? kn_device_string(record->device) : "");
        cJSON *event =
            kn_trace_event(t, "C", NULL, text, kn_device_slot(record->device), 0, kn_trace_host_time(t, record->time));
        cJSON *args = cJSON_AddObjectToObject(event, "args");
        cJSON_AddNumberToObject(args, "allocated", (double)record->allocated);
        cJSON_AddNumberToObject(args, "cached", (double)(record->reserved - record->allocated));
        KN_TRY(kn_trace_emit(t, event));
    }
    return KN_OK;
}

/* --- the file --------------------------------------------------------------------------------- */

static kn_status write_events(kn_trace *t)
{
    KN_TRY(name_threads(t));
    KN_TRY(name_streams(t));
    KN_TRY(kn_trace_name_calls(t));
    KN_TRY(write_steps(t));
    for (size_t i = 0; i < t->profile->num_spans; i++)
        KN_TRY(write_span(t, i));
    for (size_t i = 0; i < t->profile->num_commands; i++)
        KN_TRY(write_command(t, i));
    KN_TRY(kn_trace_write_copies(t));
    return write_memory(t);
}

/* The lock is held. */
static kn_status write_profile(kn_trace *t, const char *function)
{
    kn_analysis analysis = {0};
    kn_communication communication = {0};
    KN_TRY(kn_profile_check_results(t->profile, function));
    KN_TRY(kn_profile_analyse(&analysis, t->profile, t->profile->params.with_flops));
    t->analysis = &analysis;
    t->communication = &communication;
    kn_status status = kn_profile_communication(&communication, t->profile, &analysis);
    if (status == KN_OK)
        status = write_events(t);
    t->analysis = NULL;
    t->communication = NULL;
    kn_communication_free(&communication);
    kn_analysis_free(&analysis);
    return status;
}

const char kn_trace_opening[] = "{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
const char kn_trace_closing[] = "\n]}\n";

static kn_status write_to_file(void *to, const char *text) { return kn_file_write(to, text, strlen(text)); }

static kn_status write_file(const kn_profile *profile, const char *path)
{
    const char *function = "kn_profiler_export_chrome_trace";
    kn_atomic_file file = {0};
    kn_trace t = {.write = write_to_file, .to = &file, .profile = profile, .origin = profile->started};
    KN_TRY(kn_profile_check_results(profile, function));
    KN_TRY(kn_file_begin(&file, path));
    kn_status status = write_to_file(&file, kn_trace_opening);
    if (status == KN_OK)
        status = write_profile(&t, function);
    if (status == KN_OK)
        status = write_to_file(&file, kn_trace_closing);
    return kn_file_end(&file, status);
}

kn_status kn_profiler_export_chrome_trace(const char *path)
{
    if (!path)
        return kn_fail_argument_null("kn_profiler_export_chrome_trace", "path");
    kn_profile_measure_peaks();
    kn_lock(&kn_profile_lock);
    kn_status status = write_file(&kn_the_profile, path);
    kn_unlock(&kn_profile_lock);
    return status;
}

/* --- of one rank among several ---------------------------------------------------------------- */

static kn_status write_to_text(void *to, const char *text)
{
    kn_text *written = to;
    kn_text_append(written, text);
    return written->failed ? KN_ERR_MEMORY : KN_OK;
}

kn_status kn_profile_trace_of_rank(kn_text *text, const kn_trace_rank *rank, const char *function)
{
    kn_profile_measure_peaks();
    kn_lock(&kn_profile_lock);
    kn_trace t = {.write = write_to_text, .to = text, .profile = &kn_the_profile, .origin = rank->origin, .of = rank};
    char title[192];
    snprintf(title, sizeof title, "rank %d (%s)", rank->rank, rank->host);
    kn_status status = kn_trace_name(&t, "process_name", KN_TRACE_HOST, 0, title);
    if (status == KN_OK)
        status = write_profile(&t, function);
    kn_unlock(&kn_profile_lock);
    return status;
}

kn_status kn_profile_started(int64_t *started, const char *function)
{
    kn_lock(&kn_profile_lock);
    kn_status status = kn_profile_check_results(&kn_the_profile, function);
    *started = kn_the_profile.started;
    kn_unlock(&kn_profile_lock);
    return status;
}
