/* rt/direct/entry.h - where the code of a kernel is. */
#pragma once

#include "rt/stream/calls.h"

/* Asks a kernel that gathers its arguments for its code's address, by a launch on the queue, which is waited for. The
 * code stays loaded for good. NULL: there is no telling. Takes the arguments of the kernel object: with its lock
 * held. */
kn_entry kn_entry_find(cl_kernel kernel, cl_command_queue queue);
