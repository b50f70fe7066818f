/* rt/compile/rehearsal.h - programs are run without computing, so that the kernels they need are compiled into the
 * caches on disk (`koine warm`).
 *
 * In a rehearsal no kernel runs on the program's buffers and nothing is copied: whatever the host reads is zeros. The
 * first launch of each kernel asks whether this process is to compile it, so several can rehearse the same program and
 * share the work. Where the driver compiles when a kernel first runs, it runs once: one work-group, on zeros in place
 * of the buffers' values. */
#pragma once

#include "rt/command/rehearsing.h"

/* From now on, in all threads. `takes` is called for every launch, with the hash of its kernel and of what else the
 * driver compiles it for, by any thread; true: compile it. NULL: commands run again. */
void kn_rehearse(kn_rehearsal *rehearsal);

/* Whether programs that this device builds are kept for other processes; else an error that says why not. */
kn_status kn_rehearsal_check_cache(kn_device *device);
