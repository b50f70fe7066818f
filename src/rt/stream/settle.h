/* rt/stream/settle.h - enqueues launches that were deferred (rt/stream/deferral.h). */
#pragma once

#include "rt/stream/deferral.h"
#include "rt/stream/stream_struct.h"

/* NULL: nothing is pending. */
static inline kn_deferral *kn_stream_deferred(kn_stream *stream)
{
    kn_deferral *deferral = atomic_load_explicit(&stream->deferral, memory_order_acquire);
    return deferral && atomic_load_explicit(&deferral->pending, memory_order_acquire) > 0 ? deferral : NULL;
}

/* All of them. */
static inline kn_status kn_stream_settle(kn_stream *stream)
{
    kn_deferral *deferral = kn_stream_deferred(stream);
    return deferral ? deferral->enqueue(deferral, NULL, -1) : KN_OK;
}

/* Those that must precede a command that uses these buffers. */
static inline kn_status kn_stream_settle_for(kn_stream *stream, const kn_buffer *const *used, int count)
{
    kn_deferral *deferral = kn_stream_deferred(stream);
    return deferral ? deferral->enqueue(deferral, used, count) : KN_OK;
}
