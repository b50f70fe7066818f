/* watch/usage/files.c - reading the small files of /proc and /sys, and the list of processes. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/utf8.h"
#include "watch/usage/usage.h"

/* --- the figures ------------------------------------------------------------------------------ */

void kn_usage_clear(kn_usage *usage)
{
    memset(usage, 0, sizeof *usage);
    usage->memory_used = usage->memory_total = -1;
    usage->load = usage->memory_load = usage->temperature = usage->power = usage->power_limit = NAN;
    usage->clock = usage->memory_clock = usage->fan = NAN;
    usage->source = "";
    usage->num_processes = -1;
}

void kn_usage_add_process(kn_usage *usage, int64_t pid, int64_t memory_used, const char *name)
{
    if (usage->num_processes < 0)
        usage->num_processes = 0;
    int listed = usage->num_processes < KN_USAGE_MAX_PROCESSES ? usage->num_processes : KN_USAGE_MAX_PROCESSES;
    for (int i = 0; i < listed; i++) {
        kn_device_process *known = &usage->processes[i];
        if (known->pid != pid)
            continue;
        if (memory_used > 0)
            known->memory_used = (known->memory_used > 0 ? known->memory_used : 0) + memory_used;
        return;
    }
    if (listed < KN_USAGE_MAX_PROCESSES) {
        usage->processes[listed] = (kn_device_process){.pid = pid, .memory_used = memory_used};
        snprintf(usage->processes[listed].name, sizeof usage->processes[listed].name, "%s", name);
    }
    usage->num_processes++;
}

static int compare_processes(const void *left, const void *right)
{
    const kn_device_process *a = left, *b = right;
    if (a->memory_used != b->memory_used)
        return a->memory_used < b->memory_used ? 1 : -1;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

void kn_usage_sort_processes(kn_usage *usage)
{
    int listed = usage->num_processes < KN_USAGE_MAX_PROCESSES ? usage->num_processes : KN_USAGE_MAX_PROCESSES;
    if (listed > 1)
        qsort(usage->processes, (size_t)listed, sizeof usage->processes[0], compare_processes);
}

/* --- files ------------------------------------------------------------------------------------ */

const char *kn_usage_path(char path[KN_USAGE_PATH], const char *root, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int before = snprintf(path, KN_USAGE_PATH, "%s", root);
    int after = before >= 0 && before < KN_USAGE_PATH
                    ? vsnprintf(path + before, (size_t)(KN_USAGE_PATH - before), format, args)
                    : KN_USAGE_PATH;
    va_end(args);
    if (after < 0 || before + after >= KN_USAGE_PATH)
        path[0] = '\0';
    return path;
}

bool kn_usage_read_line(const char *path, char *line, size_t size)
{
    if (!kn_file_first_line(path, line, size))
        return false;
    kn_make_printable(line, size, false); /* process names are arbitrary */
    return true;
}

int64_t kn_usage_read_number(const char *path)
{
    char line[64], *end;
    if (!kn_usage_read_line(path, line, sizeof line))
        return -1;
    long long value = strtoll(line, &end, 10);
    return end == line ? -1 : (int64_t)value;
}

double kn_usage_read_scaled(const char *path, double unit)
{
    char line[64], *end;
    if (!kn_usage_read_line(path, line, sizeof line))
        return NAN;
    double value = strtod(line, &end);
    return end == line ? NAN : value * unit;
}

void kn_usage_process_name(char name[64], const char *root, int64_t pid)
{
    char path[KN_USAGE_PATH];
    if (!kn_usage_read_line(kn_usage_path(path, root, "/proc/%" PRId64 "/comm", pid), name, 64))
        name[0] = '\0';
}
