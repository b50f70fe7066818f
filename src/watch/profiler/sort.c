/* watch/profiler/sort.c - the order of the table's rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "watch/profiler/analysis.h"

static double average(double total, int64_t count) { return count > 0 ? total / (double)count : 0; }

static double key_self_device(const kn_profiler_row *r) { return r->self_device_time_total; }
static double key_device(const kn_profiler_row *r) { return r->device_time_total; }
static double key_device_average(const kn_profiler_row *r) { return average(r->device_time_total, r->count); }
static double key_self_cpu(const kn_profiler_row *r) { return r->self_cpu_time_total; }
static double key_cpu(const kn_profiler_row *r) { return r->cpu_time_total; }
static double key_cpu_average(const kn_profiler_row *r) { return average(r->cpu_time_total, r->count); }
static double key_count(const kn_profiler_row *r) { return (double)r->count; }
static double key_flops(const kn_profiler_row *r) { return r->flops; }
static double key_memory(const kn_profiler_row *r) { return (double)r->device_memory_usage; }

struct kn_profiler_sort_key {
    const char *name;
    double (*value)(const kn_profiler_row *row); /* NULL: by name */
};
typedef kn_profiler_sort_key sort_key;

static const sort_key sort_keys[] = {
    {"self_device_time_total", key_self_device},
    {"device_time_total", key_device},
    {"device_time", key_device_average},
    {"self_cpu_time_total", key_self_cpu},
    {"cpu_time_total", key_cpu},
    {"cpu_time", key_cpu_average},
    {"count", key_count},
    {"flops", key_flops},
    {"device_memory_usage", key_memory},
    {"name", NULL},
};
#define SORT_KEYS (sizeof sort_keys / sizeof sort_keys[0])

/* PyTorch's older names say cuda where the newer ones say device. */
const kn_profiler_sort_key *kn_profile_find_sort_key(const char *name)
{
    char plain[64];
    const char *cuda = strstr(name, "cuda");
    snprintf(plain, sizeof plain, "%.*s%s%s", cuda ? (int)(cuda - name) : 60, name, cuda ? "device" : "",
             cuda ? cuda + 4 : "");
    for (size_t i = 0; i < SORT_KEYS; i++)
        if (strcmp(sort_keys[i].name, plain) == 0)
            return &sort_keys[i];
    return NULL;
}

typedef struct ranked {
    kn_profiler_row row;
    const sort_key *key;
    int place; /* by device time: the order among equals */
} ranked;

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

kn_status kn_profile_sort_rows(kn_profiler_row *rows, int count, const kn_profiler_sort_key *key)
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
