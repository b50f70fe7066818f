/* train/log_ranks.c - the figures of all ranks of a group together. What a log and a metric hold are sums and counts,
 * which are added in double precision, or samples, which are gathered: never figures of parts. */
#include <string.h>

#include <koine/autograd.h>
#include <koine/join.h>
#include <koine/shape.h>

#include "base/memory.h"
#include "train/device_log.h"

/* --- sums --------------------------------------------------------------------------------------------------------- */

kn_status kn_sums_add_up(double *sums, int64_t count, kn_group *group)
{
    if (count == 0)
        return KN_OK;
    kn_tensor *all = NULL;
    KN_TRY(kn_tensor_new(&all, KN_F64, 1, &count, kn_device_host()));
    memcpy(kn_data(all), sums, (size_t)count * sizeof *sums);
    kn_status status = kn_group_all_reduce(group, all);
    if (status == KN_OK)
        memcpy(sums, kn_data(all), (size_t)count * sizeof *sums);
    kn_release(all);
    return status;
}

/* --- a log -------------------------------------------------------------------------------------------------------- */

enum { OF_SUM, OF_WEIGHT, OF_COUNT, SCALAR_SUMS };

/* Goes through the sums of a log's cells: reads them into `next`, or writes them from there. */
typedef struct walk {
    double *next;
    bool writes;
} walk;

static void put_wide(int64_t *cell, double value) { memcpy(cell, &value, sizeof value); }

/* The other values, last, least and most, stay this rank's. */
static void widen(int64_t *cells)
{
    static const int kept[] = {KN_CELL_LAST, KN_CELL_MIN, KN_CELL_MAX};
    double values[sizeof kept / sizeof kept[0]];
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        values[i] = kn_log_cell_value(cells, kept[i]);
    cells[KN_CELL_SIZE] = sizeof(double);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        put_wide(&cells[kept[i]], values[i]);
}

static void visit_scalar(walk *w, int64_t *cells)
{
    double *sums = w->next;
    w->next += SCALAR_SUMS;
    if (!w->writes) {
        sums[OF_SUM] = kn_log_cell_sum(cells);
        sums[OF_WEIGHT] = (double)cells[KN_CELL_WEIGHT];
        sums[OF_COUNT] = (double)cells[KN_CELL_COUNT];
        return;
    }
    widen(cells);
    put_wide(&cells[KN_CELL_SUM], sums[OF_SUM]);
    put_wide(&cells[KN_CELL_ERROR], 0);
    cells[KN_CELL_WEIGHT] = (int64_t)sums[OF_WEIGHT];
    cells[KN_CELL_COUNT] = (int64_t)sums[OF_COUNT];
}

/* Whole numbers, exact up to 2^53. */
static void visit_count(walk *w, int64_t *cell)
{
    if (w->writes)
        *cell = (int64_t)*w->next;
    else
        *w->next = (double)*cell;
    w->next++;
}

static int scalars_of(const kn_log_entry *entry)
{
    return entry->kind == KN_ENTRY_SCALAR ? 1 : entry->kind == KN_ENTRY_METRIC ? entry->spec.kind->scalars : 0;
}

/* Norms and histograms are of gradients, which all ranks share. */
static int64_t counts_of(const kn_log_entry *entry)
{
    return entry->kind == KN_ENTRY_METRIC ? entry->cells - (int64_t)scalars_of(entry) * KN_SCALAR_CELLS : 0;
}

static void visit_all(walk *w, kn_device_log *log)
{
    for (int e = 0; e < log->count; e++) {
        const kn_log_entry *entry = &log->entries[e];
        int64_t *cells = log->figures + entry->first;
        for (int s = 0; s < scalars_of(entry); s++, cells += KN_SCALAR_CELLS)
            visit_scalar(w, cells);
        for (int64_t c = 0; c < counts_of(entry); c++)
            visit_count(w, cells + c);
    }
}

/* The first bad update of any rank, in each scalar, as one number, of which the least is the one to tell: the update's,
 * then NaN before infinity, then the rank. */
static kn_status find_first_bad(kn_device_log *log, kn_group *group)
{
    kn_tensor *first = NULL;
    const int64_t count = log->count, ranks = kn_group_size(group), rank = kn_group_rank(group);
    KN_TRY(kn_tensor_new(&first, KN_I64, 1, &count, kn_device_host()));
    int64_t *codes = kn_data(first);
    for (int e = 0; e < log->count; e++) {
        const int64_t *cells = log->figures + log->entries[e].first;
        const bool bad = log->entries[e].kind == KN_ENTRY_SCALAR && cells[KN_CELL_BAD] > 0;
        codes[e] = bad ? (2 * cells[KN_CELL_BAD] + (cells[KN_CELL_BAD_IS_NAN] == 0)) * ranks + rank : INT64_MAX;
    }
    kn_status status = kn_group_all_reduce(group, first, .op = KN_REDUCE_MIN);
    codes = kn_data(first);
    for (int e = 0; e < log->count && status == KN_OK; e++) {
        int64_t *cells = log->figures + log->entries[e].first;
        if (codes[e] == INT64_MAX)
            continue;
        cells[KN_CELL_BAD] = codes[e] / ranks / 2;
        cells[KN_CELL_BAD_IS_NAN] = codes[e] / ranks % 2 == 0;
        log->entries[e].bad_rank = (int)(codes[e] % ranks);
    }
    kn_release(first);
    return status;
}

kn_status kn_log_add_up(kn_device_log *log, kn_group *group)
{
    int64_t count = 0;
    for (int e = 0; e < log->count; e++)
        count += (int64_t)scalars_of(&log->entries[e]) * SCALAR_SUMS + counts_of(&log->entries[e]);
    double *sums = kn_calloc((size_t)count + 1, sizeof *sums);
    if (!sums)
        return KN_ERR_MEMORY;
    visit_all(&(walk){.next = sums}, log);
    kn_status status = kn_sums_add_up(sums, count, group);
    if (status == KN_OK)
        visit_all(&(walk){.next = sums, .writes = true}, log);
    kn_free(sums);
    return status == KN_OK ? find_first_bad(log, group) : status;
}

/* --- samples ------------------------------------------------------------------------------------------------------ */

/* What each rank has: [ranks][2], rows and whether its scores are float64. */
static kn_status gather_sizes(kn_group *group, const kn_metric_samples *own, int64_t *sizes)
{
    const int ranks = kn_group_size(group);
    kn_tensor *all = NULL;
    KN_TRY(kn_tensor_new(&all, KN_I64, 1, &(int64_t){2 * (int64_t)ranks}, kn_device_host()));
    int64_t *values = kn_data(all), *mine = values + 2 * (size_t)kn_group_rank(group);
    memset(values, 0, 2 * (size_t)ranks * sizeof *values);
    for (int i = 0; i < own->count; i++) {
        mine[0] += kn_size(own->outputs[i], 0);
        mine[1] = own->outputs[i]->dtype == KN_F64;
    }
    kn_status status = kn_group_all_reduce(group, all);
    if (status == KN_OK)
        memcpy(sizes, kn_data(all), 2 * (size_t)ranks * sizeof *sizes);
    kn_release(all);
    return status;
}

/* All parts of a list as one tensor of `rows` rows, the last ones zeros. In the caller's scope; NULL with an error. */
static kn_tensor *padded(kn_tensor *const *list, int count, int64_t rows, int64_t columns, kn_dtype dtype,
                         kn_device *device)
{
    int64_t present = 0;
    kn_tensor **parts = kn_calloc((size_t)count + 1, sizeof *parts);
    for (int i = 0; parts && i < count; i++) {
        parts[i] = kn_to_device(list[i], device, .dtype = dtype);
        present += kn_size(list[i], 0);
    }
    if (!parts)
        return NULL;
    parts[count] = columns > 0 ? kn_zeros(KN_SHAPE(rows - present, columns), .dtype = dtype, .device = device)
                               : kn_zeros(KN_SHAPE(rows - present), .dtype = dtype, .device = device);
    kn_tensor *all = kn_cat(parts, count + 1, 0);
    kn_free(parts);
    return all;
}

/* Every rank's rows of one tensor; `columns` 0: it has one dimension. */
static kn_status gather_rows(kn_group *group, kn_tensor *mine, const int64_t *sizes, kn_tensor **parts)
{
    for (int r = 0; r < kn_group_size(group); r++)
        parts[r] = mine ? kn_empty_like(mine) : NULL;
    KN_TRY(kn_status_of(mine ? parts[kn_group_size(group) - 1] : NULL));
    KN_TRY(kn_group_all_gather(group, parts, mine));
    for (int r = 0; r < kn_group_size(group); r++)
        parts[r] = kn_narrow(parts[r], 0, 0, sizes[2 * r]);
    return kn_status_of(parts[kn_group_size(group) - 1]);
}

static kn_status gather_all(const kn_metric_samples *own, int64_t classes, kn_group *group, kn_device *device,
                            const int64_t *sizes, kn_tensor **parts, kn_metric_samples *all)
{
    const int ranks = kn_group_size(group);
    int64_t most = 0;
    kn_dtype dtype = KN_F32;
    for (int r = 0; r < ranks; r++) {
        most = sizes[2 * r] > most ? sizes[2 * r] : most;
        dtype = sizes[2 * r + 1] ? KN_F64 : dtype;
    }
    if (most == 0)
        return KN_OK;
    KN_SCOPE;
    KN_NO_GRAD;
    KN_TRY(gather_rows(group, padded(own->outputs, own->count, most, classes, dtype, device), sizes, parts));
    KN_TRY(gather_rows(group, padded(own->targets, own->count, most, 0, KN_I64, device), sizes, parts + ranks));
    for (int r = 0; r < ranks; r++)
        if (sizes[2 * r] > 0)
            KN_TRY(kn_metric_keep(all, parts[r], parts[ranks + r], device));
    return KN_OK;
}

kn_status kn_metric_gather(const kn_metric_spec *spec, const kn_metric_samples *own, kn_group *group, kn_device *device,
                           kn_metric_samples *all)
{
    const size_t ranks = (size_t)kn_group_size(group);
    const int64_t classes = spec->num_classes > 0 ? spec->num_classes : 1;
    int64_t *sizes = kn_calloc(2 * ranks, sizeof *sizes);
    kn_tensor **parts = kn_calloc(2 * ranks, sizeof *parts);
    kn_status status = sizes && parts ? gather_sizes(group, own, sizes) : KN_ERR_MEMORY;
    if (status == KN_OK)
        status = gather_all(own, classes, group, device, sizes, parts, all);
    kn_free(sizes);
    kn_free(parts);
    return status;
}
