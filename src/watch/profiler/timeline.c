/* watch/profiler/timeline.c - the trace, in the JSON that Chrome and Perfetto read ("Trace Event Format").
 *
 * Events are written one by one, so that a long profile needs no tree in memory. Process 0 is the host, with a track
 * per thread and one for the schedule's steps; each device is a process, with a track per stream. Category names are
 * PyTorch's, so that tools for its traces understand them. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/utf8.h"
#include "rt/device/device.h"
#include "watch/profiler/analysis.h"

#define HOST_PROCESS 0
#define STEPS_TRACK 0

typedef struct trace {
    kn_atomic_file file;
    const kn_profile *profile;
    const kn_analysis *analysis;
    int64_t events;
} trace;

/* --- events ----------------------------------------------------------------------------------- */

/* Microseconds with three decimals, that is, exact nanoseconds, so that nesting is preserved. Uses integers, because
 * the program's locale may have another decimal point. */
static void add_time(cJSON *event, const char *key, double us)
{
    char text[48];
    int64_t ns = llround(us * 1e3), size = ns < 0 ? -ns : ns;
    snprintf(text, sizeof text, "%s%" PRId64 ".%03d", ns < 0 ? "-" : "", size / 1000, (int)(size % 1000));
    cJSON_AddRawToObject(event, key, text);
}

/* JSON is UTF-8; names of ranges or devices may not be. */
static void add_text(cJSON *object, const char *key, const char *value)
{
    kn_text text = {0};
    kn_text_append_utf8(&text, value);
    char *sound = kn_text_finish(&text);
    cJSON_AddStringToObject(object, key, sound ? sound : "(out of memory)");
    kn_free(sound);
}

static cJSON *new_event(const char *phase, const char *category, const char *name, int process, int track, double time)
{
    cJSON *event = cJSON_CreateObject();
    if (!event)
        return NULL;
    cJSON_AddStringToObject(event, "ph", phase);
    if (category)
        cJSON_AddStringToObject(event, "cat", category);
    add_text(event, "name", name);
    cJSON_AddNumberToObject(event, "pid", process);
    cJSON_AddNumberToObject(event, "tid", track);
    add_time(event, "ts", time);
    return event;
}

/* Writes the event and frees it. */
static kn_status emit(trace *t, cJSON *event)
{
    char *text = event ? cJSON_PrintUnformatted(event) : NULL;
    cJSON_Delete(event);
    if (!text)
        return kn_fail_host_memory(0, "a trace");
    kn_status status = KN_OK;
    if (t->events++ > 0)
        status = kn_file_write(&t->file, ",\n", 2);
    if (status == KN_OK)
        status = kn_file_write(&t->file, text, strlen(text));
    cJSON_free(text);
    return status;
}

static kn_status name_track(trace *t, const char *what, int process, int track, const char *name)
{
    cJSON *event = new_event("M", NULL, what, process, track, 0);
    add_text(cJSON_AddObjectToObject(event, "args"), "name", name);
    return emit(t, event);
}

static double host_time(const trace *t, int64_t time) { return (double)(time - t->profile->started) * 1e-3; }

/* --- the host --------------------------------------------------------------------------------- */

static void add_work(cJSON *args, double flops, double bytes)
{
    if (flops > 0)
        cJSON_AddNumberToObject(args, "flops", flops);
    if (bytes > 0)
        cJSON_AddNumberToObject(args, "bytes", bytes);
}

static kn_status write_async(trace *t, const kn_span_record *span, size_t number)
{
    for (int end = 0; end < 2; end++) {
        cJSON *event = new_event(end ? "e" : "b", "range", span->name, HOST_PROCESS, span->thread,
                                 host_time(t, end ? span->end : span->start));
        cJSON_AddNumberToObject(event, "id", (double)number);
        KN_TRY(emit(t, event));
    }
    return KN_OK;
}

static kn_status write_span(trace *t, size_t number)
{
    const kn_span_record *span = &t->profile->spans[number];
    double start = host_time(t, span->start);
    if (span->kind == KN_SPAN_ASYNC)
        return write_async(t, span, number);
    if (span->kind == KN_SPAN_MARK) {
        cJSON *mark = new_event("i", "user_annotation", span->name, HOST_PROCESS, span->thread, start);
        cJSON_AddStringToObject(mark, "s", "t");
        return emit(t, mark);
    }
    cJSON *event = new_event("X", span->kind == KN_SPAN_OP ? "cpu_op" : "user_annotation", span->name, HOST_PROCESS,
                             span->thread, start);
    add_time(event, "dur", t->analysis->spans[number].cpu);
    cJSON *args = cJSON_AddObjectToObject(event, "args");
    if (span->shapes)
        cJSON_AddRawToObject(args, "Input Dims", span->shapes);
    if (span->dtypes)
        cJSON_AddRawToObject(args, "Input type", span->dtypes);
    if (span->kind == KN_SPAN_OP)
        add_work(args, span->work.flops, span->work.bytes);
    if (span->was_cut)
        cJSON_AddTrueToObject(args, "still open at the end");
    return emit(t, event);
}

static kn_status write_steps(trace *t)
{
    for (size_t i = 0; i < t->profile->num_steps; i++) {
        const kn_step_record *step = &t->profile->steps[i];
        char name[48];
        snprintf(name, sizeof name, "ProfilerStep#%d", step->number);
        cJSON *event = new_event("X", "user_annotation", name, HOST_PROCESS, STEPS_TRACK, host_time(t, step->start));
        add_time(event, "dur", (double)(step->end - step->start) * 1e-3);
        KN_TRY(emit(t, event));
    }
    return t->profile->num_steps > 0 ? name_track(t, "thread_name", HOST_PROCESS, STEPS_TRACK, "steps") : KN_OK;
}

static kn_status name_threads(trace *t)
{
    char name[32];
    int last = 0;
    KN_TRY(name_track(t, "process_name", HOST_PROCESS, 0, "host"));
    for (size_t i = 0; i < t->profile->num_spans; i++)
        last = t->profile->spans[i].thread > last ? t->profile->spans[i].thread : last;
    bool *seen = kn_calloc((size_t)last + 1, sizeof *seen);
    kn_status status = seen ? KN_OK : KN_ERR_MEMORY;
    for (size_t i = 0; i < t->profile->num_spans && seen; i++)
        seen[t->profile->spans[i].thread] = true;
    for (int thread = 1; thread <= last && status == KN_OK; thread++) {
        snprintf(name, sizeof name, "thread %d", thread);
        if (seen[thread])
            status = name_track(t, "thread_name", HOST_PROCESS, thread, name);
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

static void describe_command(cJSON *args, const trace *t, size_t number)
{
    const kn_command_record *command = &t->profile->commands[number];
    const kn_command_figures *figures = &t->analysis->commands[number];
    double ideal = figures->ideal_compute > figures->ideal_memory ? figures->ideal_compute : figures->ideal_memory;
    if (command->operation)
        add_text(args, "operation", command->operation);
    if (command->parent >= 0)
        add_text(args, "enqueued by", t->profile->spans[command->parent].name);
    if (command->kind == KN_COMMAND_KERNEL) {
        add_sizes(args, "global", command->dims, command->global);
        if (command->dims > 0 && command->local[0] > 0)
            add_sizes(args, "local", command->dims, command->local);
    }
    add_time(args, "queued us", (double)(int64_t)(command->submit - command->queued) * 1e-3);
    add_time(args, "submitted us", (double)(int64_t)(command->start - command->submit) * 1e-3);
    add_work(args, figures->flops, figures->bytes);
    if (figures->flops > 0 && figures->time > 0)
        cJSON_AddNumberToObject(args, "GFLOP/s", figures->flops / figures->time * 1e-3);
    if (figures->bytes > 0 && figures->time > 0)
        cJSON_AddNumberToObject(args, "GB/s", figures->bytes / figures->time * 1e-3);
    if (ideal > 0 && figures->time > 0)
        cJSON_AddNumberToObject(args, "share of peak", ideal / figures->time);
}

/* An arrow from the time of the enqueue, inside the operation, to the command. */
static kn_status write_arrow(trace *t, size_t number, int process, int track)
{
    const kn_command_record *command = &t->profile->commands[number];
    const kn_span_record *span = &t->profile->spans[command->parent];
    int64_t from = command->enqueued < span->end ? command->enqueued : span->end;
    cJSON *event = new_event("s", "ac2g", "enqueue", HOST_PROCESS, command->thread, host_time(t, from));
    cJSON_AddNumberToObject(event, "id", (double)number);
    KN_TRY(emit(t, event));
    event = new_event("f", "ac2g", "enqueue", process, track, t->analysis->commands[number].start);
    cJSON_AddNumberToObject(event, "id", (double)number);
    cJSON_AddStringToObject(event, "bp", "e"); /* ends at the event that begins then */
    return emit(t, event);
}

static kn_status write_command(trace *t, size_t number)
{
    const kn_command_record *command = &t->profile->commands[number];
    const kn_command_figures *figures = &t->analysis->commands[number];
    const kn_track *track = &t->profile->tracks[command->track];
    const char *category = command->kind == KN_COMMAND_KERNEL ? "kernel"
                           : command->kind == KN_COMMAND_FILL ? "gpu_memset"
                                                              : "gpu_memcpy";
    if (!command->is_timed)
        return KN_OK;
    cJSON *event = new_event("X", category, kn_command_name(command), kn_device_slot(track->device), track->number,
                             figures->start);
    add_time(event, "dur", figures->time);
    describe_command(cJSON_AddObjectToObject(event, "args"), t, number);
    KN_TRY(emit(t, event));
    return command->parent >= 0 ? write_arrow(t, number, kn_device_slot(track->device), track->number) : KN_OK;
}

static kn_status name_streams(trace *t)
{
    char name[160];
    for (size_t i = 0; i < t->profile->num_tracks; i++) {
        const kn_track *track = &t->profile->tracks[i];
        const kn_device *device = track->device;
        snprintf(name, sizeof name, "%s (%.120s)", kn_device_string(device), kn_device_name(device));
        if (track->number == 0)
            KN_TRY(name_track(t, "process_name", kn_device_slot(device), 0, name));
        snprintf(name, sizeof name, "stream %d", track->number);
        KN_TRY(name_track(t, "thread_name", kn_device_slot(device), track->number, name));
    }
    return KN_OK;
}

static kn_status write_memory(trace *t)
{
    for (size_t i = 0; i < t->profile->num_memory; i++) {
        const kn_memory_record *record = &t->profile->memory[i];
        cJSON *event = new_event("C", NULL, "memory", kn_device_slot(record->device), 0, host_time(t, record->time));
        cJSON *args = cJSON_AddObjectToObject(event, "args");
        cJSON_AddNumberToObject(args, "allocated", (double)record->allocated);
        cJSON_AddNumberToObject(args, "cached", (double)(record->reserved - record->allocated));
        KN_TRY(emit(t, event));
    }
    return KN_OK;
}

/* --- the file --------------------------------------------------------------------------------- */

static kn_status write_events(trace *t)
{
    static const char opening[] = "{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
    static const char closing[] = "\n]}\n";
    KN_TRY(kn_file_write(&t->file, opening, sizeof opening - 1));
    KN_TRY(name_threads(t));
    KN_TRY(name_streams(t));
    KN_TRY(write_steps(t));
    for (size_t i = 0; i < t->profile->num_spans; i++)
        KN_TRY(write_span(t, i));
    for (size_t i = 0; i < t->profile->num_commands; i++)
        KN_TRY(write_command(t, i));
    KN_TRY(write_memory(t));
    return kn_file_write(&t->file, closing, sizeof closing - 1);
}

static kn_status write_file(const kn_profile *profile, const char *path)
{
    kn_analysis analysis = {0};
    trace t = {.profile = profile, .analysis = &analysis};
    KN_TRY(kn_profile_check_results(profile, "kn_profiler_export_chrome_trace"));
    KN_TRY(kn_profile_analyse(&analysis, profile, profile->params.with_flops));
    kn_status status = kn_file_begin(&t.file, path);
    if (status == KN_OK)
        status = kn_file_end(&t.file, write_events(&t));
    kn_analysis_free(&analysis);
    return status;
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
