/* train/device_log.h - a log of figures on the device as its parts see it. */
#ifndef KN_TRAIN_DEVICE_LOG_H
#define KN_TRAIN_DEVICE_LOG_H

#include <koine/device_log.h>

#include "tensor/tensor.h"

typedef enum kn_entry_kind { KN_ENTRY_SCALAR, KN_ENTRY_ACCURACY, KN_ENTRY_HISTOGRAM, KN_ENTRY_NORM } kn_entry_kind;

/* The state is an array of 8-byte cells: whole numbers, or a value of the entry's dtype at a cell's start. Zero is a
 * new entry's state. As in cl/train/device_log.clh. */
enum {
    KN_CELL_COUNT,
    KN_CELL_BAD, /* the first update whose value was no finite number; 0: none */
    KN_CELL_BAD_IS_NAN,
    KN_CELL_WEIGHT,
    KN_CELL_SIZE, /* of the values that follow: 4 or 8 bytes */
    KN_CELL_LAST,
    KN_CELL_SUM,
    KN_CELL_ERROR, /* of the sum, to be added to it */
    KN_CELL_MIN,
    KN_CELL_MAX,
    KN_SCALAR_CELLS /* of a gradient norm the parameters' norms follow */
};
enum { KN_ACCURACY_ROWS, KN_ACCURACY_COUNTS };                             /* a count per work-item */
enum { KN_HISTOGRAM_VALUES, KN_HISTOGRAM_OUTSIDE, KN_HISTOGRAM_BINS = 4 }; /* below, above, NaN; the bins */

/* Counts of an accuracy: work-items of its kernel at most. */
#define KN_ACCURACY_ITEMS 256

typedef struct kn_log_entry {
    char *name;
    kn_entry_kind kind;
    int64_t first, cells; /* in the state */
    int bins;             /* of a histogram */
    double min, max;
    kn_tensor **parameters; /* of a norm; one reference each */
    int num_parameters;
    bool used;      /* since the last reset */
    kn_dtype dtype; /* of the values, once used */
} kn_log_entry;

struct kn_device_log {
    kn_log_entry *entries;
    int count, capacity;
    int64_t cells; /* that the entries need */

    kn_tensor *state; /* int64 [cells at the time]; NULL until the first update */
    bool used;        /* since the last reset, as far as the host knows: graphs may replay updates */
    bool stale;       /* the last reset could not clear the state: what comes next does */

    kn_tensor *requests[KN_LOG_REQUESTS]; /* pinned; a ring */
    int64_t requested_cells[KN_LOG_REQUESTS];
    int first_request, num_requests;

    int64_t *figures; /* as last read */
    int64_t num_figures;
};

/* The entry if it is of this kind and there; NULL with an error that names `function`. */
kn_log_entry *kn_log_entry_of(const kn_device_log *log, int entry, kn_entry_kind kind, const char *function);

/* Before an update: the state is on `device` and holds the entry's cells, which take `dtype`. */
kn_status kn_log_prepare(kn_device_log *log, kn_log_entry *entry, kn_device *device, kn_dtype dtype);

/* The entry's cells as a kernel's argument. */
static inline kn_arg kn_log_arg(const kn_device_log *log, const kn_log_entry *entry)
{
    return kn_arg_buffer(log->state->storage->buffer, (log->state->offset + entry->first) * (int64_t)sizeof(int64_t));
}

/* Clears a state that the last reset could not clear. */
kn_status kn_log_clear_stale(kn_device_log *log);

/* kn_device_log_wait, not counted as a wait of the user's wish: where the host is too far ahead. */
kn_status kn_log_await(kn_device_log *log);

/* float32 or float64 on a device; an error that names `function` else. */
kn_status kn_log_check_values(const char *function, const kn_tensor *values);

#endif
