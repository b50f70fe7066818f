/* rt/stream/current.h - beside koine/stream.h: guards that could not be entered, and streams that go. */
#ifndef KN_RT_STREAM_CURRENT_H
#define KN_RT_STREAM_CURRENT_H

#include <koine/stream.h>

/* The stream is about to be destroyed: it is not the calling thread's current one any more. */
void kn_stream_forget_current(const kn_stream *stream);

#endif
