/* train/device_log_read.c - reads the log's state: one transfer, blocking or asynchronous, and the figures in it. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "tensor/host_copies.h"
#include "train/device_log.h"

/* --- fetching -------------------------------------------------------------------------------------------------- */

/* Makes room for all entries; those added after the fetch are all zeros. */
static kn_status make_room(kn_device_log *log, int64_t fetched)
{
    if (log->num_figures < log->cells) {
        int64_t *figures = kn_realloc(log->figures, (size_t)log->cells * sizeof *figures);
        if (!figures)
            return KN_ERR_MEMORY;
        memset(figures + log->num_figures, 0, (size_t)(log->cells - log->num_figures) * sizeof *figures);
        log->figures = figures;
        log->num_figures = log->cells;
    }
    if (fetched < log->num_figures)
        memset(log->figures + fetched, 0, (size_t)(log->num_figures - fetched) * sizeof *log->figures);
    return KN_OK;
}

/* Metrics that keep samples are computed by a read; other ways to fetch, which must not wait, leave them unknown. */
static void forget_samples(const kn_device_log *log)
{
    for (int i = 0; i < log->count; i++)
        if (log->entries[i].kind == KN_ENTRY_METRIC && log->entries[i].spec.kind->compute_samples)
            log->entries[i].values[0] = (double)NAN;
}

static kn_status compute_all_samples(const kn_log_entry *entry, kn_group *group, kn_device *device)
{
    kn_metric_samples all = {0};
    kn_status status = kn_metric_gather(&entry->spec, &entry->samples, group, device, &all);
    if (status == KN_OK && all.count > 0)
        status = kn_metric_compute_samples(&entry->spec, &all, entry->values);
    kn_metric_drop(&all);
    return status;
}

static kn_status compute_samples(const kn_device_log *log, kn_group *group, kn_device *device)
{
    forget_samples(log);
    for (int i = 0; i < log->count; i++) {
        const kn_log_entry *entry = &log->entries[i];
        const bool keeps = entry->kind == KN_ENTRY_METRIC && entry->spec.kind->compute_samples;
        if (keeps && group)
            KN_TRY(compute_all_samples(entry, group, device));
        else if (keeps && entry->samples.count > 0)
            KN_TRY(kn_metric_compute_samples(&entry->spec, &entry->samples, entry->values));
    }
    return KN_OK;
}

kn_status kn_device_log_read(kn_device_log *log)
{
    return log ? kn_log_read_all(log, NULL, NULL) : kn_fail_argument_null("device_log_read", "log");
}

kn_status kn_log_read_all(kn_device_log *log, kn_group *group, kn_device *device)
{
    int64_t cells = log->state ? log->state->shape[0] : 0; /* 0: no update yet, nothing to fetch */
    KN_TRY(make_room(log, cells));
    KN_TRY(kn_log_clear_stale(log));
    if (log->state)
        KN_TRY(kn_read(log->state, log->figures, (size_t)cells * sizeof *log->figures));
    if (group)
        KN_TRY(kn_log_add_up(log, group));
    return compute_samples(log, group, device);
}

/* Pinned memory for a request; the slot's is reused if it fits. */
static kn_status prepare_request(kn_device_log *log, int slot, int64_t cells)
{
    kn_tensor *present = log->requests[slot], *made = NULL;
    if (present && present->shape[0] == cells)
        return KN_OK;
    KN_TRY(kn_tensor_new_pinned(&made, KN_I64, 1, &cells, log->state->storage->device));
    kn_release(present);
    log->requests[slot] = made;
    return KN_OK;
}

kn_status kn_device_log_request(kn_device_log *log)
{
    if (!log)
        return kn_fail_argument_null("device_log_request", "log");
    if (log->num_requests == KN_LOG_REQUESTS)
        return kn_fail(KN_ERR_STATE,
                       "device_log_request: %d requests are pending: take them with device_log_poll or "
                       "device_log_wait first",
                       KN_LOG_REQUESTS);
    int slot = (log->first_request + log->num_requests) % KN_LOG_REQUESTS;
    log->requested_cells[slot] = log->state ? log->state->shape[0] : 0;
    KN_TRY(kn_log_clear_stale(log));
    if (log->state) {
        KN_TRY(prepare_request(log, slot, log->requested_cells[slot]));
        KN_TRY(kn_tensor_copy_with(log->requests[slot], log->state, true));
    }
    log->num_requests++;
    return KN_OK;
}

int kn_device_log_requests(const kn_device_log *log) { return log ? log->num_requests : 0; }

/* Takes the oldest request, waiting if necessary. A request made before any update has no cells. */
static kn_status take(kn_device_log *log)
{
    int slot = log->first_request;
    int64_t cells = log->requested_cells[slot];
    KN_TRY(make_room(log, cells));
    if (cells > 0)
        KN_TRY(kn_read(log->requests[slot], log->figures, (size_t)cells * sizeof *log->figures));
    log->first_request = (slot + 1) % KN_LOG_REQUESTS;
    log->num_requests--;
    forget_samples(log);
    return KN_OK;
}

kn_status kn_device_log_poll(kn_device_log *log, bool *arrived)
{
    if (!log || !arrived)
        return kn_fail_argument_null("device_log_poll", log ? "arrived" : "log");
    int slot = log->first_request;
    *arrived = false;
    if (log->num_requests == 0 ||
        (log->requested_cells[slot] > 0 && !kn_storage_copies_done(log->requests[slot]->storage)))
        return KN_OK;
    KN_TRY(take(log));
    *arrived = true;
    return KN_OK;
}

kn_status kn_log_await(kn_device_log *log)
{
    int slot = log->first_request;
    if (log->num_requests > 0 && log->requested_cells[slot] > 0)
        KN_TRY(kn_storage_wait_uncounted(log->requests[slot]->storage));
    return kn_device_log_wait(log);
}

kn_status kn_device_log_wait(kn_device_log *log)
{
    if (!log)
        return kn_fail_argument_null("device_log_wait", "log");
    if (log->num_requests == 0)
        return kn_fail(KN_ERR_STATE, "device_log_wait: nothing was requested");
    return take(log);
}

/* --- figures --------------------------------------------------------------------------------------------------- */

/* The entry's cells as last read, or NULL. */
static const int64_t *cells_of(const kn_device_log *log, int entry)
{
    if (!log || entry < 0 || entry >= log->count)
        return NULL;
    const kn_log_entry *e = &log->entries[entry];
    return e->first + e->cells <= log->num_figures ? log->figures + e->first : NULL;
}

/* A value of the size recorded by the entry's kernels. */
double kn_log_cell_value(const int64_t *cells, int64_t index)
{
    float narrow;
    double wide;
    memcpy(&narrow, &cells[index], sizeof narrow);
    memcpy(&wide, &cells[index], sizeof wide);
    return cells[KN_CELL_SIZE] == sizeof wide ? wide : (double)narrow;
}

double kn_log_cell_sum(const int64_t *cells)
{
    return kn_log_cell_value(cells, KN_CELL_SUM) + kn_log_cell_value(cells, KN_CELL_ERROR);
}

static double scalar_value(const int64_t *cells, kn_log_statistic figure)
{
    double weight = (double)cells[KN_CELL_WEIGHT];
    if (figure == KN_FIGURE_COUNT)
        return (double)cells[KN_CELL_COUNT];
    if (figure == KN_FIGURE_WEIGHT)
        return weight;
    if (figure == KN_FIGURE_SUM)
        return kn_log_cell_sum(cells);
    if (cells[KN_CELL_COUNT] == 0)
        return (double)NAN;
    switch (figure) {
    case KN_FIGURE_LAST:
        return kn_log_cell_value(cells, KN_CELL_LAST);
    case KN_FIGURE_MEAN:
        return weight > 0 ? kn_log_cell_sum(cells) / weight : (double)NAN;
    case KN_FIGURE_MIN:
        return kn_log_cell_value(cells, KN_CELL_MIN);
    case KN_FIGURE_MAX:
        return kn_log_cell_value(cells, KN_CELL_MAX);
    default:
        return (double)NAN;
    }
}

void kn_log_metric_sums(const kn_device_log *log, int entry, double *sums)
{
    const kn_metric_spec *spec = &log->entries[entry].spec;
    const int64_t *cells = cells_of(log, entry), count = kn_metric_sum_count(spec);
    for (int64_t i = 0; i < count; i++)
        sums[i] = 0;
    for (int s = 0; cells && s < spec->kind->scalars; s++, cells += KN_SCALAR_CELLS) {
        sums[2 * s] = kn_log_cell_sum(cells);
        sums[2 * s + 1] = (double)cells[KN_CELL_WEIGHT];
    }
    for (int64_t i = 2 * spec->kind->scalars; cells && i < count; i++)
        sums[i] = (double)*cells++;
}

/* Those of an accuracy are its counts, right and all. */
static double metric_value(const kn_device_log *log, int index, kn_log_statistic figure)
{
    const kn_log_entry *entry = &log->entries[index];
    const kn_metric_kind *kind = entry->spec.kind;
    kn_log_metric_sums(log, index, entry->sums);
    if (figure == KN_FIGURE_MEAN && kn_metric_value_count(&entry->spec) == 1) {
        if (kind->compute)
            kind->compute(&entry->spec, entry->sums, entry->values);
        return entry->values[0];
    }
    if (kind != &kn_metric_accuracy_kind)
        return (double)NAN;
    return figure == KN_FIGURE_SUM                                   ? entry->sums[0]
           : figure == KN_FIGURE_WEIGHT || figure == KN_FIGURE_COUNT ? entry->sums[1]
                                                                     : (double)NAN;
}

double kn_device_log_value(const kn_device_log *log, int entry, kn_log_statistic figure)
{
    const int64_t *cells = cells_of(log, entry);
    if (!cells)
        return (double)NAN;
    switch (log->entries[entry].kind) {
    case KN_ENTRY_SCALAR:
    case KN_ENTRY_NORM:
        return scalar_value(cells, figure);
    case KN_ENTRY_METRIC:
        return metric_value(log, entry, figure);
    case KN_ENTRY_HISTOGRAM:
        break;
    }
    bool counts = figure == KN_FIGURE_COUNT || figure == KN_FIGURE_WEIGHT;
    return counts ? (double)cells[KN_HISTOGRAM_VALUES] : (double)NAN;
}

int64_t kn_device_log_first_bad(const kn_device_log *log, int entry, bool *is_nan)
{
    const int64_t *cells = cells_of(log, entry);
    kn_entry_kind kind = cells ? log->entries[entry].kind : KN_ENTRY_HISTOGRAM;
    bool has = kind == KN_ENTRY_SCALAR || kind == KN_ENTRY_NORM;
    if (is_nan)
        *is_nan = has && cells[KN_CELL_BAD_IS_NAN] != 0;
    return has ? cells[KN_CELL_BAD] : 0;
}

double kn_device_log_parameter_norm(const kn_device_log *log, int entry, int index)
{
    const int64_t *cells = cells_of(log, entry);
    if (!cells || log->entries[entry].kind != KN_ENTRY_NORM || index < 0 ||
        index >= log->entries[entry].num_parameters || cells[KN_CELL_COUNT] == 0)
        return (double)NAN;
    return kn_log_cell_value(cells, KN_SCALAR_CELLS + index);
}

const int64_t *kn_device_log_bins(const kn_device_log *log, int entry, int64_t outside[3])
{
    const int64_t *cells = cells_of(log, entry);
    if (!cells || log->entries[entry].kind != KN_ENTRY_HISTOGRAM)
        return NULL;
    if (outside)
        memcpy(outside, cells + KN_HISTOGRAM_OUTSIDE, 3 * sizeof *outside);
    return cells + KN_HISTOGRAM_BINS;
}
