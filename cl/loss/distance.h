/* loss/distance.h - the sizes of distances of all pairs of rows. */
#pragma once

#include "common/shared.h"

#define KN_PANEL 16 /* rows of x2 that lie side by side */

/* Rows of x1 [batches, rows, length] and of x2 [batches, others, length]. With `triangle` these are one matrix, and of
 * its pairs only those of a row with a later one are in the result. */
typedef struct kn_distance_plan {
    kn_long batches, rows, others, length;
    kn_long row_pitch, other_pitch; /* for gradients: the steps between results of neighbouring rows */
    kn_long triangle;
} kn_distance_plan;
KN_SHARED_SIZE(kn_distance_plan, 7 * 8);
