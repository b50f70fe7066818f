/* rt/stream/submit.h - a thread per stream that enqueues work on its queue, so that the caller only pays for submitting
 * it. The work is graph replays (rt/graph/replay.c). */
#pragma once

#include "rt/stream/stream_struct.h"

/* A job: `run` enqueues `subject` with the bytes that `prepare` stored in the snapshot. */
typedef struct kn_submission {
    void *subject;
    size_t snapshot_bytes;
    /* Called by the calling thread, once nothing else can run out of memory. */
    kn_status (*prepare)(void *subject, unsigned char *snapshot);
    /* Called by the stream's thread, or with kn_submit_here by the calling one. */
    kn_status (*run)(kn_stream *stream, void *subject, const unsigned char *snapshot);
} kn_submission;

/* Submits a job. Waits only if several are pending. Reports an earlier job's error instead, if there is one. */
kn_status kn_submit(kn_stream *stream, const kn_submission *work);

/* The calling thread enqueues it, after all submitted jobs. */
kn_status kn_submit_here(kn_stream *stream, const kn_submission *work);

/* Waits until all jobs submitted so far are enqueued, so that later commands come after them. Costs one load if there
 * never was a job. */
void kn_submitter_wait(kn_submitter *submitter);
static inline void kn_submitter_drain(kn_stream *stream)
{
    kn_submitter *submitter = atomic_load_explicit(&stream->submitter, memory_order_acquire);
    if (submitter)
        kn_submitter_wait(submitter);
}

/* The first error of work enqueued since the last call, reported; KN_OK when there is none. */
kn_status kn_submitter_report(kn_stream *stream);
