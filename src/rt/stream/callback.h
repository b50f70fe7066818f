/* rt/stream/callback.h - the end of a stream's callbacks. */
#ifndef KN_RT_STREAM_CALLBACK_H
#define KN_RT_STREAM_CALLBACK_H

#include <koine/stream.h>

/* Waits until the stream's callbacks have run; at once when called by one. */
void kn_stream_await_callbacks(kn_stream *stream);

#endif
