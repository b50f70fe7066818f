/* ops/dispatch/trial.h - trials of code that might take the device with it, such as inline assembly: by the program
 * `koine`, in a process and a context of its own. */
#pragma once

#include "rt/rt.h"

typedef enum kn_verdict { KN_UNDECIDED, KN_WORKS, KN_FAILS } kn_verdict;

/* What `koine --trial NAME DEVICE` finds, which is KN_FAILS, too, if it crashes or does not end; stored per device,
 * driver and library version. Undecided: there is no such program (base/own_files.h), or it cannot use the device; then
 * the trial is made here. */
kn_verdict kn_trial_elsewhere(kn_device *device, const char *name);

/* The program's exit status for a verdict. */
enum { KN_EXIT_WORKS = 0, KN_EXIT_FAILS = 10, KN_EXIT_UNDECIDED = 11 };

extern double kn_trial_seconds; /* its time limit; for tests */
