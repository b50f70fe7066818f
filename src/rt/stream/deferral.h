/* rt/stream/deferral.h - launches that were called for but are not enqueued yet. A layer above collects them and
 * enqueues several as one kernel (loops/fusion.h). So whatever is enqueued on the stream, recorded in a capture of it,
 * or waited for, first has the pending launches enqueued that must precede it (rt/stream/settle.h). */
#pragma once

#include <koine/status.h>
#include <koine/stream.h>
#include <stdatomic.h>

typedef struct kn_buffer kn_buffer;

typedef struct kn_deferral kn_deferral;
struct kn_deferral {
    atomic_int pending; /* launches; set with kn_stream_set_pending */
    /* Enqueues what must precede a command that may read and write these buffers; `count` < 0: everything. Launches of
     * another thread's capture, which may begin during the call, stay pending: they are that thread's to record. */
    kn_status (*enqueue)(kn_deferral *deferral, const kn_buffer *const *used, int count);
    /* A buffer marked with kn_buffer_claim is being freed. True: its memory is still needed, and the deferral frees the
     * buffer later. */
    bool (*keeps)(kn_deferral *deferral, kn_buffer *freed);
};

/* The stream's; NULL: none yet. A stream has one for good: false if another thread set it first. */
kn_deferral *kn_stream_deferral(const kn_stream *stream);
bool kn_stream_set_deferral(kn_stream *stream, kn_deferral *deferral);

void kn_stream_set_pending(kn_stream *stream, int launches);

/* Enqueues everything that is pending, but not what another thread captures. */
kn_status kn_stream_enqueue_deferred(kn_stream *stream);

/* Is anything pending? No thread is just about to defer something, unknowing that the calling one has begun to
 * capture. */
bool kn_stream_has_deferred(kn_stream *stream);

/* Is the calling thread capturing on the stream? Is another? */
bool kn_stream_captured_here(const kn_stream *stream);
bool kn_stream_captured_elsewhere(const kn_stream *stream);

/* False while another thread captures on it, and with KOINE_LAUNCH_BLOCKING=1. */
bool kn_stream_may_defer(const kn_stream *stream);

/* Until kn_buffer_unclaim, freeing the buffer first asks the stream's deferral. False: another stream has claimed it.
 * kn_buffer_claimant: the stream, NULL: none. */
bool kn_buffer_claim(kn_buffer *buffer, kn_stream *stream);
void kn_buffer_unclaim(kn_buffer *buffer);
kn_stream *kn_buffer_claimant(const kn_buffer *buffer);
