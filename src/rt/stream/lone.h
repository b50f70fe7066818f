/* rt/stream/lone.h - launches that may not run beside those of other streams: see confuses_sizes in
 * rt/device/quirks.h. Kernels that gather their arguments do not need it (rt/command/enqueue.c). */
#pragma once

#include "rt/stream/queue.h"

/* Around the enqueueing of one: it comes after all such of the device's other streams. If begin fails there is no
 * end. */
cl_int kn_lone_begin(kn_stream *stream, kn_turn turn);
void kn_lone_end(const kn_stream *stream);
