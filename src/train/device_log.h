/* train/device_log.h - internals of the log of figures on the device. */
#pragma once

#include <koine/device_log.h>
#include <koine/group.h>

#include "tensor/tensor.h"
#include "train/cells.h"
#include "train/metric.h"

typedef enum kn_entry_kind { KN_ENTRY_SCALAR, KN_ENTRY_METRIC, KN_ENTRY_HISTOGRAM, KN_ENTRY_NORM } kn_entry_kind;

typedef struct kn_log_entry {
    char *name;
    kn_entry_kind kind;
    int64_t first, cells; /* cells in the state */
    int bins;             /* histograms */
    double min, max;
    kn_tensor **parameters; /* norms; one reference each */
    int num_parameters;
    bool skips_infinite;       /* norms: those that are not finite are left out of the mean */
    kn_metric_spec spec;       /* metrics */
    kn_metric_samples samples; /* of a metric that keeps them */
    double *sums, *values;     /* scratch; those of samples as of the last read */
    int bad_rank;              /* scalars added up over ranks: whose first bad update is told */
    bool used;                 /* since the last reset */
    kn_dtype dtype;            /* of the values, once used */
} kn_log_entry;

struct kn_device_log {
    kn_log_entry *entries;
    int count, capacity;
    int64_t cells; /* needed by the entries */

    kn_tensor *state; /* int64 [cells at the time]; NULL until the first update */
    bool used;        /* updated since the last reset, as far as the host knows: graphs may replay updates */
    bool stale;       /* the last reset failed to clear the state: the next access does */

    kn_tensor *requests[KN_LOG_REQUESTS]; /* pinned; a ring */
    int64_t requested_cells[KN_LOG_REQUESTS];
    int first_request, num_requests;

    int64_t *figures; /* as last read */
    int64_t num_figures;
};

/* The entry, which must exist and have this kind; NULL with an error that names `function`. */
kn_log_entry *kn_log_entry_of(const kn_device_log *log, int entry, kn_entry_kind kind, const char *function);

/* Before an update: makes sure that the state is on `device` and holds the entry's cells, with values of `dtype`. */
kn_status kn_log_prepare(kn_device_log *log, kn_log_entry *entry, kn_device *device, kn_dtype dtype);

/* Adds an entry of a metric with these parameters; its index, or -1. */
int kn_log_add_metric(kn_device_log *log, const char *name, const kn_metric_spec *spec);
/* A batch for a metric. `weight` for means, which need no target. */
kn_status kn_log_update_metric(kn_device_log *log, kn_log_entry *entry, kn_tensor *output, kn_tensor *target,
                               int64_t weight);
/* A value for scalar number `index` of an entry: float32 or float64. */
kn_status kn_log_note_scalar(kn_device_log *log, kn_log_entry *entry, int index, kn_tensor *value, int64_t weight);
/* kn_device_log_read, then the figures of all ranks together: sums are added, metrics computed from all rows. Gradients
 * are the same on all ranks, and their norms and histograms stay. `group` may be NULL. */
kn_status kn_log_read_all(kn_device_log *log, kn_group *group, kn_device *device);
/* log_ranks.c: adds up the figures that have been fetched. */
kn_status kn_log_add_up(kn_device_log *log, kn_group *group);
/* A sum as fetched, with its compensation. */
double kn_log_cell_sum(const int64_t *cells);
double kn_log_cell_value(const int64_t *cells, int64_t index);

/* A metric's sums as last read, [kn_metric_sum_count]. */
void kn_log_metric_sums(const kn_device_log *log, int entry, double *sums);

/* The entry's cells as a kernel's argument. */
static inline kn_arg kn_log_arg(const kn_device_log *log, const kn_log_entry *entry)
{
    return kn_arg_buffer(log->state->storage->buffer, (log->state->offset + entry->first) * (int64_t)sizeof(int64_t));
}

/* Clears a state that the last reset could not clear. */
kn_status kn_log_clear_stale(kn_device_log *log);

/* kn_device_log_wait, not counted as an explicit wait by the user; for a host that is too far ahead. */
kn_status kn_log_await(kn_device_log *log);

/* Checks for float32 or float64 values on a device; the error names `function`. */
kn_status kn_log_check_values(const char *function, const kn_tensor *values);
