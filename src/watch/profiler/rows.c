/* watch/profiler/rows.c - groups records by name: the rows of the table, and the totals. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "watch/profiler/communication.h"

/* --- the rows while they are being made ------------------------------------------------------- */

typedef struct row {
    kn_profiler_row shown;
    double ideal_compute, ideal_memory;
} row;

/* Rows, and a hash table of their numbers (plus 1) by name and shapes; names are interned, so pointers are compared. */
typedef struct builder {
    row *rows;
    int count, capacity;
    uint32_t *slots;
    size_t num_slots; /* a power of two */
} builder;

static size_t slot_of(const builder *b, const char *name, const char *shapes, bool on_device)
{
    const void *key[3] = {name, shapes, on_device ? name : NULL};
    size_t at = (size_t)kn_hash_bytes(key, sizeof key).low & (b->num_slots - 1);
    for (; b->slots[at]; at = (at + 1) & (b->num_slots - 1)) {
        const kn_profiler_row *r = &b->rows[b->slots[at] - 1].shown;
        if (r->name == name && r->input_shapes == shapes && r->on_device == on_device)
            break;
    }
    return at;
}

/* The hash table is sized for the maximum number of rows: one per record. */
static kn_status builder_open(builder *b, size_t records)
{
    *b = (builder){.num_slots = 64};
    while (b->num_slots < 2 * records)
        b->num_slots *= 2;
    b->slots = kn_calloc(b->num_slots, sizeof *b->slots);
    return b->slots ? KN_OK : KN_ERR_MEMORY;
}

/* The row, valid until the next one is created; NULL if memory is short. */
static row *row_of(builder *b, const char *name, const char *shapes, bool on_device)
{
    size_t at = slot_of(b, name, shapes, on_device);
    if (b->slots[at])
        return &b->rows[b->slots[at] - 1];
    if (KN_GROW(b->rows, b->count, b->capacity) != KN_OK)
        return NULL;
    row *made = &b->rows[b->count++];
    *made = (row){.shown = {.name = name, .input_shapes = shapes, .on_device = on_device}};
    b->slots[at] = (uint32_t)b->count;
    return made;
}

/* --- adding records --------------------------------------------------------------------------- */

/* Is an enclosing span in the same row? Then its total already includes this one. */
static bool is_inside_itself(const int64_t *rows, const kn_profile *profile, size_t span)
{
    for (int64_t outer = profile->spans[span].parent; outer >= 0; outer = profile->spans[outer].parent)
        if (rows[outer] == rows[span])
            return true;
    return false;
}

static void add_span(row *r, const kn_span_record *span, const kn_span_figures *f, bool inside)
{
    kn_profiler_row *shown = &r->shown;
    shown->count++;
    shown->self_cpu_time_total += f->self_cpu;
    shown->self_device_time_total += f->self_device;
    if (inside)
        return;
    shown->cpu_time_total += f->cpu;
    shown->device_time_total += f->device;
    shown->flops += f->flops;
    shown->bytes += f->bytes;
    shown->device_memory_usage += span->memory;
    r->ideal_compute += f->ideal_compute;
    r->ideal_memory += f->ideal_memory;
}

static kn_status add_spans(builder *b, const kn_profile *profile, const kn_analysis *analysis, bool by_shapes)
{
    int64_t *rows = kn_calloc(profile->num_spans + 1, sizeof *rows);
    kn_status status = rows ? KN_OK : KN_ERR_MEMORY;
    for (size_t i = 0; i < profile->num_spans && status == KN_OK; i++) {
        const kn_span_record *span = &profile->spans[i];
        rows[i] = -1;
        if (span->kind == KN_SPAN_MARK || span->kind == KN_SPAN_CALL || span->kind == KN_SPAN_PART)
            continue; /* calls have a table of their own */
        row *r = row_of(b, span->name, by_shapes ? span->shapes : NULL, false);
        if (!r) {
            status = KN_ERR_MEMORY;
            break;
        }
        rows[i] = r - b->rows;
        add_span(r, span, &analysis->spans[i], is_inside_itself(rows, profile, i));
    }
    kn_free(rows);
    return status;
}

static kn_status add_commands(builder *b, const kn_profile *profile, const kn_analysis *analysis)
{
    for (size_t i = 0; i < profile->num_commands; i++) {
        const kn_command_record *command = &profile->commands[i];
        const kn_command_figures *f = &analysis->commands[i];
        row *r = row_of(b, kn_command_name(command), NULL, true);
        if (!r)
            return KN_ERR_MEMORY;
        r->shown.count++;
        r->shown.self_device_time_total += f->time;
        r->shown.device_time_total += f->time;
        r->shown.flops += f->flops;
        r->shown.bytes += f->bytes;
        r->ideal_compute += f->ideal_compute;
        r->ideal_memory += f->ideal_memory;
    }
    return KN_OK;
}

static kn_status add_steps(builder *b, const kn_profile *profile, const kn_analysis *analysis)
{
    if (profile->num_steps == 0)
        return KN_OK;
    row *steps = row_of(b, "ProfilerStep*", NULL, false);
    if (!steps)
        return KN_ERR_MEMORY;
    steps->shown.count = (int64_t)profile->num_steps;
    steps->shown.cpu_time_total = analysis->step_cpu;
    steps->shown.self_cpu_time_total = analysis->step_self_cpu;
    steps->shown.device_time_total = analysis->step_device;
    return KN_OK;
}

/* --- the rows --------------------------------------------------------------------------------- */

static int by_device_time(const void *a, const void *b)
{
    const kn_profiler_row *x = a, *y = b;
    if (x->self_device_time_total != y->self_device_time_total)
        return x->self_device_time_total < y->self_device_time_total ? 1 : -1;
    if (x->self_cpu_time_total != y->self_cpu_time_total)
        return x->self_cpu_time_total < y->self_cpu_time_total ? 1 : -1;
    return strcmp(x->name, y->name);
}

static kn_status take_rows(kn_profiler_row **rows, int *count, const builder *b)
{
    kn_profiler_row *taken = kn_calloc((size_t)b->count + 1, sizeof *taken);
    if (!taken)
        return KN_ERR_MEMORY;
    for (int i = 0; i < b->count; i++) {
        const row *r = &b->rows[i];
        double ideal = r->ideal_compute > r->ideal_memory ? r->ideal_compute : r->ideal_memory;
        taken[i] = r->shown;
        taken[i].input_shapes = r->shown.input_shapes ? r->shown.input_shapes : "";
        taken[i].fraction_of_peak = r->shown.device_time_total > 0 ? ideal / r->shown.device_time_total : 0;
    }
    qsort(taken, (size_t)b->count, sizeof *taken, by_device_time);
    *rows = taken;
    *count = b->count;
    return KN_OK;
}

kn_status kn_profile_rows(kn_profiler_row **rows, int *count, const kn_profile *profile, const kn_analysis *analysis,
                          bool by_shapes)
{
    builder b;
    KN_TRY(builder_open(&b, profile->num_spans + profile->num_commands + profile->num_steps));
    kn_status status = add_spans(&b, profile, analysis, by_shapes);
    if (status == KN_OK)
        status = add_steps(&b, profile, analysis);
    if (status == KN_OK)
        status = add_commands(&b, profile, analysis);
    if (status == KN_OK)
        status = take_rows(rows, count, &b);
    kn_free(b.rows);
    kn_free(b.slots);
    return status;
}

/* --- the interface ---------------------------------------------------------------------------- */

kn_profiler_row *kn_profiler_key_averages(bool group_by_input_shape, int *count)
{
    const kn_profile *profile = &kn_the_profile;
    kn_analysis analysis = {0};
    kn_profiler_row *rows = NULL;
    if (!count)
        return kn_fail_argument_null("kn_profiler_key_averages", "count"), NULL;
    kn_profile_measure_peaks();
    kn_lock(&kn_profile_lock);
    kn_status status = kn_profile_check_results(profile, "kn_profiler_key_averages");
    if (status == KN_OK)
        status = kn_profile_analyse(&analysis, profile, profile->params.with_flops);
    if (status == KN_OK)
        (void)kn_profile_rows(&rows, count, profile, &analysis, group_by_input_shape);
    kn_analysis_free(&analysis);
    kn_unlock(&kn_profile_lock);
    return rows;
}

static kn_profiler_totals totals_of(const kn_profile *profile, const kn_analysis *analysis,
                                    const kn_communication *communication)
{
    kn_profiler_totals totals = {.wall_time = analysis->wall,
                                 .self_cpu_time = analysis->self_cpu,
                                 .device_time = analysis->device,
                                 .communication_time = communication->time,
                                 .overlap = communication->time > 0 ? communication->hidden / communication->time : 0,
                                 .still_open = profile->cut,
                                 .dropped = profile->dropped};
    for (size_t i = 0; i < profile->num_spans; i++) {
        totals.operations += profile->spans[i].kind == KN_SPAN_OP;
        totals.ranges += profile->spans[i].kind == KN_SPAN_RANGE || profile->spans[i].kind == KN_SPAN_ASYNC;
    }
    for (size_t i = 0; i < profile->num_commands; i++) {
        totals.kernels += profile->commands[i].kind == KN_COMMAND_KERNEL;
        totals.transfers += profile->commands[i].kind != KN_COMMAND_KERNEL;
        totals.untimed += !profile->commands[i].is_timed;
    }
    return totals;
}

kn_status kn_profiler_get_totals(kn_profiler_totals *totals)
{
    const kn_profile *profile = &kn_the_profile;
    kn_analysis analysis = {0};
    kn_communication communication = {0};
    if (!totals)
        return kn_fail_argument_null("kn_profiler_get_totals", "totals");
    kn_lock(&kn_profile_lock);
    kn_status status = kn_profile_check_results(profile, "kn_profiler_get_totals");
    if (status == KN_OK)
        status = kn_profile_analyse(&analysis, profile, false);
    if (status == KN_OK)
        status = kn_profile_communication(&communication, profile, &analysis);
    if (status == KN_OK)
        *totals = totals_of(profile, &analysis, &communication);
    kn_communication_free(&communication);
    kn_analysis_free(&analysis);
    kn_unlock(&kn_profile_lock);
    return status;
}
