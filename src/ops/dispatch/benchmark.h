/* ops/dispatch/benchmark.h - benchmark mode (koine/flags.h): which row of a table is the fastest for a problem, found
 * by timing.
 *
 * Winners are kept as rt/tuning/tuning.h keeps results. Safe from many threads: one times at a time. */
#ifndef KN_OPS_DISPATCH_BENCHMARK_H
#define KN_OPS_DISPATCH_BENCHMARK_H

#include "base/hash.h"
#include "ops/dispatch/choice.h"
#include "rt/tuning/tuning.h"

typedef kn_status kn_row_runner(const kn_implementation_table *table, const kn_implementation *row, kn_stream *stream,
                                const void *problem);

/* *row, which comes as the row usually chosen, becomes the fastest that supports the problem and that `flags` allow;
 * it stays for problems that cannot be timed, and while the stream is captured unless the winner is known. */
kn_status kn_benchmark_choose(const kn_implementation **row, const kn_implementation_table *table, kn_stream *stream,
                              const void *problem, unsigned flags, kn_row_runner *run);

/* Called on this thread for each problem that it meets for the first time, with what was found, now or before
 * (`known`); not for the problems inside a problem. `is_over` is asked before each run of a row: once it is true,
 * nothing is timed any more and what is not finished is forgotten. NULLs end it. */
typedef void kn_benchmark_observer(void *user, const char *operation, const kn_tuning_result *result, bool known);
void kn_benchmark_observe(kn_benchmark_observer *function, bool (*is_over)(void *user), void *user);

/* For tests: how many problems this process has timed. */
int64_t kn_benchmark_count_timed(void);

#endif
