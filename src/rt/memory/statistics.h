/* rt/memory/statistics.h - a statistic as in torch.cuda.memory_stats, and lists of them for the user. */
#pragma once

#include <koine/memory.h>

typedef struct kn_statistic {
    int64_t current, peak;
    int64_t allocated, freed; /* totals ever added and removed */
} kn_statistic;

static inline void kn_statistic_add(kn_statistic *figure, int64_t amount)
{
    figure->current += amount;
    figure->allocated += amount;
    if (figure->current > figure->peak)
        figure->peak = figure->current;
}

static inline void kn_statistic_subtract(kn_statistic *figure, int64_t amount)
{
    figure->current -= amount;
    figure->freed += amount;
}

static inline void kn_statistic_reset_peak(kn_statistic *figure) { figure->peak = figure->current; }
static inline void kn_statistic_reset_accumulated(kn_statistic *figure) { figure->allocated = figure->freed = 0; }

/* A list of keys and values being filled: `count` continues past `capacity`, so that the caller learns the total. */
typedef struct kn_statistic_list {
    kn_memory_stat_entry *entries;
    int capacity, count;
} kn_statistic_list;

void kn_statistic_list_number(kn_statistic_list *list, const char *key, int64_t value);

/* "PREFIX.current", "PREFIX.peak", "PREFIX.allocated", "PREFIX.freed" */
void kn_statistic_list_figure(kn_statistic_list *list, const char *prefix, const kn_statistic *figure);

/* In the order of their keys, as PyTorch gives them. */
void kn_statistic_list_sort(kn_statistic_list *list);

/* The value of `key`; KN_ERR_ARGUMENT, naming `function`, when the list has none. */
kn_status kn_statistic_list_find(const kn_statistic_list *list, const char *function, const char *key, int64_t *value);
