/* watch/profiler/communication.c - figures of the calls of groups. */
#include "watch/profiler/communication.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

void kn_communication_free(kn_communication *communication)
{
    kn_free(communication->calls);
    *communication = (kn_communication){0};
}

/* --- calls and their parts ---------------------------------------------------------------------------------------- */

/* For each span the number of the call that it is or lies in, from 1; 0: none. Parents come first. The caller frees
 * it. */
static int *number_calls(const kn_profile *profile, int *count)
{
    int *numbers = kn_calloc(profile->num_spans + 1, sizeof *numbers);
    *count = 0;
    for (size_t i = 0; numbers && i < profile->num_spans; i++) {
        const kn_span_record *span = &profile->spans[i];
        numbers[i] = span->kind == KN_SPAN_CALL ? ++*count : span->parent >= 0 ? numbers[span->parent] : 0;
    }
    return numbers;
}

/* Waiting and exchanging are the thread's; copies are the device's, as the thread goes on meanwhile. */
static void add_part(kn_call_figures *call, const char *name, const kn_span_figures *figures)
{
    if (strcmp(name, KN_PART_COPY_DOWN) == 0)
        call->copy_down += figures->device;
    else if (strcmp(name, KN_PART_COPY_UP) == 0)
        call->copy_up += figures->device;
    else if (strcmp(name, KN_PART_EXCHANGE) == 0)
        call->exchange += figures->cpu;
    else
        call->wait += figures->cpu;
}

static void add_parts(kn_communication *c, const kn_profile *profile, const kn_analysis *a, const int *numbers)
{
    for (size_t i = 0; i < profile->num_spans; i++) {
        const kn_span_record *span = &profile->spans[i];
        if (!numbers[i])
            continue;
        kn_call_figures *call = &c->calls[numbers[i] - 1];
        if (span->kind == KN_SPAN_CALL) {
            call->span = (int64_t)i;
            call->start = (double)(span->start - profile->started) * 1e-3;
            call->end = call->start + a->spans[i].cpu;
        } else if (span->kind == KN_SPAN_PART) {
            add_part(call, span->name, &a->spans[i]);
        }
    }
}

static void add_last_copies(kn_communication *c, const kn_profile *profile, const kn_analysis *a, const int *numbers)
{
    for (size_t i = 0; i < profile->num_commands; i++) {
        const kn_command_record *command = &profile->commands[i];
        const int number = command->parent >= 0 && command->is_timed ? numbers[command->parent] : 0;
        const double end = a->commands[i].start + a->commands[i].time;
        if (number && end > c->calls[number - 1].end)
            c->calls[number - 1].end = end;
    }
}

/* --- overlap ------------------------------------------------------------------------------------------------------ */

typedef struct interval {
    double start, end;
} interval;

static int by_start(const void *a, const void *b)
{
    const interval *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* Sorted, and joined where they overlap; returns how many are left. */
static int join(interval *list, int count)
{
    int last = -1;
    qsort(list, (size_t)count, sizeof *list, by_start);
    for (int i = 0; i < count; i++)
        if (last >= 0 && list[i].start <= list[last].end)
            list[last].end = list[i].end > list[last].end ? list[i].end : list[last].end;
        else
            list[++last] = list[i];
    return last + 1;
}

static double length_of(const interval *list, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += list[i].end - list[i].start;
    return sum;
}

/* Of the time of both lists. */
static double shared(const interval *a, int of_a, const interval *b, int of_b)
{
    double sum = 0;
    for (int i = 0, j = 0; i < of_a && j < of_b;) {
        const double start = a[i].start > b[j].start ? a[i].start : b[j].start;
        const double end = a[i].end < b[j].end ? a[i].end : b[j].end;
        sum += end > start ? end - start : 0;
        if (a[i].end < b[j].end)
            i++;
        else
            j++;
    }
    return sum;
}

/* Kernels inside calls are none of the program's work. A call that another thread makes may end after the recording,
 * and so may, by the device's clock, its last copy. */
static kn_status find_overlap(kn_communication *c, const kn_profile *profile, const kn_analysis *a, const int *numbers)
{
    interval *calls = kn_calloc((size_t)c->count + 1, sizeof *calls);
    interval *kernels = kn_calloc(profile->num_commands + 1, sizeof *kernels);
    int count = 0;
    for (size_t i = 0; kernels && i < profile->num_commands; i++) {
        const kn_command_record *command = &profile->commands[i];
        const bool is_inside = command->parent >= 0 && numbers[command->parent];
        if (command->kind == KN_COMMAND_KERNEL && command->is_timed && !is_inside)
            kernels[count++] = (interval){a->commands[i].start, a->commands[i].start + a->commands[i].time};
    }
    if (calls && kernels) {
        for (int i = 0; i < c->count; i++)
            calls[i] = (interval){fmin(c->calls[i].start, a->wall), fmin(c->calls[i].end, a->wall)};
        const int joined = join(calls, c->count);
        c->time = length_of(calls, joined);
        c->hidden = shared(calls, joined, kernels, join(kernels, count));
    }
    const kn_status status = calls && kernels ? KN_OK : KN_ERR_MEMORY;
    kn_free(calls);
    kn_free(kernels);
    return status;
}

kn_status kn_profile_communication(kn_communication *communication, const kn_profile *profile,
                                   const kn_analysis *analysis)
{
    kn_communication c = {0};
    int *numbers = number_calls(profile, &c.count);
    c.calls = kn_calloc((size_t)c.count + 1, sizeof *c.calls);
    kn_status status = numbers && c.calls ? KN_OK : KN_ERR_MEMORY;
    if (status == KN_OK) {
        add_parts(&c, profile, analysis, numbers);
        add_last_copies(&c, profile, analysis, numbers);
        status = find_overlap(&c, profile, analysis, numbers);
    }
    kn_free(numbers);
    if (status == KN_OK)
        *communication = c;
    else
        kn_communication_free(&c);
    return status;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    const kn_profiler_call *x = a, *y = b;
    return x->time_total < y->time_total ? 1 : x->time_total > y->time_total ? -1 : 0;
}

/* There are as many names as kinds of calls. */
static kn_profiler_call *row_of(kn_profiler_call *rows, int *count, const char *name)
{
    for (int i = 0; i < *count; i++)
        if (rows[i].name == name)
            return &rows[i];
    rows[*count].name = name;
    return &rows[(*count)++];
}

kn_status kn_communication_rows(kn_profiler_call **rows, int *count, const kn_profile *profile,
                                const kn_communication *communication)
{
    *count = 0;
    *rows = kn_calloc((size_t)communication->count + 1, sizeof **rows);
    if (!*rows)
        return KN_ERR_MEMORY;
    for (int i = 0; i < communication->count; i++) {
        const kn_call_figures *call = &communication->calls[i];
        const kn_span_record *span = &profile->spans[call->span];
        kn_profiler_call *row = row_of(*rows, count, span->name);
        row->count++;
        row->bytes += span->work.bytes;
        row->time_total += call->end - call->start;
        row->wait_time += call->wait;
        row->copy_down_time += call->copy_down;
        row->exchange_time += call->exchange;
        row->copy_up_time += call->copy_up;
        row->bus_bandwidth += span->work.bus_bytes; /* a sum, so far */
    }
    for (int i = 0; i < *count; i++) {
        kn_profiler_call *row = &(*rows)[i];
        const double moving = row->time_total - row->wait_time;
        row->bus_bandwidth = moving > 0 ? row->bus_bandwidth / moving * 1e6 : 0;
    }
    qsort(*rows, (size_t)*count, sizeof **rows, by_time);
    return KN_OK;
}

/* --- the interface ------------------------------------------------------------------------------------------------ */

kn_profiler_call *kn_profiler_communication(int *count)
{
    const kn_profile *profile = &kn_the_profile;
    kn_analysis analysis = {0};
    kn_communication communication = {0};
    kn_profiler_call *rows = NULL;
    if (!count)
        return kn_fail_argument_null("kn_profiler_communication", "count"), NULL;
    kn_lock(&kn_profile_lock);
    kn_status status = kn_profile_check_results(profile, "kn_profiler_communication");
    if (status == KN_OK)
        status = kn_profile_analyse(&analysis, profile, false);
    if (status == KN_OK)
        status = kn_profile_communication(&communication, profile, &analysis);
    if (status == KN_OK)
        (void)kn_communication_rows(&rows, count, profile, &communication);
    kn_communication_free(&communication);
    kn_analysis_free(&analysis);
    kn_unlock(&kn_profile_lock);
    return rows;
}
