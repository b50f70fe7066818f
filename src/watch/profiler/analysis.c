/* watch/profiler/analysis.c - computes figures from records: times, work, and share of the peak. */
#include "watch/profiler/analysis.h"

#include "base/error.h"
#include "base/memory.h"
#include "rt/device/device.h"
#include "watch/peak.h"

const char *kn_command_name(const kn_command_record *command)
{
    switch (command->kind) {
    case KN_COMMAND_READ:
        return "Memcpy DtoH";
    case KN_COMMAND_WRITE:
        return "Memcpy HtoD";
    case KN_COMMAND_COPY:
        return "Memcpy DtoD";
    case KN_COMMAND_FILL:
        return "Memset";
    case KN_COMMAND_KERNEL:
        break;
    }
    return command->kernel ? command->kernel : command->operation ? command->operation : "kernel";
}

kn_status kn_profile_check_results(const kn_profile *profile, const char *function)
{
    if (kn_profile_records(profile) || (profile->phase == KN_PHASE_ENDING && !profile->has_results))
        return kn_fail(KN_ERR_STATE,
                       "%s: the profiler is recording: call it after kn_profiler_stop or in "
                       "on_trace_ready",
                       function);
    return profile->has_results ? KN_OK : kn_fail(KN_ERR_STATE, "%s: nothing has been recorded", function);
}

void kn_analysis_free(kn_analysis *analysis)
{
    kn_free(analysis->spans);
    kn_free(analysis->commands);
    *analysis = (kn_analysis){0};
}

/* --- times ------------------------------------------------------------------------------------ */

static double since_start(const kn_profile *profile, int64_t time) { return (double)(time - profile->started) * 1e-3; }

static void note_end(kn_analysis *a, double time) { a->end = time > a->end ? time : a->end; }

int64_t kn_clock_offset(kn_clock_offsets *offsets, const kn_profile *profile, const kn_command_record *record)
{
    kn_device *device = profile->tracks[record->track].device;
    if (record->is_direct)
        return 0;
    const int slot = kn_device_slot(device);
    if (!offsets->known[slot])
        offsets->offset[slot] = kn_profile_clock_offset(profile, device);
    offsets->known[slot] = true;
    return offsets->offset[slot];
}

static void time_commands(kn_analysis *a, const kn_profile *profile)
{
    kn_clock_offsets offsets = {0};
    for (size_t i = 0; i < profile->num_commands; i++) {
        const kn_command_record *record = &profile->commands[i];
        if (!record->is_timed)
            continue;
        const int64_t offset = kn_clock_offset(&offsets, profile, record);
        kn_command_figures *figures = &a->commands[i];
        figures->start = since_start(profile, (int64_t)record->start + offset);
        figures->time = (double)(record->end - record->start) * 1e-3;
        a->device += figures->time;
        note_end(a, figures->start + figures->time);
        if (record->parent >= 0)
            a->spans[record->parent].self_device += figures->time;
    }
}

static bool nests(const kn_span_record *span) { return kn_span_nests(span->kind); }

/* A group's thread waits rather than works. */
static bool is_work(const kn_span_record *span) { return span->kind == KN_SPAN_OP || span->kind == KN_SPAN_RANGE; }

/* A span's number is larger than its parent's: from last to first, each is complete when added to its parent. */
static void time_spans(kn_analysis *a, const kn_profile *profile)
{
    for (size_t i = 0; i < profile->num_spans; i++) {
        const kn_span_record *span = &profile->spans[i];
        a->spans[i].cpu = (double)(span->end - span->start) * 1e-3;
        a->spans[i].self_cpu += a->spans[i].cpu;
        note_end(a, since_start(profile, span->end));
        if (span->parent >= 0 && nests(span))
            a->spans[span->parent].self_cpu -= a->spans[i].cpu;
    }
    for (size_t i = profile->num_spans; i-- > 0;) {
        a->spans[i].device += a->spans[i].self_device;
        if (profile->spans[i].parent >= 0 && nests(&profile->spans[i]))
            a->spans[profile->spans[i].parent].device += a->spans[i].device;
        if (is_work(&profile->spans[i]))
            a->self_cpu += a->spans[i].self_cpu;
    }
}

/* Was a step of the schedule active at that time? */
static bool is_in_step(const kn_profile *profile, int64_t time)
{
    size_t low = 0, high = profile->num_steps; /* the last step begun is before `high` */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (profile->steps[middle].start <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && time < profile->steps[low - 1].end;
}

/* A step's device time is that of the commands enqueued during it, by any thread. */
static void time_steps(kn_analysis *a, const kn_profile *profile)
{
    double inside = 0;
    for (size_t i = 0; i < profile->num_steps; i++)
        a->step_cpu += (double)(profile->steps[i].end - profile->steps[i].start) * 1e-3;
    for (size_t i = 0; i < profile->num_spans; i++) {
        const kn_span_record *span = &profile->spans[i];
        if (is_work(span) && span->parent < 0 && is_in_step(profile, span->start))
            inside += a->spans[i].cpu;
    }
    for (size_t i = 0; i < profile->num_commands; i++)
        if (is_in_step(profile, profile->commands[i].enqueued))
            a->step_device += a->commands[i].time;
    a->step_self_cpu = a->step_cpu > inside ? a->step_cpu - inside : 0; /* of several threads: less */
    a->self_cpu += a->step_self_cpu;
}

/* --- work ------------------------------------------------------------------------------------- */

/* Microseconds that work takes at the device's peaks; 0 if not requested or unknown. */
static void ideal(double *compute, double *memory, const kn_device *device, const kn_span_work *work, bool with_peak)
{
    if (!with_peak || !device)
        return;
    double flops = kn_peak_known_flops(device, work->is_f64), bytes = kn_peak_known_bytes(device);
    *compute = flops > 0 ? work->flops / flops * 1e6 : 0;
    *memory = bytes > 0 ? work->bytes / bytes * 1e6 : 0;
}

/* Where each span's commands ran (NULL: it has none), inner spans included. The caller frees it. */
static kn_device **devices_of_spans(const kn_profile *profile)
{
    kn_device **devices = kn_calloc(profile->num_spans + 1, sizeof(kn_device *));
    for (size_t i = 0; devices && i < profile->num_commands; i++)
        if (profile->commands[i].parent >= 0)
            devices[profile->commands[i].parent] = profile->tracks[profile->commands[i].track].device;
    for (size_t i = profile->num_spans; devices && i-- > 0;)
        if (devices[i] && profile->spans[i].parent >= 0)
            devices[profile->spans[i].parent] = devices[i];
    return devices;
}

/* An operation's reported work includes that of the operations inside it, whose sum is in `figures`. */
static void work_of_operation(kn_span_figures *figures, const kn_span_work *total, const kn_device *device,
                              bool with_peak)
{
    kn_span_work own = *total;
    own.flops = total->flops > figures->flops ? total->flops - figures->flops : 0;
    own.bytes = total->bytes > figures->bytes ? total->bytes - figures->bytes : 0;
    figures->flops = total->flops;
    figures->bytes = total->bytes;
    figures->own_flops = own.flops;
    figures->own_bytes = own.bytes;
    ideal(&figures->ideal_compute, &figures->ideal_memory, device, total, with_peak);
    ideal(&figures->own_compute, &figures->own_memory, device, &own, with_peak);
}

/* Innermost first. A range has the work of the outermost operations inside it. */
static void work_of_spans(kn_analysis *a, const kn_profile *profile, kn_device *const *devices, bool with_peak)
{
    for (size_t i = profile->num_spans; i-- > 0;) {
        const kn_span_record *span = &profile->spans[i];
        kn_span_figures *figures = &a->spans[i];
        if (span->kind != KN_SPAN_CALL && (span->work.flops > 0 || span->work.bytes > 0))
            work_of_operation(figures, &span->work, devices[i], with_peak);
        if (span->parent < 0 || !nests(span))
            continue;
        kn_span_figures *outer = &a->spans[span->parent];
        outer->flops += figures->flops;
        outer->bytes += figures->bytes;
        outer->ideal_compute += figures->ideal_compute;
        outer->ideal_memory += figures->ideal_memory;
    }
}

/* An operation's work divided among its kernels by their time; a transfer's own bytes. */
static void work_of_commands(kn_analysis *a, const kn_profile *profile, bool with_peak)
{
    for (size_t i = 0; i < profile->num_commands; i++) {
        const kn_command_record *record = &profile->commands[i];
        kn_command_figures *figures = &a->commands[i];
        if (record->kind != KN_COMMAND_KERNEL) {
            const kn_span_work moved = {.bytes = (double)record->bytes * (record->kind == KN_COMMAND_COPY ? 2 : 1)};
            figures->bytes = moved.bytes;
            ideal(&figures->ideal_compute, &figures->ideal_memory, profile->tracks[record->track].device, &moved,
                  with_peak);
            continue;
        }
        const kn_span_figures *span = record->parent >= 0 ? &a->spans[record->parent] : NULL;
        if (!span || profile->spans[record->parent].kind != KN_SPAN_OP || span->self_device <= 0)
            continue;
        double share = figures->time / span->self_device;
        figures->flops = share * span->own_flops;
        figures->bytes = share * span->own_bytes;
        figures->ideal_compute = share * span->own_compute;
        figures->ideal_memory = share * span->own_memory;
    }
}

kn_status kn_profile_analyse(kn_analysis *analysis, const kn_profile *profile, bool with_peak)
{
    kn_analysis a = {.spans = kn_calloc(profile->num_spans + 1, sizeof *a.spans),
                     .commands = kn_calloc(profile->num_commands + 1, sizeof *a.commands)};
    kn_device **devices = devices_of_spans(profile);
    kn_status status = a.spans && a.commands && devices ? KN_OK : KN_ERR_MEMORY;
    if (status == KN_OK) {
        a.wall = since_start(profile, profile->stopped);
        a.end = a.wall;
        time_commands(&a, profile);
        time_spans(&a, profile);
        time_steps(&a, profile);
        work_of_spans(&a, profile, devices, with_peak);
        work_of_commands(&a, profile, with_peak);
    }
    kn_free(devices);
    if (status == KN_OK)
        *analysis = a;
    else
        kn_analysis_free(&a);
    return status;
}
