/* rt/command/enqueue.h - a kernel on a stream's queue, for launches and replays. */
#pragma once

#include "rt/stream/calls.h"

/* The kernel's lock is held. Its arguments are set, and `values` NULL, unless it gathers them. local[0] 0: the driver's
 * choice. `event` (kn_watch_event) is set if it is watched. */
cl_int kn_enqueue_kernel(kn_stream *stream, kn_turn turn, cl_kernel kernel, const kn_values *values, int dims,
                         const size_t global[3], const size_t local[3], cl_event *event);
