/* watch/memory/snapshot_read.h - reading memory snapshots back from JSON. */
#pragma once

#include <cjson/cJSON.h>
#include <koine/status.h>

/* Figures of a snapshot. */
typedef struct kn_snapshot_point {
    double time_us; /* since the first entry */
    double allocated, reserved;
} kn_snapshot_point;

typedef struct kn_snapshot_figures {
    int segments, blocks;                  /* blocks in use */
    double reserved, allocated, requested; /* bytes */
    double free_bytes, largest_free;       /* of unused blocks */
    kn_snapshot_point *points;             /* use over time: one point per change in the history */
    size_t num_points;                     /* 0 without a history */
    double peak_allocated, peak_reserved;  /* within the history */
} kn_snapshot_figures;

/* Reads the figures of a snapshot in PyTorch's format: of the first device with a history, otherwise of the first one.
 * KN_ERR_FORMAT, naming `what`, if the format is wrong. The caller frees figures->points. */
kn_status kn_snapshot_read(kn_snapshot_figures *figures, const cJSON *root, const char *what);
