/* ops/dispatch/benchmark.h - benchmark mode (koine/flags.h): finds the fastest row of a table for a problem by timing.
 *
 * Winners are stored with rt/tuning/tuning.h. Thread-safe: one thread times at a time. */
#pragma once

#include "base/hash.h"
#include "ops/dispatch/choice.h"
#include "rt/tuning/tuning.h"

typedef kn_status kn_row_runner(const kn_implementation_table *table, const kn_implementation *row, kn_stream *stream,
                                const void *problem);

/* Replaces *row, the default choice, by the fastest row that supports the problem and that `flags` allow. Unchanged for
 * problems that cannot be timed, and during capture unless the winner is known. */
kn_status kn_benchmark_choose(const kn_implementation **row, const kn_implementation_table *table, kn_stream *stream,
                              const void *problem, unsigned flags, kn_row_runner *run);

/* Called on this thread for each new problem, with the result, found now or earlier (`known`); not for nested problems.
 * `is_over` is called before each run of a row: once it returns true, nothing more is timed and unfinished contests are
 * dropped. NULLs remove it. */
typedef void kn_benchmark_observer(void *user, const char *operation, const kn_tuning_result *result, bool known);
void kn_benchmark_observe(kn_benchmark_observer *function, bool (*is_over)(void *user), void *user);

/* For tests: how many problems this process has timed. */
int64_t kn_benchmark_count_timed(void);
