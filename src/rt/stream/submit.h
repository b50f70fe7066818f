/* rt/stream/submit.h - a thread per stream that enqueues work on its queue, so that the caller only pays for handing it
 * over. The work is replays of graphs (rt/graph/replay.c). */
#ifndef KN_RT_STREAM_SUBMIT_H
#define KN_RT_STREAM_SUBMIT_H

#include "rt/stream/stream_struct.h"

/* Work to hand over: `run` enqueues `subject` with the bytes that `prepare` left in the snapshot. */
typedef struct kn_submission {
    void *subject;
    size_t snapshot_bytes;
    /* Called by the calling thread, once nothing else can run out of memory. */
    kn_status (*prepare)(void *subject, unsigned char *snapshot);
    /* Called by the stream's thread, or with kn_submit_here by the calling one. */
    kn_status (*run)(kn_stream *stream, void *subject, const unsigned char *snapshot);
} kn_submission;

/* Hands it over. Waits only when several are not enqueued yet. Reports an earlier one's error instead, if there is one.
 */
kn_status kn_submit(kn_stream *stream, const kn_submission *work);

/* The calling thread enqueues it, after what was handed over. */
kn_status kn_submit_here(kn_stream *stream, const kn_submission *work);

/* Waits until all that was handed over so far is enqueued: whatever is enqueued next comes after it. Costs one load
 * where nothing ever was. */
void kn_submitter_wait(kn_submitter *submitter);
static inline void kn_submitter_drain(kn_stream *stream)
{
    kn_submitter *submitter = atomic_load_explicit(&stream->submitter, memory_order_acquire);
    if (submitter)
        kn_submitter_wait(submitter);
}

/* The first error of work enqueued since the last call, reported; KN_OK when there is none. */
kn_status kn_submitter_report(kn_stream *stream);

#endif
