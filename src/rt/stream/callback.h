/* rt/stream/callback.h - waiting for a stream's callbacks. */
#pragma once

#include <koine/stream.h>

/* Waits until the stream's callbacks have run; returns at once when called from one. */
void kn_stream_await_callbacks(kn_stream *stream);
