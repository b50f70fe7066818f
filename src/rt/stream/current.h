/* rt/stream/current.h - current streams, for the runtime; koine/stream.h has what users call. */
#ifndef KN_RT_STREAM_CURRENT_H
#define KN_RT_STREAM_CURRENT_H

#include <koine/stream.h>

/* The stream is being destroyed: it is no longer the calling thread's current one. */
void kn_stream_forget_current(const kn_stream *stream);

#endif
