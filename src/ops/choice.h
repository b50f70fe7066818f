/* ops/choice.h - several implementations of one operation, and which one runs.
 *
 * A table lists them best first; the last is the reference, which runs anywhere. The first whose predicate accepts the problem on the device's limits is taken.
 * KOINE_IMPL="conv2d:reference,gemm:clblast" forces one by name (an error when it cannot take the problem); kn_force_implementation does the same from tests. */
#ifndef KN_OPS_CHOICE_H
#define KN_OPS_CHOICE_H

#include "base/error.h"
#include "rt/rt.h"

typedef struct kn_implementation {
    const char *name;
    bool (*accepts)(const kn_limits *limits, const void *problem); /* NULL: always */
    kn_status (*run)(kn_stream *stream, const void *problem);
} kn_implementation;

typedef struct kn_implementation_table {
    const char *operation; /* "gemm", "conv2d", "conv2d_backward_data", ... */
    const kn_implementation *rows;
    int count;
} kn_implementation_table;

/* Chooses and runs. */
kn_status kn_run_implementation(const kn_implementation_table *table, kn_stream *stream, const void *problem);

/* Forces `name` for `operation` in this process; NULL lifts it. Not thread-safe: for tests. */
void kn_force_implementation(const char *operation, const char *name);

#endif
