/* rt/command/enqueue.h - a kernel on a stream's queue, for launches and replays. */
#pragma once

#include "rt/stream/affinity.h"

/* The arguments are set, but for the parameter that launches set, and the kernel's lock is held. `values`: of a kernel
 * that gathers them. local[0] 0: the driver's choice. `event` (kn_watch_event) is set if it is watched. */
cl_int kn_enqueue_kernel(kn_stream *stream, kn_turn turn, cl_kernel kernel, kn_affinity_parameter parameter,
                         const kn_values *values, int dims, const size_t global[3], const size_t local[3],
                         cl_event *event);
