/* rt/device/driver_threads.h - where PoCL's threads run.
 *
 * PoCL has a thread per core, which sleeps between launches. Linux tends to wake threads that slept for some time on
 * one core, next to the thread that woke them, and leaves them there for tens of milliseconds: short launches after a
 * pause took twice as long. PoCL binds each thread to a core of its own if asked to. */
#pragma once

#include <stdbool.h>

/* Call before the first OpenCL call: sets POCL_AFFINITY, unless it is set, where PoCL has as many threads as there are
 * cores and this process may use all of them, alone as far as it knows: with fewer threads, or with several processes
 * on the same cores, a bound thread could wait for a core while others are idle. */
void kn_driver_threads_prepare(void);

/* Does PoCL bind its threads to cores? */
bool kn_driver_threads_are_bound(void);

/* How many ranks a launcher has started on this host, or at most, this one included; 1: none did. */
int kn_ranks_beside(void);
