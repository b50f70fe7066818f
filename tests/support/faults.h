/* support/faults.h - running work under faults, one after the other, with the checks common to all such tests. */
#pragma once

#include <koine/koine.h>

/* Work that may fail: returns KN_OK or the status of the failure. It releases everything itself. */
typedef kn_status (*fault_work)(void *user);

/* For work that returns a bool or a tensor: KN_OK, or the thread's error, which must be set. */
static inline kn_status fault_status(bool done)
{
    return done ? KN_OK : kn_error_status() != KN_OK ? kn_error_status() : KN_ERR_INTERNAL;
}

/* Runs the work in its own scope, with no error pending, and fails the test (naming `fault`) unless the thread's error
 * agrees with the result: none after success, the same status with a message after a failure. Returns the status;
 * clears the error. */
kn_status fault_run(fault_work work, void *user, const char *fault);

/* Runs the work without a fault: it must succeed. */
void fault_none(fault_work work, void *user, const char *when);

/* Runs the work with its n-th host allocation failing, for every n up to `dense` and then every `step`-th, until there
 * are no more. The work may recover from a failure (the pool retries); otherwise it must fail with KN_ERR_MEMORY, which
 * must happen at least `failures` times. Before and after, the work must succeed without a fault. */
void fault_each_allocation(fault_work work, void *user, long dense, long step, int failures);
