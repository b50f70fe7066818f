/* watch/profiler/table.c - the table that torch.profiler prints. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/layout.h"
#include "base/terminal.h"
#include "base/text.h"
#include "rt/trace/profile.h"
#include "watch/profiler/analysis.h"

#define COLUMN_WIDTH 12 /* at least; as PyTorch's */
#define MAX_COLUMNS 20
#define MAX_SHAPES 80 /* characters shown of a list of shapes */

/* --- cells ------------------------------------------------------------------------------------ */

typedef struct table {
    const kn_profiler_row *rows;
    int count;
    const kn_profile *profile;
    const kn_analysis *analysis;
    const kn_profiler_table_params *params;
} table;

typedef struct cell {
    char text[MAX_SHAPES + 16];
} cell;

static cell format_time(double us)
{
    cell c;
    if (us >= 1e6)
        snprintf(c.text, sizeof c.text, "%.3fs", us * 1e-6);
    else if (us >= 1e3)
        snprintf(c.text, sizeof c.text, "%.3fms", us * 1e-3);
    else
        snprintf(c.text, sizeof c.text, "%.3fus", us);
    return c;
}

static cell format_percent(double share)
{
    cell c;
    snprintf(c.text, sizeof c.text, "%.2f%%", 100 * share);
    return c;
}

/* Three or more digits; empty for zero. */
static cell format_number(double value)
{
    cell c = {""};
    if (value > 0)
        snprintf(c.text, sizeof c.text, value >= 100 ? "%.0f" : value >= 10 ? "%.1f" : "%.3f", value);
    return c;
}

static cell format_memory(int64_t bytes)
{
    cell c;
    char text[32];
    kn_format_bytes(text, sizeof text, (uint64_t)(bytes < 0 ? -bytes : bytes));
    snprintf(c.text, sizeof c.text, "%s%s", bytes < 0 ? "-" : "", text);
    return c;
}

/* Does not cut within a UTF-8 character of a user's range name. */
static cell format_text(const char *text, int width)
{
    cell c;
    if (width > MAX_SHAPES)
        width = MAX_SHAPES;
    bool fits = strlen(text) <= (size_t)width;
    int shown = fits ? (int)strlen(text) : width > 3 ? width - 3 : 0;
    while (!fits && shown > 0 && ((unsigned char)text[shown] & 0xC0) == 0x80)
        shown--; /* a byte inside a UTF-8 character */
    snprintf(c.text, sizeof c.text, "%.*s%s", shown, text, fits ? "" : "...");
    return c;
}

static cell no_cell(void) { return (cell){""}; }

static double average(double total, int64_t count) { return count > 0 ? total / (double)count : 0; }

static double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

/* Rates are relative to device time; host-only time has none. */
static double rate(double amount, double device_us) { return device_us > 0 ? amount / device_us * 1e-3 : 0; }

static cell of_name(const table *t, const kn_profiler_row *r)
{
    return format_text(r->name, t->params->max_name_column_width);
}
static cell of_self_cpu_share(const table *t, const kn_profiler_row *r)
{
    return format_percent(share(r->self_cpu_time_total, t->analysis->self_cpu));
}
static cell of_self_cpu(const table *t, const kn_profiler_row *r)
{
    (void)t;
    return format_time(r->self_cpu_time_total);
}
static cell of_cpu_share(const table *t, const kn_profiler_row *r)
{
    return format_percent(share(r->cpu_time_total, t->analysis->self_cpu));
}
static cell of_cpu(const table *t, const kn_profiler_row *r)
{
    (void)t;
    return format_time(r->cpu_time_total);
}
static cell of_cpu_average(const table *t, const kn_profiler_row *r)
{
    (void)t;
    return format_time(average(r->cpu_time_total, r->count));
}
static cell of_self_device(const table *t, const kn_profiler_row *r)
{
    (void)t;
    return format_time(r->self_device_time_total);
}
static cell of_self_device_share(const table *t, const kn_profiler_row *r)
{
    return format_percent(share(r->self_device_time_total, t->analysis->device));
}
static cell of_device(const table *t, const kn_profiler_row *r)
{
    (void)t;
    return format_time(r->device_time_total);
}
static cell of_device_average(const table *t, const kn_profiler_row *r)
{
    (void)t;
    return format_time(average(r->device_time_total, r->count));
}
static cell of_memory(const table *t, const kn_profiler_row *r)
{
    (void)t;
    return r->on_device ? no_cell() : format_memory(r->device_memory_usage);
}
static cell of_count(const table *t, const kn_profiler_row *r)
{
    cell c;
    (void)t;
    snprintf(c.text, sizeof c.text, "%" PRId64, r->count);
    return c;
}
static cell of_shapes(const table *t, const kn_profiler_row *r)
{
    (void)t;
    return format_text(r->input_shapes, MAX_SHAPES);
}
static cell of_flops(const table *t, const kn_profiler_row *r)
{
    (void)t;
    return format_number(r->flops * 1e-9);
}
static cell of_flop_rate(const table *t, const kn_profiler_row *r)
{
    (void)t;
    return format_number(rate(r->flops, r->device_time_total));
}
static cell of_byte_rate(const table *t, const kn_profiler_row *r)
{
    (void)t;
    return format_number(rate(r->bytes, r->device_time_total));
}
static cell of_peak(const table *t, const kn_profiler_row *r)
{
    (void)t;
    return r->fraction_of_peak > 0 ? format_percent(r->fraction_of_peak) : no_cell();
}

/* --- columns ---------------------------------------------------------------------------------- */

typedef cell (*cell_function)(const table *t, const kn_profiler_row *row);

typedef struct columns {
    kn_table_column look[MAX_COLUMNS];
    cell_function cell[MAX_COLUMNS];
    int count;
} columns;

/* The ranks determine which columns are dropped first on a narrow page: those derived from others, then the least
 * informative ones. */
static void choose_columns(columns *chosen, const table *t)
{
    const kn_profiler_params *p = &t->profile->params;
    const struct {
        const char *title;
        cell_function cell;
        bool shown;
        int rank, shortest;
    } all[] = {
        {"Name", of_name, true, 0, 20},
        {"Self CPU %", of_self_cpu_share, true, 10, 0},
        {"Self CPU", of_self_cpu, true, 2, 0},
        {"CPU total %", of_cpu_share, true, 12, 0},
        {"CPU total", of_cpu, true, 7, 0},
        {"CPU time avg", of_cpu_average, true, 11, 0},
        {"Self Device", of_self_device, true, 0, 0},
        {"Self Device %", of_self_device_share, true, 4, 0},
        {"Device total", of_device, true, 6, 0},
        {"Device time avg", of_device_average, true, 9, 0},
        {"Device Mem", of_memory, p->profile_memory, 5, 0},
        {"# of Calls", of_count, true, 1, 0},
        {"Input Shapes", of_shapes, t->params->group_by_input_shape, 0, 24},
        {"GFLOPs", of_flops, p->with_flops, 13, 0},
        {"GFLOP/s", of_flop_rate, p->with_flops, 5, 0},
        {"GB/s", of_byte_rate, p->with_flops, 8, 0},
        {"% of peak", of_peak, p->with_flops && t->params->peak, 3, 0},
    };
    chosen->count = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (!all[i].shown)
            continue;
        chosen->look[chosen->count] = (kn_table_column){.title = all[i].title,
                                                        .is_number = true,
                                                        .least = COLUMN_WIDTH,
                                                        .shortest = all[i].shortest,
                                                        .rank = all[i].rank};
        chosen->cell[chosen->count++] = all[i].cell;
    }
}

static void append_notes(kn_text *text, const table *t)
{
    const kn_profile *p = t->profile;
    const kn_analysis *a = t->analysis;
    int64_t untimed = 0;
    for (size_t i = 0; i < p->num_commands; i++)
        untimed += !p->commands[i].is_timed;
    kn_text_format(text, "Self CPU time total: %s\n", format_time(a->self_cpu).text);
    kn_text_format(text, "Self Device time total: %s\n", format_time(a->device).text);
    kn_text_format(text, "Wall time: %s\n", format_time(a->wall).text);
    if (p->cut > 0)
        kn_text_format(
            text, "Note: %" PRId64 " ranges or operations were still open at the end and were closed there\n", p->cut);
    if (untimed > 0)
        kn_text_format(text, "Note: the driver gave no times for %" PRId64 " commands\n", untimed);
    if (p->dropped > 0)
        kn_text_format(text, "Note: %" PRId64 " records were lost because host memory ran out\n", p->dropped);
}

static void append_table(kn_text *text, const table *t)
{
    columns chosen;
    choose_columns(&chosen, t);
    kn_page page = kn_page_for(t->params->width);
    kn_table shown = {.columns = chosen.look, .num_columns = chosen.count, .has_rules = true};
    for (int r = 0; r < t->count; r++)
        for (int c = 0; c < chosen.count; c++)
            kn_table_put(&shown, "%s", chosen.cell[c](t, &t->rows[r]).text);
    int hidden = kn_table_append(text, &shown, page);
    kn_table_free(&shown);
    append_notes(text, t);
    if (hidden > 0)
        kn_text_format(text, "Note: %d columns were left out to fit %d characters\n", hidden, page.width);
}

/* --- the interface ---------------------------------------------------------------------------- */

static const kn_profiler_sort_key *check_params(const kn_profiler_table_params *p)
{
    const kn_profiler_sort_key *key =
        p->sort_by ? kn_profile_find_sort_key(p->sort_by) : kn_profile_find_sort_key("self_device_time_total");
    if (!key)
        return kn_fail_null(KN_ERR_ARGUMENT,
                            "kn_profiler_table: sort_by `%s` is not known; there are self_device_time_total, "
                            "device_time_total, device_time, self_cpu_time_total, cpu_time_total, cpu_time, count, "
                            "flops, device_memory_usage and name",
                            p->sort_by);
    if (p->row_limit < 0 || p->max_name_column_width < 0)
        return kn_fail_null(KN_ERR_ARGUMENT,
                            "kn_profiler_table: row_limit (%d) and max_name_column_width (%d) must be 0 or more",
                            p->row_limit, p->max_name_column_width);
    return key;
}

/* The lock is held. */
static kn_status make_table(kn_text *text, const kn_profile *profile, const kn_profiler_table_params *params,
                            const kn_profiler_sort_key *key)
{
    kn_analysis analysis = {0};
    kn_profiler_row *rows = NULL;
    int count = 0;
    KN_TRY(kn_profile_check_results(profile, "kn_profiler_table"));
    KN_TRY(kn_profile_analyse(&analysis, profile, profile->params.with_flops && params->peak));
    kn_status status = kn_profile_rows(&rows, &count, profile, &analysis, params->group_by_input_shape);
    if (status == KN_OK)
        status = kn_profile_sort_rows(rows, count, key);
    if (status == KN_OK) {
        if (params->row_limit > 0 && count > params->row_limit)
            count = params->row_limit;
        append_table(text, &(table){rows, count, profile, &analysis, params});
    }
    kn_free(rows);
    kn_analysis_free(&analysis);
    return status;
}

kn_profiler_table_params kn_profiler_table_params_init(void)
{
    return (kn_profiler_table_params){KN_PROFILER_TABLE_DEFAULTS};
}

char *kn_profiler_table_with(const kn_profiler_table_params *params)
{
    kn_text text = {0};
    params = params ? params : &(kn_profiler_table_params){KN_PROFILER_TABLE_DEFAULTS};
    const kn_profiler_sort_key *key = check_params(params);
    if (!key)
        return NULL;
    if (params->peak)
        kn_profile_measure_peaks();
    kn_lock(&kn_profile_lock);
    kn_status status = make_table(&text, &kn_the_profile, params, key);
    kn_unlock(&kn_profile_lock);
    if (status == KN_OK)
        return kn_text_finish(&text);
    kn_text_free(&text);
    return kn_error_make_sticky();
}
