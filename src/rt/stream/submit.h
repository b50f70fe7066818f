/* rt/stream/submit.h - a thread per stream that enqueues work on its queue, so that the caller only submits it.
 *
 * The work is graph replays (rt/graph/replay.c), and launches whose kernels are being compiled (rt/compile/cold.c).
 * Whatever else is enqueued on the stream, or waited for, first waits until the thread has enqueued what was submitted
 * before: to the rest of the runtime a job is the work of the thread that submitted it. */
#pragma once

#include "rt/stream/stream_struct.h"

/* Tells a thread that it waits for a job: `began` is 0; and that this is over: the time at which it began. Called with
 * locks held. */
typedef void (*kn_submission_notice)(const char *label, double began);

/* A job: `run` enqueues `subject` with the bytes that `prepare` stored in the snapshot. */
typedef struct kn_submission {
    void *subject;
    size_t snapshot_bytes;
    /* Called by the calling thread, once nothing else can run out of memory. NULL: there is nothing to prepare. */
    kn_status (*prepare)(void *subject, unsigned char *snapshot);
    /* Called by the stream's thread, or with kn_submit_here by the calling one. */
    kn_status (*run)(kn_stream *stream, void *subject, const unsigned char *snapshot);
    void (*discard)(void *subject); /* called instead of `run` after an error of an earlier job; may be NULL */
    int most_pending;               /* jobs, beyond which submitting waits; at most KN_MOST_JOBS */
    kn_submission_notice notice;    /* may be NULL */
    const char *label;              /* for `notice`; constant */
} kn_submission;

#define KN_MOST_JOBS 1024

/* Submits a job. Waits only if `most_pending` are pending. Reports an earlier job's error instead, if there is one. */
kn_status kn_submit(kn_stream *stream, const kn_submission *work);

/* The calling thread enqueues it, after all submitted jobs. */
kn_status kn_submit_here(kn_stream *stream, const kn_submission *work);

/* Waits until all jobs submitted so far are enqueued, so that later commands come after them; not in a job. Costs one
 * load if there never was a job. */
void kn_submitter_wait(kn_submitter *submitter);
static inline void kn_submitter_drain(kn_stream *stream)
{
    kn_submitter *submitter = atomic_load_explicit(&stream->submitter, memory_order_acquire);
    if (submitter)
        kn_submitter_wait(submitter);
}

/* Are jobs pending, or has one failed and nobody been told? */
bool kn_submitter_is_busy(const kn_stream *stream);

/* Is the calling thread one that runs jobs? Other threads may wait for it with the runtime's locks held. */
bool kn_is_submitter(void);

/* Has all work given to the stream ended, as far as is known? Pending jobs have not, except to the job that asks; one
 * that failed has once its error is reported. */
static inline bool kn_stream_rests(kn_stream *stream)
{
    return kn_stream_is_known_idle(stream) && (kn_is_submitter() || !kn_submitter_is_busy(stream));
}

/* Called by who enqueues a command on the stream, for kn_stream.has_workers. Threads that run jobs do not count: who
 * submits one does. */
void kn_stream_note_worker(kn_stream *stream);

/* The first error of work enqueued since the last call, reported; KN_OK when there is none. */
kn_status kn_submitter_report(kn_stream *stream);
