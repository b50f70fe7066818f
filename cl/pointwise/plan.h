/* pointwise/plan.h - the iteration space of elementwise kernels. Operands with equal strides share a lane; lane 0 is
 * that of the outputs. */
#pragma once

#include "common/divisor.h"
#include "common/shared.h"

#define KN_LAYOUT_LANES 9

/* A kernel has the layouts that there are: all arguments together may have no more than 1024 bytes, of which 24 buffers
 * take 384. */
#ifdef KN_PLACES
#define KN_RUNS_LANES KN_PLACES
#else
#define KN_RUNS_LANES KN_LAYOUT_LANES
#endif
typedef struct kn_runs {
    kn_long count; /* elements */
    kn_long ndim;  /* at least 1 */
    kn_long shape[KN_MAX_DIMS];
    kn_long strides[KN_RUNS_LANES][KN_MAX_DIMS]; /* in elements; 0 where broadcast */
} kn_runs;
KN_SHARED_SIZE(kn_runs, 8 * (2 + KN_MAX_DIMS * (1 + KN_RUNS_LANES)));

/* On GPUs (pointwise/vec4.clh). */
typedef struct kn_vec4_plan {
    kn_long start[KN_LAYOUT_LANES]; /* start of this launch's part, in elements */
    kn_uint count;                  /* elements, below 2^31 */
    kn_uint fours;                  /* tasks, of up to four elements */
    kn_uint dims;
    kn_uint in_line; /* 0, or 1 + 2 * (bit n: lane n is the same for all four) */
    /* Of the dimensions from the innermost on, without the outermost; in line, a quarter of the innermost. */
    kn_divisor size[KN_MAX_DIMS - 1];
    /* Strides in elements, of the outermost dimension and of the others; in line, the innermost one is for four. */
    kn_int lead[KN_LAYOUT_LANES];
    kn_int stride[KN_MAX_DIMS - 1][KN_LAYOUT_LANES];
    kn_uint unused;
} kn_vec4_plan;
KN_SHARED_SIZE(kn_vec4_plan, 4 * (5 + 3 * (KN_MAX_DIMS - 1) + (KN_MAX_DIMS + 2) * KN_LAYOUT_LANES));
