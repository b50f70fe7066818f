/* rt/stream/deferral.c - see deferral.h. */
#include "rt/stream/deferral.h"

#include "rt/device/lost.h"
#include "rt/stream/capturing.h"
#include "rt/stream/settle.h"

kn_deferral *kn_stream_deferral(const kn_stream *stream)
{
    return atomic_load_explicit(&((kn_stream *)(uintptr_t)stream)->deferral, memory_order_acquire);
}

bool kn_stream_set_deferral(kn_stream *stream, kn_deferral *deferral)
{
    kn_deferral *none = NULL;
    return atomic_compare_exchange_strong(&stream->deferral, &none, deferral);
}

/* Not idle, even if nothing was ever enqueued. */
void kn_stream_set_pending(kn_stream *stream, int launches)
{
    if (launches > 0)
        kn_stream_note_busy(stream);
    atomic_store_explicit(&kn_stream_deferral(stream)->pending, launches, memory_order_release);
}

kn_status kn_stream_enqueue_deferred(kn_stream *stream) { return kn_stream_settle(stream); }

bool kn_stream_has_deferred(kn_stream *stream)
{
    kn_deferral *deferral = kn_stream_deferral(stream);
    if (deferral)
        deferral->enqueue(deferral, NULL, 0); /* nothing, with its lock: who has it may be about to defer */
    return kn_stream_deferred(stream) != NULL;
}

bool kn_stream_captured_here(const kn_stream *stream) { return kn_stream_own_capture(stream) != NULL; }

bool kn_stream_captured_elsewhere(const kn_stream *stream)
{
    return kn_stream_has_capture(stream) && !kn_stream_captured_here(stream);
}

bool kn_stream_may_defer(const kn_stream *stream)
{
    return !kn_stream_captured_elsewhere(stream) && !kn_launches_block();
}
