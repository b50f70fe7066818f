/* watch/memory/summary.c - the pool's figures as the table that PyTorch prints. */
#include <inttypes.h>
#include <koine/device.h>
#include <koine/memory.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "rt/memory/pool.h"

#define WIDTH 75

typedef enum unit { BYTES, COUNT } unit;

static void rule(kn_text *text, char line)
{
    char row[WIDTH + 4];
    memset(row, line, sizeof row);
    row[0] = row[WIDTH + 1] = '|';
    row[WIDTH + 2] = '\n';
    row[WIDTH + 3] = '\0';
    kn_text_append(text, row);
}

/* A number in ten columns; `scale` chooses the unit, so that the rows of a group share one. As in PyTorch the unit
 * changes at 750 (768 for bytes) of the next, and numbers are rounded down. */
static void cell(kn_text *text, unit kind, int64_t value, int64_t scale)
{
    static const char *const bytes[] = {"B  ", "KiB", "MiB", "GiB", "TiB", "PiB"};
    static const char *const counts[] = {" ", "K", "M"};
    int64_t base = kind == BYTES ? 1024 : 1000, most = 768 * 1024, last = 5;
    if (kind == COUNT)
        most = 750 * 1000, last = 2;
    int step = 0;
    for (double size = (double)scale; step < last && size >= (double)most; step++) {
        value /= base;
        size /= (double)base;
    }
    if (kind == BYTES)
        kn_text_format(text, "| %6" PRId64 " %s ", value, bytes[step]);
    else
        kn_text_format(text, "| %7" PRId64 " %s  ", value, counts[step]);
}

static void row(kn_text *text, const char *name, unit kind, const kn_statistic *figure, const kn_statistic *scale)
{
    kn_text_format(text, "| %-21s ", name);
    cell(text, kind, figure->current, scale->current);
    cell(text, kind, figure->peak, scale->peak);
    cell(text, kind, figure->allocated, scale->allocated);
    cell(text, kind, figure->freed, scale->freed);
    kn_text_append(text, "|\n");
}

static void rows(kn_text *text, const char *name, unit kind, const kn_statistic figures[KN_POOL_PARTS],
                 bool abbreviated)
{
    rule(text, '-');
    row(text, name, kind, &figures[KN_PART_ALL], &figures[KN_PART_ALL]);
    if (abbreviated)
        return;
    row(text, "      from large pool", kind, &figures[KN_PART_LARGE], &figures[KN_PART_ALL]);
    row(text, "      from small pool", kind, &figures[KN_PART_SMALL], &figures[KN_PART_ALL]);
}

static void table(kn_text *text, const kn_pool_figures *f, bool abbreviated)
{
    static const struct {
        kn_pool_stat what;
        const char *name;
        unit kind;
    } shown[] = {
        {KN_STAT_ALLOCATED_BYTES, "Allocated memory", BYTES},
        {KN_STAT_ACTIVE_BYTES, "Active memory", BYTES},
        {KN_STAT_REQUESTED_BYTES, "Requested memory", BYTES},
        {KN_STAT_RESERVED_BYTES, "GPU reserved memory", BYTES},
        {KN_STAT_INACTIVE_SPLIT_BYTES, "Non-releasable memory", BYTES},
        {KN_STAT_ALLOCATION, "Allocations", COUNT},
        {KN_STAT_ACTIVE, "Active allocs", COUNT},
        {KN_STAT_SEGMENT, "GPU reserved segments", COUNT},
        {KN_STAT_INACTIVE_SPLIT, "Non-releasable allocs", COUNT},
    };
    const kn_statistic none = {0};
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
        rows(text, shown[i].name, shown[i].kind, f->stats[shown[i].what], abbreviated);
    rule(text, '-');
    row(text, "Oversize allocations", COUNT, &none, &none);
    rule(text, '-');
    row(text, "Oversize GPU segments", COUNT, &none, &none);
    rule(text, '=');
}

static char *summary(kn_device *device, bool abbreviated)
{
    if (!device)
        return kn_fail_argument_null("kn_memory_summary", "device"), NULL;
    kn_pool_figures f = kn_pool_read_figures(device);
    kn_text text = {0};
    rule(&text, '=');
    char line[2 * WIDTH];
    snprintf(line, sizeof line, "%20s Koine memory summary, device %s", "", kn_device_string(device));
    kn_text_format(&text, "|%-75.75s|\n", line);
    rule(&text, '-');
    snprintf(line, sizeof line, "%12sOOMs: %-18" PRIu64 "| %8s driver retries: %-8" PRIu64, "", f.ooms, "", f.retries);
    kn_text_format(&text, "|%-75.75s|\n", line);
    rule(&text, '=');
    kn_text_append(&text, "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n");
    table(&text, &f, abbreviated);
    return kn_text_finish(&text);
}

char *kn_memory_summary(kn_device *device) { return summary(device, false); }
char *kn_memory_summary_abbreviated(kn_device *device) { return summary(device, true); }
