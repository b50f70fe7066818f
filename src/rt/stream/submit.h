/* rt/stream/submit.h - replays: recorded commands go to a stream's queue, from a thread of the stream's own, so that
 * the caller pays for handing a replay over and not for enqueueing it. */
#ifndef KN_RT_STREAM_SUBMIT_H
#define KN_RT_STREAM_SUBMIT_H

#include "rt/graph/capture.h"

/* Enqueues the recording on the stream, with the values that its hooks give the variables now: they are called once
 * nothing else can fail for want of memory. Waits only when several replays are not enqueued yet. `here`: by the
 * calling thread, before return. */
kn_status kn_submit(kn_stream *stream, kn_recording *recording, bool here);

/* Waits until all replays handed over so far are enqueued: whatever is enqueued next comes after them. Costs one load
 * where the stream has never replayed. */
void kn_submitter_wait(kn_submitter *submitter);
static inline void kn_submitter_drain(kn_stream *stream)
{
    kn_submitter *submitter = atomic_load_explicit(&stream->submitter, memory_order_acquire);
    if (submitter)
        kn_submitter_wait(submitter);
}

/* The first error of replays enqueued since the last call, reported; KN_OK when there is none. */
kn_status kn_submitter_report(kn_stream *stream);

#endif
