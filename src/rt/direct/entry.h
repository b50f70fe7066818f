/* rt/direct/entry.h - where the code of a kernel is. */
#pragma once

#include "rt/stream/calls.h"

/* Asks a kernel that gathers its arguments for its code's address, by a launch on the queue, which is waited for. The
 * code stays loaded for good. NULL: there is no telling, or KOINE_DIRECT=0. Takes the arguments of the kernel object:
 * with its lock held. The question is as long-lived as the kernel. */
kn_entry kn_entry_find(cl_kernel kernel, kn_question *question, cl_command_queue queue);
