/* ops/choice.h - several implementations of one operation, and which one runs.
 *
 * A table lists them best first; the last is the reference, which computes anything anywhere. A row says two things
 * apart: whether it `supports` a problem (computes it correctly) and whether it `prefers` it (is worth choosing). The
 * first row that does both runs.
 *
 * KOINE_IMPL="conv2d:reference,gemm:clblast" forces rows by name, and then only `supports` counts: a row that pays on
 * few problems can be tried, and is tested, on all that it supports. */
#ifndef KN_OPS_CHOICE_H
#define KN_OPS_CHOICE_H

#include "base/error.h"
#include "rt/rt.h"

typedef bool kn_implementation_predicate(const kn_limits *limits, const void *problem);

typedef struct kn_implementation {
    const char *name;
    kn_implementation_predicate *supports; /* correctness: limits, shapes that it cannot do. NULL: always */
    kn_implementation_predicate *prefers;  /* speed, and the kind of device it is made for. NULL: always */
    kn_status (*run)(kn_stream *stream, const void *problem);
} kn_implementation;

typedef struct kn_implementation_table {
    const char *operation; /* "gemm", "conv2d", "conv2d_backward_data", ... */
    const kn_implementation *rows;
    int count;
} kn_implementation_table;

#define KN_IMPLEMENTATION_TABLE(operation, rows)                                                                       \
    {                                                                                                                  \
        operation, rows, (int)(sizeof(rows) / sizeof((rows)[0]))                                                       \
    }

/* Chooses and runs. An error when KOINE_IMPL asks for a row that does not exist or does not support the problem. */
kn_status kn_run_implementation(const kn_implementation_table *table, kn_stream *stream, const void *problem);

/* All tables there are (ops/choice_tables.c): number `index`, NULL beyond the last; the one of an operation, NULL where
 * it has none. */
const kn_implementation_table *kn_implementation_table_at(int index);
const kn_implementation_table *kn_implementation_table_find(const char *operation);

/* --- for tests; not thread-safe ----------------------------------------------------------------------------------- */

/* Forces the row `name` of `operation` in this process, before KOINE_IMPL; NULL lifts it. Problems that the row does
 * not support go the way they would without it. */
void kn_force_implementation(const char *operation, const char *name);

/* What became of the problems of `operation` since the last kn_force_implementation for it. */
typedef struct kn_forced_count {
    int64_t ran, unsupported; /* by the forced row; because it does not support them, by another */
} kn_forced_count;
kn_forced_count kn_count_forced(const char *operation);

#endif
