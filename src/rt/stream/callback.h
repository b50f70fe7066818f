/* rt/stream/callback.h - waiting for a stream's callbacks. */
#ifndef KN_RT_STREAM_CALLBACK_H
#define KN_RT_STREAM_CALLBACK_H

#include <koine/stream.h>

/* Waits until the stream's callbacks have run; returns at once when called from one. */
void kn_stream_await_callbacks(kn_stream *stream);

#endif
