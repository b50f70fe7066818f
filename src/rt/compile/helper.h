/* rt/compile/helper.h - processes that compile kernels for this one, since drivers compile one at a time in a process.
 * What they compile is found in a cache on disk, the driver's or the library's.
 *
 * They are the program `koine` (base/own_files.h), end when this process does, or after some seconds without work, and
 * are not its children: a host program that waits for its own does not see them. If there is no such program, or one
 * ends in the midst of a kernel, this process compiles what it needs, as it would without. */
#pragma once

#include "rt/compile/jobs.h"

/* Starts one if there is work for it, unless there are as many as there may be. */
void kn_helper_offer(kn_device *device, kn_compiles *compiles);
