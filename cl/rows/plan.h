/* rows/plan.h - how work on rows is divided (rows/rows.clh). */
#pragma once

#include "common/divisor.h"
#include "common/shared.h"

/* A row has `chunks` chunks, one per task; with a total the rows have `chunks` parts. */
typedef struct kn_rows_plan {
    kn_long outer, n, inner;
    kn_long pitch, step; /* from one block [n, inner] to the next, and from one element of a row to the next */
    kn_long length, chunks;
    kn_int lanes, small; /* GPUs: work-items per row; all offsets are below 2^31 */
    kn_divisor by_columns;
    kn_int backwards; /* scans: from the last element on */
    kn_divisor by_segment, by_segments;
    kn_long segment, segments; /* elements per segment, and the number of segments after which their inputs repeat */
} kn_rows_plan;
KN_SHARED_SIZE(kn_rows_plan, 7 * 8 + 2 * 4 + 12 + 4 + 2 * 12 + 2 * 8);
