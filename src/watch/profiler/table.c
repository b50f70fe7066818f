/* watch/profiler/table.c - the table that torch.profiler prints. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/layout.h"
#include "base/memory.h"
#include "watch/profiler/communication.h"

#define COLUMN_WIDTH 12 /* at least; as PyTorch's */
#define MAX_SHAPES 80   /* characters shown of a list of shapes */

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

static cell format_count(double count)
{
    cell c;
    snprintf(c.text, sizeof c.text, "%.0f", count);
    return c;
}

static cell format_memory(double bytes)
{
    cell c;
    char text[32];
    kn_format_bytes(text, sizeof text, (uint64_t)fabs(bytes));
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

static double average(double total, int64_t count) { return count > 0 ? total / (double)count : 0; }

static double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

/* Rates are relative to device time; host-only time has none. */
static double rate(double amount, double device_us) { return device_us > 0 ? amount / device_us * 1e-3 : 0; }

/* --- columns ---------------------------------------------------------------------------------- */

static double self_cpu(const kn_profiler_row *r) { return r->self_cpu_time_total; }
static double cpu(const kn_profiler_row *r) { return r->cpu_time_total; }
static double cpu_average(const kn_profiler_row *r) { return average(r->cpu_time_total, r->count); }
static double self_device(const kn_profiler_row *r) { return r->self_device_time_total; }
static double device(const kn_profiler_row *r) { return r->device_time_total; }
static double device_average(const kn_profiler_row *r) { return average(r->device_time_total, r->count); }
static double memory(const kn_profiler_row *r) { return (double)r->device_memory_usage; }
static double calls(const kn_profiler_row *r) { return (double)r->count; }
static double flops(const kn_profiler_row *r) { return r->flops; }
static double flop_rate(const kn_profiler_row *r) { return rate(r->flops, r->device_time_total); }
static double byte_rate(const kn_profiler_row *r) { return rate(r->bytes, r->device_time_total); }
static double of_peak(const kn_profiler_row *r) { return r->fraction_of_peak; }

typedef enum form { NAME, SHAPES, TIME, SHARE_OF_CPU, SHARE_OF_DEVICE, SHARE_OF_PEAK, BYTES, COUNT, NUMBER, GIGA } form;
typedef enum condition { ALWAYS, WITH_MEMORY, WITH_SHAPES, WITH_FLOPS, WITH_PEAK } condition;

/* The ranks determine which columns are dropped first on a narrow page: those derived from others, then the least
 * informative ones. */
typedef struct column {
    const char *title;
    const char *key; /* PyTorch's name for sorting by it; NULL: rows are not sorted by it */
    form form;
    double (*value)(const kn_profiler_row *row); /* NULL of texts */
    condition shown;
    int rank, shortest;
} column;

static const column columns[] = {
    {"Name", "name", NAME, NULL, ALWAYS, 0, 20},
    {"Self CPU %", NULL, SHARE_OF_CPU, self_cpu, ALWAYS, 10, 0},
    {"Self CPU", "self_cpu_time_total", TIME, self_cpu, ALWAYS, 2, 0},
    {"CPU total %", NULL, SHARE_OF_CPU, cpu, ALWAYS, 12, 0},
    {"CPU total", "cpu_time_total", TIME, cpu, ALWAYS, 7, 0},
    {"CPU time avg", "cpu_time", TIME, cpu_average, ALWAYS, 11, 0},
    {"Self Device", "self_device_time_total", TIME, self_device, ALWAYS, 0, 0},
    {"Self Device %", NULL, SHARE_OF_DEVICE, self_device, ALWAYS, 4, 0},
    {"Device total", "device_time_total", TIME, device, ALWAYS, 6, 0},
    {"Device time avg", "device_time", TIME, device_average, ALWAYS, 9, 0},
    {"Device Mem", "device_memory_usage", BYTES, memory, WITH_MEMORY, 5, 0},
    {"# of Calls", "count", COUNT, calls, ALWAYS, 1, 0},
    {"Input Shapes", NULL, SHAPES, NULL, WITH_SHAPES, 0, 24},
    {"GFLOPs", "flops", GIGA, flops, WITH_FLOPS, 13, 0},
    {"GFLOP/s", NULL, NUMBER, flop_rate, WITH_FLOPS, 5, 0},
    {"GB/s", NULL, NUMBER, byte_rate, WITH_FLOPS, 8, 0},
    {"% of peak", NULL, SHARE_OF_PEAK, of_peak, WITH_PEAK, 3, 0},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static bool is_shown(const column *c, const table *t)
{
    const kn_profiler_params *p = &t->profile->params;
    const bool conditions[] = {
        [ALWAYS] = true,
        [WITH_MEMORY] = p->profile_memory,
        [WITH_SHAPES] = t->params->group_by_input_shape,
        [WITH_FLOPS] = p->with_flops,
        [WITH_PEAK] = p->with_flops && t->params->peak,
    };
    return conditions[c->shown];
}

static cell cell_of(const column *c, const table *t, const kn_profiler_row *r)
{
    const double value = c->value ? c->value(r) : 0;
    switch (c->form) {
    case NAME:
        return format_text(r->name, t->params->max_name_column_width);
    case SHAPES:
        return format_text(r->input_shapes, MAX_SHAPES);
    case TIME:
        return format_time(value);
    case SHARE_OF_CPU:
        return format_percent(share(value, t->analysis->self_cpu));
    case SHARE_OF_DEVICE:
        return format_percent(share(value, t->analysis->device));
    case SHARE_OF_PEAK:
        return value > 0 ? format_percent(value) : (cell){""};
    case BYTES:
        return r->on_device ? (cell){""} : format_memory(value);
    case COUNT:
        return format_count(value);
    case NUMBER:
        return format_number(value);
    case GIGA:
        return format_number(value * 1e-9);
    }
    return (cell){""};
}

/* --- the order of the rows -------------------------------------------------------------------- */

/* PyTorch's older names say cuda where the newer ones say device. */
static const column *find_key(const char *name)
{
    char plain[64];
    const char *cuda = strstr(name, "cuda");
    snprintf(plain, sizeof plain, "%.*s%s%s", cuda ? (int)(cuda - name) : 60, name, cuda ? "device" : "",
             cuda ? cuda + 4 : "");
    for (int i = 0; i < COLUMNS; i++)
        if (columns[i].key && strcmp(columns[i].key, plain) == 0)
            return &columns[i];
    return NULL;
}

typedef struct ranked {
    kn_profiler_row row;
    const column *key;
    int place; /* by device time: the order among equals */
} ranked;

/* Largest first, but names in alphabetical order. */
static int by_key(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (!x->key->value) {
        int names = strcmp(x->row.name, y->row.name);
        return names ? names : x->place - y->place;
    }
    double first = x->key->value(&x->row), second = x->key->value(&y->row);
    return first != second ? (first < second ? 1 : -1) : x->place - y->place;
}

static kn_status sort_rows(kn_profiler_row *rows, int count, const column *key)
{
    ranked *order = kn_calloc((size_t)count + 1, sizeof *order);
    if (!order)
        return KN_ERR_MEMORY;
    for (int i = 0; i < count; i++)
        order[i] = (ranked){rows[i], key, i};
    qsort(order, (size_t)count, sizeof *order, by_key);
    for (int i = 0; i < count; i++)
        rows[i] = order[i].row;
    kn_free(order);
    return KN_OK;
}

/* --- the text --------------------------------------------------------------------------------- */

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
    const column *chosen[COLUMNS];
    kn_table_column look[COLUMNS];
    kn_page page = kn_page_for(t->params->width);
    kn_table shown = {.columns = look, .has_rules = true};
    for (const column *c = columns; c < columns + COLUMNS; c++)
        if (is_shown(c, t)) {
            look[shown.num_columns] = (kn_table_column){c->title, true, COLUMN_WIDTH, c->shortest, c->rank};
            chosen[shown.num_columns++] = c;
        }
    for (int r = 0; r < t->count; r++)
        for (int c = 0; c < shown.num_columns; c++)
            kn_table_put(&shown, "%s", cell_of(chosen[c], t, &t->rows[r]).text);
    int hidden = kn_table_append(text, &shown, page);
    kn_table_free(&shown);
    append_notes(text, t);
    if (hidden > 0)
        kn_text_format(text, "Note: %d columns were left out to fit %d characters\n", hidden, page.width);
}

/* --- the table of groups' calls --------------------------------------------------------------- */

static void put_call(kn_table *shown, const kn_profiler_call *row)
{
    char bytes[32];
    kn_table_put(shown, "%s", row->name);
    kn_table_put(shown, "%" PRId64, row->count);
    kn_table_put(shown, "%s", kn_format_bytes(bytes, sizeof bytes, (uint64_t)row->bytes));
    const double times[] = {row->time_total,    average(row->time_total, row->count),
                            row->wait_time,     row->copy_down_time,
                            row->exchange_time, row->copy_up_time};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        kn_table_put(shown, "%s", format_time(times[i]).text);
    kn_table_put(shown, "%s", format_number(row->bus_bandwidth * 1e-9).text);
}

static void append_calls(kn_text *text, const kn_profiler_call *rows, int count, int width)
{
    static const kn_table_column columns_of_calls[] = {
        {"Group call", true, COLUMN_WIDTH, 0, 0}, {"# of Calls", true, COLUMN_WIDTH, 0, 1},
        {"Bytes", true, COLUMN_WIDTH, 0, 1},      {"Time total", true, COLUMN_WIDTH, 0, 0},
        {"Time avg", true, COLUMN_WIDTH, 0, 6},   {"Waiting", true, COLUMN_WIDTH, 0, 2},
        {"Copy down", true, COLUMN_WIDTH, 0, 4},  {"Exchange", true, COLUMN_WIDTH, 0, 3},
        {"Copy up", true, COLUMN_WIDTH, 0, 5},    {"Bus GB/s", true, COLUMN_WIDTH, 0, 0},
    };
    kn_table shown = {.columns = columns_of_calls,
                      .num_columns = sizeof columns_of_calls / sizeof columns_of_calls[0],
                      .has_rules = true};
    for (int r = 0; r < count; r++)
        put_call(&shown, &rows[r]);
    kn_table_append(text, &shown, kn_page_for(width));
    kn_table_free(&shown);
}

static kn_status append_communication(kn_text *text, const table *t)
{
    kn_communication communication = {0};
    kn_profiler_call *rows = NULL;
    int count = 0;
    KN_TRY(kn_profile_communication(&communication, t->profile, t->analysis));
    kn_status status = kn_communication_rows(&rows, &count, t->profile, &communication);
    if (status == KN_OK && count > 0) {
        append_calls(text, rows, count, t->params->width);
        kn_text_format(text, "Communication: %s, of which %s while kernels ran\n", format_time(communication.time).text,
                       format_percent(share(communication.hidden, communication.time)).text);
    }
    kn_free(rows);
    kn_communication_free(&communication);
    return status;
}

/* --- the interface ---------------------------------------------------------------------------- */

static const column *check_params(const kn_profiler_table_params *p)
{
    const column *key = find_key(p->sort_by ? p->sort_by : "self_device_time_total");
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
                            const column *key)
{
    kn_analysis analysis = {0};
    kn_profiler_row *rows = NULL;
    int count = 0;
    KN_TRY(kn_profile_check_results(profile, "kn_profiler_table"));
    KN_TRY(kn_profile_analyse(&analysis, profile, profile->params.with_flops && params->peak));
    kn_status status = kn_profile_rows(&rows, &count, profile, &analysis, params->group_by_input_shape);
    if (status == KN_OK)
        status = sort_rows(rows, count, key);
    if (status == KN_OK) {
        if (params->row_limit > 0 && count > params->row_limit)
            count = params->row_limit;
        const table t = {rows, count, profile, &analysis, params};
        append_table(text, &t);
        status = append_communication(text, &t);
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
    const column *key = check_params(params);
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
