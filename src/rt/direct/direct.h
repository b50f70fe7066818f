/* rt/direct/direct.h - launches on CPU devices that the calling thread runs itself.
 *
 * PoCL takes 3 us to enqueue a launch, and where all cores are busy one of its threads has to take turns with the
 * thread that launches. But the code of a kernel is a function in this process (rt/direct/entry.h). So a launch before
 * which nothing is left in the stream's queue is a call of that function, by a team of threads of which the calling one
 * is the first (rt/team/team.h), and over when kn_launch returns. KOINE_DIRECT=0: all launches go to the driver. */
#pragma once

#include "rt/stream/calls.h"
#include "rt/team/team.h"

/* Not with KOINE_DIRECT=0. */
bool kn_direct_is_wanted(void);

/* May a launch of the kernel with that entry (NULL: unknown) run now? Not on a thread with little stack left. Waits for
 * commands in the queue, unless something else may hold them up for long. */
bool kn_direct_may_run(kn_stream *stream, kn_entry entry);

/* The same for a copy or a fill on the host's memory: `start` (NULL: unknown) is the buffer's address. */
bool kn_direct_may_copy(kn_stream *stream, const void *start);

void kn_direct_run(kn_stream *stream, kn_entry entry, const kn_values *values, int dims, const size_t global[3]);
