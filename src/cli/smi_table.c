/* cli/smi_table.c - formats a reading of all devices as text and as JSON. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "cli/smi.h"

/* --- the table -------------------------------------------------------------------------------- */

enum { DEVICE, NAME, DRIVER, TEMPERATURE, POWER, MEMORY, LOAD, CLOCK, FAN, COLUMNS };
static const kn_table_column columns[COLUMNS] = {
    [DEVICE] = {.title = "DEVICE"},
    [NAME] = {.title = "NAME", .shortest = 16},
    [DRIVER] = {.title = "DRIVER", .rank = 5},
    [TEMPERATURE] = {.title = "TEMP", .is_number = true, .rank = 2},
    [POWER] = {.title = "POWER", .is_number = true, .rank = 1},
    [MEMORY] = {.title = "MEMORY", .is_number = true},
    [LOAD] = {.title = "LOAD", .is_number = true},
    [CLOCK] = {.title = "CLOCK", .is_number = true, .rank = 3},
    [FAN] = {.title = "FAN", .is_number = true, .rank = 4},
};

/* "-" if unknown. */
static void put_figure(kn_table *table, double value, const char *unit)
{
    if (isnan(value))
        kn_table_put(table, "-");
    else
        kn_table_put(table, "%.0f %s", value, unit);
}

static void put_row(kn_table *table, const kn_smi_row *row)
{
    const kn_usage *u = &row->usage;
    char used[32], total[32];
    kn_table_put(table, "%s", kn_device_string(row->device));
    kn_table_put(table, "%s", row->properties.name);
    kn_table_put(table, "%s", row->properties.driver_version);
    put_figure(table, u->temperature, "C");
    if (isnan(u->power) || isnan(u->power_limit))
        put_figure(table, u->power, "W");
    else
        kn_table_put(table, "%.0f / %.0f W", u->power, u->power_limit);
    kn_table_put(table, "%s / %s",
                 u->memory_used < 0 ? "-" : kn_format_bytes(used, sizeof used, (uint64_t)u->memory_used),
                 u->memory_total < 0 ? "-" : kn_format_bytes(total, sizeof total, (uint64_t)u->memory_total));
    put_figure(table, u->load, "%");
    put_figure(table, u->clock, "MHz");
    put_figure(table, u->fan, "%");
}

static void append_devices(kn_text *out, const kn_smi_row *rows, int count, kn_page page)
{
    kn_table table = {.columns = columns, .num_columns = COLUMNS};
    for (int i = 0; i < count; i++)
        put_row(&table, &rows[i]);
    if (kn_table_append(out, &table, page) > 0)
        kn_text_append(out, "(more columns: koine smi --wide)\n");
    kn_table_free(&table);
}

enum { OF_DEVICE, PID, OF_MEMORY, PROCESS, PROCESS_COLUMNS };
static const kn_table_column process_columns[PROCESS_COLUMNS] = {
    [OF_DEVICE] = {.title = "DEVICE"},
    [PID] = {.title = "PID", .is_number = true, .least = 10},
    [OF_MEMORY] = {.title = "MEMORY", .is_number = true, .least = 10},
    [PROCESS] = {.title = "PROCESS", .shortest = 16},
};

static void put_processes(kn_table *table, const kn_smi_row *row)
{
    const kn_usage *u = &row->usage;
    for (int p = 0; p < u->num_processes && p < KN_USAGE_MAX_PROCESSES; p++) {
        char bytes[32] = "-";
        if (u->processes[p].memory_used >= 0)
            kn_format_bytes(bytes, sizeof bytes, (uint64_t)u->processes[p].memory_used);
        kn_table_put(table, "%s", kn_device_string(row->device));
        kn_table_put(table, "%" PRId64, u->processes[p].pid);
        kn_table_put(table, "%s", bytes);
        kn_table_put(table, "%s", *u->processes[p].name ? u->processes[p].name : "-");
    }
    if (u->num_processes > KN_USAGE_MAX_PROCESSES) {
        kn_table_put(table, "%s", kn_device_string(row->device));
        kn_table_put(table, "%s", "");
        kn_table_put(table, "%s", "");
        kn_table_put(table, "%d more", u->num_processes - KN_USAGE_MAX_PROCESSES);
    }
}

static void append_processes(kn_text *out, const kn_smi_row *rows, int count, kn_page page)
{
    kn_table table = {.columns = process_columns, .num_columns = PROCESS_COLUMNS};
    bool reported = false;
    for (int i = 0; i < count; i++) {
        put_processes(&table, &rows[i]);
        reported |= rows[i].usage.num_processes == 0;
    }
    kn_text_append(out, "\n");
    if (table.num_cells > 0 || table.failed)
        kn_table_append(out, &table, page);
    else
        kn_text_append(out, reported ? "No processes.\n" : "Processes: not reported by any driver.\n");
    kn_table_free(&table);
}

static void append_time(kn_text *out, const char *before, const char *format)
{
    char text[64];
    time_t now = time(NULL);
    struct tm parts;
    localtime_r(&now, &parts);
    strftime(text, sizeof text, format, &parts);
    kn_text_format(out, "%s%s", before, text);
}

void kn_smi_table(kn_text *out, const kn_smi_row *rows, int count, kn_page page)
{
    kn_text_format(out, "koine %s", kn_version());
    append_time(out, "   ", "%Y-%m-%d %H:%M:%S");
    kn_text_format(out, "   %d device%s\n\n", count, count == 1 ? "" : "s");
    append_devices(out, rows, count, page);
    append_processes(out, rows, count, page);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void add_number(cJSON *object, const char *key, double value, bool known)
{
    if (known)
        cJSON_AddNumberToObject(object, key, value);
    else
        cJSON_AddNullToObject(object, key);
}

static void add_figure(cJSON *object, const char *key, double value) { add_number(object, key, value, !isnan(value)); }
static void add_count(cJSON *object, const char *key, int64_t value)
{
    add_number(object, key, (double)value, value >= 0);
}

static void add_processes(cJSON *object, const kn_usage *u)
{
    if (u->num_processes < 0) {
        cJSON_AddNullToObject(object, "processes");
        return;
    }
    cJSON *array = cJSON_AddArrayToObject(object, "processes");
    for (int p = 0; p < u->num_processes && p < KN_USAGE_MAX_PROCESSES; p++) {
        cJSON *process = cJSON_CreateObject();
        cJSON_AddItemToArray(array, process);
        add_count(process, "pid", u->processes[p].pid);
        add_count(process, "memory_used", u->processes[p].memory_used);
        cJSON_AddStringToObject(process, "name", u->processes[p].name);
    }
}

static void add_row(cJSON *array, const kn_smi_row *row)
{
    const kn_usage *u = &row->usage;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(array, object);
    cJSON_AddNumberToObject(object, "index", kn_device_index(row->device));
    cJSON_AddStringToObject(object, "device", kn_device_string(row->device));
    cJSON_AddStringToObject(object, "name", row->properties.name);
    cJSON_AddStringToObject(object, "driver_version", row->properties.driver_version);
    cJSON_AddStringToObject(object, "pci_address", row->properties.pci_address);
    cJSON_AddStringToObject(object, "source", u->source);
    add_count(object, "memory_used", u->memory_used);
    add_count(object, "memory_total", u->memory_total);
    add_figure(object, "load_percent", u->load);
    add_figure(object, "memory_load_percent", u->memory_load);
    add_figure(object, "temperature_c", u->temperature);
    add_figure(object, "power_w", u->power);
    add_figure(object, "power_limit_w", u->power_limit);
    add_figure(object, "clock_mhz", u->clock);
    add_figure(object, "memory_clock_mhz", u->memory_clock);
    add_figure(object, "fan_percent", u->fan);
    add_count(object, "num_processes", u->num_processes);
    add_processes(object, u);
}

bool kn_smi_json(kn_text *out, const kn_smi_row *rows, int count, bool compact)
{
    kn_text when = {0};
    append_time(&when, "", "%Y-%m-%dT%H:%M:%S%z");
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "version", kn_version());
    cJSON_AddStringToObject(root, "time", when.data ? when.data : "");
    cJSON *array = cJSON_AddArrayToObject(root, "devices");
    for (int i = 0; i < count; i++)
        add_row(array, &rows[i]);
    char *text = compact ? cJSON_PrintUnformatted(root) : cJSON_Print(root);
    cJSON_Delete(root);
    kn_text_free(&when);
    if (text)
        kn_text_format(out, "%s\n", text);
    bool whole = text && !out->failed;
    cJSON_free(text);
    return whole;
}
