/* ops/dispatch/choice.h - several implementations of one operation, and the choice among them.
 *
 * A table lists them best first; the last is the reference, which computes any problem on any device. A row states
 * separately whether it `supports` a problem (computes it correctly) and whether it `prefers` it (is worth choosing).
 * The first row that does both runs, unless the flags of koine/flags.h forbid it. What the device limits do not tell,
 * `works` finds out by trying.
 *
 * KOINE_IMPL="conv2d:reference,gemm:clblast" forces rows by name, and then only `supports` counts: a row that is rarely
 * preferred can be tried, and is tested, on everything it supports. */
#pragma once

#include "base/error.h"
#include "rt/rt.h"

typedef bool kn_implementation_predicate(const kn_limits *limits, const void *problem);
typedef bool kn_implementation_check(kn_stream *stream);
typedef kn_status kn_implementation_run(kn_stream *stream, const void *problem);

/* On which devices benchmark mode (koine/flags.h) times a row that is not preferred: a kernel written for CPUs may take
 * minutes on a GPU, and vice versa. */
typedef enum kn_timed_on { KN_TIMED_ANYWHERE, KN_TIMED_ON_CPUS, KN_TIMED_ON_OTHERS } kn_timed_on;

/* Reduced precision used by a row; only chosen while koine/flags.h allows it for matrix products or convolutions. */
#define KN_USES_TF32 1u
#define KN_USES_FP16_REDUCTION 2u

typedef struct kn_implementation {
    const char *name;
    kn_implementation_predicate *supports; /* correctness: device limits and shapes. NULL: always */
    /* speed and kind of device; called for any problem, also for unsupported ones. NULL: always */
    kn_implementation_predicate *prefers;
    kn_implementation_check *works; /* called before it runs; may wait. NULL: works wherever supported */
    kn_implementation_run *run;
    kn_timed_on timed_on;
    unsigned reduced_precision; /* KN_USES_... */
    bool nondeterministic;      /* equal inputs may give different bits */
    /* infinities and NaN may spread to neighbours of the elements that the formula affects */
    bool spreads_infinities;
} kn_implementation;

/* Whose reduced-precision flags apply. A product inside a convolution obeys those of convolutions. */
typedef enum kn_table_family { KN_FAMILY_MATMUL, KN_FAMILY_CONV } kn_table_family;

/* Encodes the problem in numbers (shapes, strides, dtype, optional parts), so that problems with equal numbers take
 * equally long. Returns the count, at most KN_PROBLEM_NUMBERS, or 0 for a problem that cannot be repeated with the same
 * result and so is not timed. */
#define KN_PROBLEM_NUMBERS 25
typedef int kn_describe_problem(const void *problem, int64_t numbers[KN_PROBLEM_NUMBERS]);

typedef struct kn_implementation_table {
    const char *operation; /* "gemm", "conv2d", "conv2d_backward_data", ... */
    const kn_implementation *rows;
    int count;
    kn_table_family family;
    kn_describe_problem *describe; /* NULL: never timed */
} kn_implementation_table;

#define KN_IMPLEMENTATION_TABLE(operation, rows, family, describe)                                                     \
    {                                                                                                                  \
        operation, rows, (int)(sizeof(rows) / sizeof((rows)[0])), family, describe                                     \
    }

/* Chooses and runs the forced row; otherwise, in benchmark mode, the fastest; otherwise the first that supports and
 * prefers the problem. Rows that the flags do not allow (reduced precision, nondeterminism) are skipped. It is an error
 * if KOINE_IMPL names a row that does not exist or does not support the problem. */
kn_status kn_run_implementation(const kn_implementation_table *table, kn_stream *stream, const void *problem);

/* The bits of kn_flags that decide which rows of the table the calling thread may choose; equal bits, equal choice. */
unsigned kn_implementation_flags(const kn_implementation_table *table);
bool kn_implementation_allowed(const kn_implementation *row, unsigned flags);

/* Is the row allowed, does it support the problem, and does it work on the stream's device? */
bool kn_implementation_can_run(const kn_implementation *row, kn_stream *stream, const void *problem, unsigned flags);

/* The name of the row that KOINE_IMPL or a test forces; NULL: none. */
const char *kn_forced_implementation(const char *operation);

/* All tables, NULL after the last (set by ops/tables.c); that of an operation, NULL if it has none. */
extern const kn_implementation_table *const *kn_implementation_tables;
const kn_implementation_table *kn_implementation_table_find(const char *operation);

/* --- for tests; not thread-safe ----------------------------------------------------------------------------------- */

/* Forces the row `name` of `operation` in this process, with priority over KOINE_IMPL; NULL lifts it. Problems that the
 * row does not support are handled as usual. */
void kn_force_implementation(const char *operation, const char *name);

/* Counts of the problems of `operation` since the last kn_force_implementation for it. */
typedef struct kn_forced_count {
    int64_t ran, unsupported; /* run by the forced row; run by another because it does not support them */
} kn_forced_count;
kn_forced_count kn_count_forced(const char *operation);
