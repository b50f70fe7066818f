/* ops/dispatch/choice.h - several implementations of one operation, and which one runs.
 *
 * A table lists them best first; the last is the reference, which computes anything anywhere. A row says two things
 * apart: whether it `supports` a problem (computes it correctly) and whether it `prefers` it (is worth choosing). The
 * first row that does both runs, unless the flags of koine/flags.h say otherwise. What no limit tells of a device, a
 * row tries out: whether it `works` there.
 *
 * KOINE_IMPL="conv2d:reference,gemm:clblast" forces rows by name, and then only `supports` counts: a row that pays on
 * few problems can be tried, and is tested, on all that it supports. */
#ifndef KN_OPS_DISPATCH_CHOICE_H
#define KN_OPS_DISPATCH_CHOICE_H

#include "base/error.h"
#include "rt/rt.h"

typedef bool kn_implementation_predicate(const kn_limits *limits, const void *problem);
typedef bool kn_implementation_check(kn_stream *stream);

/* On which devices benchmark mode (koine/flags.h) times a row that would not be chosen without it: a kernel made for a
 * CPU's cores may take minutes on a GPU, and the other way round. */
typedef enum kn_timed_on { KN_TIMED_ANYWHERE, KN_TIMED_ON_CPUS, KN_TIMED_ON_OTHERS } kn_timed_on;

/* What a row may do to be faster; chosen only while koine/flags.h allows it for matrix products, or convolutions. */
#define KN_USES_TF32 1u
#define KN_USES_FP16_REDUCTION 2u

typedef struct kn_implementation {
    const char *name;
    kn_implementation_predicate *supports; /* correctness: limits, shapes that it cannot do. NULL: always */
    kn_implementation_predicate *prefers;  /* speed, and the kind of device it is made for; asked of any problem, those
                                              that it does not support too. NULL: always */
    kn_implementation_check *works;        /* asked before it runs; it may wait. NULL: what it supports, it does */
    kn_status (*run)(kn_stream *stream, const void *problem);
    kn_timed_on timed_on;
    unsigned reduced_precision; /* KN_USES_... */
    bool nondeterministic;      /* equal inputs may give other bits */
    bool spreads_infinities;    /* an infinity or NaN may reach neighbours of the elements that the formula gives it */
} kn_implementation;

/* Whose flags of reduced precision hold. A product inside a convolution obeys those of convolutions. */
typedef enum kn_table_family { KN_FAMILY_MATMUL, KN_FAMILY_CONV } kn_table_family;

/* The whole problem in numbers (shapes, strides, dtype, what is there and what not), so that two problems with equal
 * ones take equally long; returns how many, at most KN_PROBLEM_NUMBERS; 0 for a problem that cannot be run more than
 * once with the same result, which is not timed. */
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

/* Chooses and runs: the forced row; else, in benchmark mode, the fastest; else the first that supports and prefers the
 * problem. Rows that the flags do not allow (reduced precision, nondeterminism) are passed over. An error when
 * KOINE_IMPL asks for a row that does not exist or does not support the problem. */
kn_status kn_run_implementation(const kn_implementation_table *table, kn_stream *stream, const void *problem);

/* The bits of kn_flags that decide which rows of the table the calling thread may choose; equal bits, equal choice. */
unsigned kn_implementation_flags(const kn_implementation_table *table);
bool kn_implementation_allowed(const kn_implementation *row, unsigned flags);

/* Whether the row is allowed, supports the problem, and works on the stream's device. */
bool kn_implementation_can_run(const kn_implementation *row, kn_stream *stream, const void *problem, unsigned flags);

/* All tables there are (ops/tables.c): number `index`, NULL beyond the last; the one of an operation, NULL
 * where it has none. */
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
