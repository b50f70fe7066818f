/* support/faults.h - each fault in turn: what every test that makes something fail checks after it. */
#ifndef SUPPORT_FAULTS_H
#define SUPPORT_FAULTS_H

#include <koine/koine.h>

/* A piece of work that may fail: KN_OK when it was done, else the status of what failed. What it leaves behind it gives
 * back itself. */
typedef kn_status (*fault_work)(void *user);

/* For work that ends in a bool or a tensor: KN_OK, or the thread's error, which must be there. */
static inline kn_status fault_status(bool done)
{
    return done ? KN_OK : kn_error_status() != KN_OK ? kn_error_status() : KN_ERR_INTERNAL;
}

/* Runs the work in a scope of its own, with no error pending, and fails the test (naming `fault`) unless the thread's
 * error agrees with what it returned: none after success, that very status with a message after a failure. Returns the
 * status; the error is cleared. */
kn_status fault_run(fault_work work, void *user, const char *fault);

/* Runs the work without a fault: it is done. */
void fault_none(fault_work work, void *user, const char *when);

/* Runs the work with its n-th host allocation failing, for every n up to `dense` and every `step`-th beyond, until
 * there are no more. A failure may be made good (the pool tries again); one that is not is KN_ERR_MEMORY. At least
 * `failures` of them are not. Before and after, the work is done without a fault. */
void fault_each_allocation(fault_work work, void *user, long dense, long step, int failures);

#endif
