/* rt/memory/statistics.c - lists of memory figures under PyTorch's keys. */
#include "rt/memory/statistics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

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
