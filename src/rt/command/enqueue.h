/* rt/command/enqueue.h - a kernel on a stream's queue, for launches and replays. */
#pragma once

#include "rt/stream/queue.h"

/* The arguments are set, but for `affinity`, the parameter for rt/stream/affinity.h (-1: none), and the kernel's lock
 * is held. local[0] 0: the driver's choice. `event` (kn_watch_event) is set if it is watched. */
cl_int kn_enqueue_kernel(kn_stream *stream, kn_turn turn, cl_kernel kernel, int affinity, int dims,
                         const size_t global[3], const size_t local[3], cl_event *event);
