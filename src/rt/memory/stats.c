/* rt/memory/stats.c - lists of memory figures under PyTorch's keys; the pool's figures as torch.cuda.memory_stats's. */
#include <koine/memory.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "rt/device/device_struct.h"
#include "rt/memory/pool.h"

/* --- lists ------------------------------------------------------------------------------------ */

void kn_statistic_list_number(kn_statistic_list *list, const char *key, int64_t value)
{
    if (list->count < list->capacity) {
        kn_memory_stat_entry *entry = &list->entries[list->count];
        snprintf(entry->key, sizeof entry->key, "%s", key);
        entry->value = value;
    }
    list->count++;
}

void kn_statistic_list_figure(kn_statistic_list *list, const char *prefix, const kn_statistic *figure)
{
    static const char *const metrics[] = {"current", "peak", "allocated", "freed"};
    const int64_t values[] = {figure->current, figure->peak, figure->allocated, figure->freed};
    for (int i = 0; i < 4; i++) {
        char key[KN_MEMORY_STAT_KEY];
        snprintf(key, sizeof key, "%s.%s", prefix, metrics[i]);
        kn_statistic_list_number(list, key, values[i]);
    }
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const kn_memory_stat_entry *)a)->key, ((const kn_memory_stat_entry *)b)->key);
}

void kn_statistic_list_sort(kn_statistic_list *list)
{
    int filled = list->count < list->capacity ? list->count : list->capacity;
    if (filled > 1)
        qsort(list->entries, (size_t)filled, sizeof *list->entries, by_key);
}

kn_status kn_statistic_list_find(const kn_statistic_list *list, const char *function, const char *key, int64_t *value)
{
    for (int i = 0; i < list->count && i < list->capacity; i++)
        if (strcmp(list->entries[i].key, key) == 0) {
            *value = list->entries[i].value;
            return KN_OK;
        }
    return kn_fail(KN_ERR_ARGUMENT, "%s: there is no statistic `%s`; keys look like `allocated_bytes.all.peak`",
                   function, key);
}

/* --- the pool's figures ----------------------------------------------------------------------- */

static const char *const stat_names[KN_POOL_STATS] = {
    [KN_STAT_ALLOCATION] = "allocation",
    [KN_STAT_SEGMENT] = "segment",
    [KN_STAT_ACTIVE] = "active",
    [KN_STAT_INACTIVE_SPLIT] = "inactive_split",
    [KN_STAT_ALLOCATED_BYTES] = "allocated_bytes",
    [KN_STAT_RESERVED_BYTES] = "reserved_bytes",
    [KN_STAT_ACTIVE_BYTES] = "active_bytes",
    [KN_STAT_INACTIVE_SPLIT_BYTES] = "inactive_split_bytes",
    [KN_STAT_REQUESTED_BYTES] = "requested_bytes",
};
static const char *const part_names[KN_POOL_PARTS] = {"all", "large_pool", "small_pool"};

static void list_figures(kn_statistic_list *list, const kn_pool_figures *figures)
{
    for (int stat = 0; stat < KN_POOL_STATS; stat++)
        for (int part = 0; part < KN_POOL_PARTS; part++) {
            char prefix[KN_MEMORY_STAT_KEY - sizeof ".allocated"];
            snprintf(prefix, sizeof prefix, "%s.%s", stat_names[stat], part_names[part]);
            kn_statistic_list_figure(list, prefix, &figures->stats[stat][part]);
        }
    const kn_statistic none = {0}; /* blocks of any size are split, so none is too large to split */
    kn_statistic_list_figure(list, "oversize_allocations", &none);
    kn_statistic_list_figure(list, "oversize_segments", &none);
    kn_statistic_list_number(list, "max_split_size", -1);
    kn_statistic_list_number(list, "num_alloc_retries", (int64_t)figures->retries);
    kn_statistic_list_number(list, "num_device_alloc", (int64_t)figures->driver_allocations);
    kn_statistic_list_number(list, "num_device_free", (int64_t)figures->driver_frees);
    kn_statistic_list_number(list, "num_ooms", (int64_t)figures->ooms);
    kn_statistic_list_number(list, "num_sync_all_streams", (int64_t)figures->syncs);
    kn_statistic_list_sort(list);
}

int kn_memory_stats(kn_device *device, kn_memory_stat_entry *entries, int capacity)
{
    if (!device || (!entries && capacity > 0))
        return kn_fail_argument_null("kn_memory_stats", device ? "entries" : "device"), 0;
    kn_pool_figures figures = kn_pool_read_figures(device);
    kn_statistic_list list = {.entries = entries, .capacity = capacity};
    list_figures(&list, &figures);
    return list.count;
}

kn_status kn_memory_stat(kn_device *device, const char *key, int64_t *value)
{
    if (!device || !key || !value)
        return kn_fail_argument_null("kn_memory_stat", !device ? "device" : !key ? "key" : "value");
    kn_memory_stat_entry entries[KN_MEMORY_STATS];
    kn_statistic_list list = {.entries = entries, .capacity = KN_MEMORY_STATS};
    list.count = kn_memory_stats(device, entries, KN_MEMORY_STATS);
    return kn_statistic_list_find(&list, "kn_memory_stat", key, value);
}

/* --- single figures --------------------------------------------------------------------------- */

static kn_statistic figure_of(kn_device *device, const char *function, kn_pool_stat what)
{
    if (!device)
        return kn_fail_argument_null(function, "device"), (kn_statistic){0};
    return kn_pool_read_figures(device).stats[what][KN_PART_ALL];
}

#define FIGURE(function, what, metric)                                                                                 \
    uint64_t function(kn_device *device) { return (uint64_t)figure_of(device, #function, what).metric; }
FIGURE(kn_memory_allocated, KN_STAT_ALLOCATED_BYTES, current)
FIGURE(kn_max_memory_allocated, KN_STAT_ALLOCATED_BYTES, peak)
FIGURE(kn_memory_reserved, KN_STAT_RESERVED_BYTES, current)
FIGURE(kn_max_memory_reserved, KN_STAT_RESERVED_BYTES, peak)
#undef FIGURE

/* --- resetting -------------------------------------------------------------------------------- */

/* The pool's lock is held. */
static void reset_all(kn_pool_figures *figures, void (*reset)(kn_statistic *))
{
    for (int stat = 0; stat < KN_POOL_STATS; stat++)
        for (int part = 0; part < KN_POOL_PARTS; part++)
            reset(&figures->stats[stat][part]);
}

void kn_reset_peak_memory_stats(kn_device *device)
{
    if (!device) {
        kn_fail_argument_null("kn_reset_peak_memory_stats", "device");
        return;
    }
    kn_lock(&device->pool->lock);
    reset_all(&device->pool->figures, kn_statistic_reset_peak);
    kn_unlock(&device->pool->lock);
}

void kn_reset_accumulated_memory_stats(kn_device *device)
{
    if (!device) {
        kn_fail_argument_null("kn_reset_accumulated_memory_stats", "device");
        return;
    }
    kn_pool_figures *figures = &device->pool->figures;
    kn_lock(&device->pool->lock);
    reset_all(figures, kn_statistic_reset_accumulated);
    figures->driver_allocations = figures->driver_frees = figures->retries = figures->ooms = figures->syncs = 0;
    kn_unlock(&device->pool->lock);
}
