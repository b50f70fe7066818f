/* rt/stream/submit.c - see rt/stream/submit.h. */
#include "rt/stream/submit.h"

#include <string.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/memory.h"
#include "rt/device/lost.h"

typedef struct job {
    kn_submission work;
    unsigned char *snapshot;
    size_t capacity; /* of the snapshot, in bytes */
} job;

struct kn_submitter {
    kn_stream *stream;
    kn_mutex lock;
    pthread_cond_t arrived, done;
    job jobs[KN_MOST_JOBS]; /* a ring */
    unsigned taken, given;
    atomic_int pending; /* submitted, not yet enqueued */
    kn_status failure;  /* not reported yet */
    atomic_bool failed; /* is there one? */
    char message[512];
};

/* --- the thread ------------------------------------------------------------------------------- */

static _Thread_local bool submits;

bool kn_is_submitter(void) { return submits; }

void kn_stream_note_worker(kn_stream *stream)
{
    const void *worker = kn_this_thread(), *last = atomic_load_explicit(&stream->worker, memory_order_relaxed);
    if (last == worker || submits)
        return;
    last = atomic_exchange(&stream->worker, worker);
    if (last && last != worker)
        atomic_store(&stream->has_workers, true);
}

static kn_status run(const kn_submitter *submitter, const job *next, bool failed)
{
    const kn_submission *work = &next->work;
    if (!failed)
        return work->run(submitter->stream, work->subject, next->snapshot);
    if (work->discard)
        work->discard(work->subject);
    return KN_OK;
}

static void *submit(void *argument)
{
    kn_submitter *submitter = argument;
    submits = true;
    kn_lock(&submitter->lock);
    for (;;) {
        while (submitter->taken == submitter->given)
            pthread_cond_wait(&submitter->arrived, &submitter->lock);
        job *next = &submitter->jobs[submitter->taken % KN_MOST_JOBS];
        bool failed = submitter->failure != KN_OK;
        kn_unlock(&submitter->lock);
        kn_status status = run(submitter, next, failed);
        kn_lock(&submitter->lock);
        if (status != KN_OK) {
            submitter->failure = status;
            atomic_store_explicit(&submitter->failed, true, memory_order_relaxed);
            strncpy(submitter->message, kn_error_message(), sizeof submitter->message - 1);
            kn_error_clear();
        }
        submitter->taken++;
        atomic_fetch_sub_explicit(&submitter->pending, 1, memory_order_release);
        pthread_cond_broadcast(&submitter->done);
    }
    return NULL;
}

static kn_submitter *start(kn_stream *stream)
{
    kn_submitter *submitter = kn_calloc(1, sizeof *submitter);
    if (!submitter)
        return NULL;
    submitter->stream = stream;
    kn_mutex_init(&submitter->lock);
    pthread_cond_init(&submitter->arrived, NULL);
    pthread_cond_init(&submitter->done, NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, submit, submitter) == 0) {
        pthread_detach(thread); /* it lives as long as the stream's struct: until the process ends */
        return submitter;
    }
    pthread_cond_destroy(&submitter->arrived);
    pthread_cond_destroy(&submitter->done);
    kn_mutex_destroy(&submitter->lock);
    kn_free(submitter);
    return kn_fail_null(KN_ERR_MEMORY, "no thread could be started to enqueue work on %s", stream->device->label);
}

static kn_submitter *submitter_of(kn_stream *stream)
{
    kn_lock(&stream->lock);
    kn_submitter *submitter = atomic_load(&stream->submitter);
    if (!submitter) {
        submitter = start(stream);
        atomic_store_explicit(&stream->submitter, submitter, memory_order_release);
    }
    kn_unlock(&stream->lock);
    return submitter;
}

/* --- handing over ----------------------------------------------------------------------------- */

bool kn_submitter_is_busy(const kn_stream *stream)
{
    kn_submitter *submitter = atomic_load_explicit(&((kn_stream *)(uintptr_t)stream)->submitter, memory_order_acquire);
    return submitter && (atomic_load_explicit(&submitter->pending, memory_order_acquire) > 0 ||
                         atomic_load_explicit(&submitter->failed, memory_order_relaxed));
}

/* Until the job that is run now is enqueued. */
static void await_job(kn_submitter *submitter)
{
    const unsigned taken = submitter->taken;
    const kn_submission_notice notice = submitter->jobs[taken % KN_MOST_JOBS].work.notice;
    const char *label = submitter->jobs[taken % KN_MOST_JOBS].work.label;
    const double began = notice ? kn_clock_seconds() : 0;
    if (notice)
        notice(label, 0);
    while (submitter->taken == taken)
        pthread_cond_wait(&submitter->done, &submitter->lock);
    if (notice)
        notice(label, began);
}

void kn_submitter_wait(kn_submitter *submitter)
{
    if (atomic_load_explicit(&submitter->pending, memory_order_acquire) == 0 || submits || kn_is_forked())
        return;
    kn_lock(&submitter->lock);
    const unsigned last = submitter->given; /* another thread may keep submitting */
    while ((int)(last - submitter->taken) > 0)
        await_job(submitter);
    kn_unlock(&submitter->lock);
}

kn_status kn_submitter_report(kn_stream *stream)
{
    kn_submitter *submitter = atomic_load_explicit(&stream->submitter, memory_order_acquire);
    if (!submitter)
        return KN_OK;
    kn_lock(&submitter->lock);
    kn_status failure = submitter->failure;
    if (failure != KN_OK)
        kn_fail(failure, "%s", submitter->message);
    submitter->failure = KN_OK;
    atomic_store_explicit(&submitter->failed, false, memory_order_relaxed);
    kn_unlock(&submitter->lock);
    return failure;
}

static kn_status prepare(const kn_submission *work, unsigned char *snapshot)
{
    return work->prepare ? work->prepare(work->subject, snapshot) : KN_OK;
}

/* Without a thread no snapshot would be needed, but one path serves both. */
kn_status kn_submit_here(kn_stream *stream, const kn_submission *work)
{
    unsigned char few[512], *snapshot = few;
    KN_TRY(kn_device_check_lost(stream->device));
    kn_stream_note_busy(stream);
    if (work->snapshot_bytes > sizeof few && !(snapshot = kn_malloc(work->snapshot_bytes)))
        return KN_ERR_MEMORY;
    kn_submitter_drain(stream);
    kn_status status = prepare(work, snapshot);
    if (status == KN_OK)
        status = work->run(stream, work->subject, snapshot);
    if (snapshot != few)
        kn_free(snapshot);
    return status;
}

static kn_status hand_over(kn_submitter *submitter, const kn_submission *work)
{
    kn_status status = KN_OK;
    kn_lock(&submitter->lock);
    while (submitter->given - submitter->taken >= (unsigned)work->most_pending)
        await_job(submitter);
    job *free_job = &submitter->jobs[submitter->given % KN_MOST_JOBS];
    if (free_job->capacity < work->snapshot_bytes) {
        unsigned char *larger = kn_realloc(free_job->snapshot, work->snapshot_bytes);
        if (larger) {
            free_job->snapshot = larger;
            free_job->capacity = work->snapshot_bytes;
        } else {
            status = KN_ERR_MEMORY;
        }
    }
    if (status == KN_OK)
        status = prepare(work, free_job->snapshot);
    if (status == KN_OK) {
        free_job->work = *work;
        submitter->given++;
        atomic_fetch_add_explicit(&submitter->pending, 1, memory_order_release);
        pthread_cond_signal(&submitter->arrived);
    }
    kn_unlock(&submitter->lock);
    return status;
}

kn_status kn_submit(kn_stream *stream, const kn_submission *work)
{
    KN_TRY(kn_device_check_lost(stream->device));
    kn_stream_note_busy(stream);
    kn_submitter *submitter = submitter_of(stream);
    if (!submitter)
        return kn_error_status();
    KN_TRY(kn_submitter_report(stream));
    kn_stream_note_worker(stream);
    return hand_over(submitter, work);
}
