/* rt/stream/current.h - current streams, for the runtime; koine/stream.h has what users call. */
#pragma once

#include <koine/stream.h>

/* The stream is being destroyed: it is no longer the calling thread's current one. */
void kn_stream_forget_current(const kn_stream *stream);
