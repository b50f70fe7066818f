/* rt/stream/event.h - whether a stream is idle. koine/stream.h and rt/stream/wait.h declare the rest of event.c. */
#pragma once

#include <koine/stream.h>

/* Is all the stream's work done, or will it be within that time? */
kn_status kn_stream_is_idle_within(kn_stream *stream, long nanoseconds, bool *done);
