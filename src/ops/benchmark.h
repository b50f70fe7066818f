/* ops/benchmark.h - benchmark mode (koine/flags.h): which row of a table is the fastest for a problem, found by timing.
 *
 * benchmark.c times and keeps the winners in memory, benchmark_disk.c keeps them on disk. Safe from many threads: one
 * times at a time. */
#ifndef KN_OPS_BENCHMARK_H
#define KN_OPS_BENCHMARK_H

#include "base/hash.h"
#include "base/text.h"
#include "ops/choice.h"

typedef kn_status kn_row_runner(const kn_implementation_table *table, const kn_implementation *row, kn_stream *stream,
                                const void *problem);

/* *row, which comes as the row usually chosen, becomes the fastest that supports the problem and that `flags` allow;
 * it stays for problems that cannot be timed, and while the stream is captured unless the winner is known. */
kn_status kn_benchmark_choose(const kn_implementation **row, const kn_implementation_table *table, kn_stream *stream,
                              const void *problem, unsigned flags, kn_row_runner *run);

/* What a winner holds for: a text of several lines that names device, driver, library, table, rows, flags, problem. */
char *kn_benchmark_identity(const kn_implementation_table *table, kn_device *device, unsigned flags,
                            const int64_t *numbers, int count);

/* The name of the winner on disk, the caller's to free; NULL where there is none. A damaged file counts as absent. */
char *kn_benchmark_load(const char *identity);
/* `report` tells a reader what was measured. Failing is logged, not an error. */
void kn_benchmark_store(const char *identity, const char *winner, const char *report);
kn_status kn_benchmark_clear_disk(void);

/* For tests: how many problems this process has timed. */
int64_t kn_benchmark_count_timed(void);

#endif
