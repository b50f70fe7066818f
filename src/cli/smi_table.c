/* cli/smi_table.c - a reading of all devices as text and as JSON. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "cli/smi.h"

/* --- the table -------------------------------------------------------------------------------- */

enum { DEVICE, NAME, DRIVER, TEMPERATURE, POWER, MEMORY, LOAD, CLOCK, FAN, COLUMNS };
static const char *const headings[COLUMNS] = {"DEVICE", "NAME", "DRIVER", "TEMP", "POWER",
                                              "MEMORY", "LOAD", "CLOCK",  "FAN"};
static const bool is_number[COLUMNS] = {
    [TEMPERATURE] = true, [POWER] = true, [MEMORY] = true, [LOAD] = true, [CLOCK] = true, [FAN] = true};

#define CELL 48
typedef struct line {
    char cells[COLUMNS][CELL];
} line;

/* "-" when it is not known. */
static void put_figure(char cell[CELL], double value, const char *unit)
{
    if (isnan(value))
        snprintf(cell, CELL, "-");
    else
        snprintf(cell, CELL, "%.0f %s", value, unit);
}

static void fill_line(line *l, const kn_smi_row *row)
{
    const kn_usage *u = &row->usage;
    char used[32], total[32];
    snprintf(l->cells[DEVICE], CELL, "%s", kn_device_string(row->device));
    snprintf(l->cells[NAME], CELL, "%.40s", row->properties.name);
    snprintf(l->cells[DRIVER], CELL, "%.24s", row->properties.driver_version);
    put_figure(l->cells[TEMPERATURE], u->temperature, "C");
    put_figure(l->cells[POWER], u->power, "W");
    if (!isnan(u->power) && !isnan(u->power_limit))
        snprintf(l->cells[POWER], CELL, "%.0f / %.0f W", u->power, u->power_limit);
    snprintf(l->cells[MEMORY], CELL, "%s / %s",
             u->memory_used < 0 ? "-" : kn_format_bytes(used, sizeof used, (uint64_t)u->memory_used),
             u->memory_total < 0 ? "-" : kn_format_bytes(total, sizeof total, (uint64_t)u->memory_total));
    put_figure(l->cells[LOAD], u->load, "%");
    put_figure(l->cells[CLOCK], u->clock, "MHz");
    put_figure(l->cells[FAN], u->fan, "%");
}

/* Names to the left, numbers to the right; no blanks at a line's end. */
static void append_line(kn_text *out, const char *const cells[COLUMNS], const int widths[COLUMNS])
{
    for (int c = 0; c < COLUMNS; c++) {
        const char *gap = c > 0 ? "  " : "";
        int padding = widths[c] - (int)strlen(cells[c]);
        if (is_number[c])
            kn_text_format(out, "%s%*s%s", gap, padding, "", cells[c]);
        else
            kn_text_format(out, "%s%s%*s", gap, cells[c], padding, "");
    }
    kn_text_append(out, "\n");
}

static void append_devices(kn_text *out, const kn_smi_row *rows, int count)
{
    line lines[KN_SMI_MAX];
    int widths[COLUMNS];
    for (int c = 0; c < COLUMNS; c++)
        widths[c] = (int)strlen(headings[c]);
    for (int i = 0; i < count; i++) {
        fill_line(&lines[i], &rows[i]);
        for (int c = 0; c < COLUMNS; c++)
            if ((int)strlen(lines[i].cells[c]) > widths[c])
                widths[c] = (int)strlen(lines[i].cells[c]);
    }
    append_line(out, headings, widths);
    for (int i = 0; i < count; i++) {
        const char *cells[COLUMNS];
        for (int c = 0; c < COLUMNS; c++)
            cells[c] = lines[i].cells[c];
        append_line(out, cells, widths);
    }
}

static void append_processes(kn_text *out, const kn_smi_row *rows, int count)
{
    bool any = false;
    for (int i = 0; i < count; i++) {
        const kn_usage *u = &rows[i].usage;
        for (int p = 0; p < u->num_processes && p < KN_USAGE_MAX_PROCESSES; p++) {
            char bytes[32] = "-";
            if (u->processes[p].memory_used >= 0)
                kn_format_bytes(bytes, sizeof bytes, (uint64_t)u->processes[p].memory_used);
            if (!any)
                kn_text_format(out, "\n%-8s%10s  %10s  %s\n", "DEVICE", "PID", "MEMORY", "PROCESS");
            any = true;
            kn_text_format(out, "%-8s%10" PRId64 "  %10s  %s\n", kn_device_string(rows[i].device), u->processes[p].pid,
                           bytes, *u->processes[p].name ? u->processes[p].name : "-");
        }
        if (u->num_processes > KN_USAGE_MAX_PROCESSES)
            kn_text_format(out, "%-8s%d more\n", kn_device_string(rows[i].device),
                           u->num_processes - KN_USAGE_MAX_PROCESSES);
    }
    if (any)
        return;
    bool told = false;
    for (int i = 0; i < count; i++)
        told |= rows[i].usage.num_processes == 0;
    kn_text_append(out, told ? "\nNo processes.\n" : "\nProcesses: no driver here tells.\n");
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

void kn_smi_table(kn_text *out, const kn_smi_row *rows, int count)
{
    kn_text_format(out, "koine %s", kn_version());
    append_time(out, "   ", "%Y-%m-%d %H:%M:%S");
    kn_text_format(out, "   %d device%s\n\n", count, count == 1 ? "" : "s");
    append_devices(out, rows, count);
    append_processes(out, rows, count);
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
