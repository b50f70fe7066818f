/* rt/direct/entry.h - where the code of a kernel is. */
#pragma once

#include "rt/program/program.h"

/* Asks a kernel that gathers its arguments for its code's address, unless that is known, by a launch on the queue,
 * which is waited for. The code stays loaded for good. With the kernel's lock held. With KOINE_DIRECT=0 it does
 * nothing. */
void kn_entry_find(kn_kernel *kernel, cl_command_queue queue);
