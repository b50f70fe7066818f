/* rt/compile/jobs.c - see rt/compile/jobs.h. */
#include "rt/compile/jobs.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"

double kn_jobs_patience = 60; /* many times what any kernel takes */

typedef enum job_state { WAITING, TAKEN, DONE } job_state;

struct kn_compile_job {
    uint64_t key;
    job_state state;
    char *request; /* until it is done */
    size_t size;
    kn_compile_job *beside, *after; /* in its bucket; in the order */
};

void kn_jobs_init(kn_compiles *compiles)
{
    kn_mutex_init(&compiles->lock);
    kn_condition_init(&compiles->changed);
}

const char *kn_job_request(const kn_compile_job *job, size_t *size)
{
    *size = job->size;
    return job->request;
}

static kn_compile_job *new_job(uint64_t key, const char *request, size_t size)
{
    KN_PRESERVE_ERROR;
    kn_compile_job *job = kn_calloc(1, sizeof *job);
    char *copy = job ? kn_malloc(size) : NULL;
    if (!copy) {
        kn_free(job);
        return NULL;
    }
    memcpy(copy, request, size);
    job->key = key;
    job->request = copy;
    job->size = size;
    return job;
}

static void append(kn_compiles *compiles, kn_compile_job *job)
{
    kn_compile_job **bucket = &compiles->buckets[job->key % KN_JOB_BUCKETS];
    job->beside = *bucket;
    *bucket = job;
    if (compiles->last)
        compiles->last->after = job;
    compiles->last = job;
    if (!compiles->next)
        compiles->next = job;
    compiles->waiting++;
    pthread_cond_broadcast(&compiles->changed);
}

kn_compile_job *kn_jobs_ask(kn_compiles *compiles, uint64_t key, const char *request, size_t size, bool *is_new)
{
    kn_lock(&compiles->lock);
    kn_compile_job *job = compiles->buckets[key % KN_JOB_BUCKETS];
    while (job && job->key != key)
        job = job->beside;
    *is_new = !job;
    if (!job && (job = new_job(key, request, size)))
        append(compiles, job);
    kn_unlock(&compiles->lock);
    return job;
}

/* With the lock held. */
static kn_compile_job *take_next(kn_compiles *compiles)
{
    kn_compile_job *job = compiles->next;
    while (job && job->state != WAITING)
        job = job->after;
    compiles->next = job ? job->after : NULL;
    if (job) {
        job->state = TAKEN;
        compiles->waiting--;
    }
    return job;
}

static bool wait_until(kn_compiles *compiles, double time)
{
    const struct timespec until = {(time_t)time, (long)((time - (double)(time_t)time) * 1e9)};
    return pthread_cond_timedwait(&compiles->changed, &compiles->lock, &until) == 0;
}

kn_compile_job *kn_jobs_take(kn_compiles *compiles, double seconds)
{
    const double until = kn_clock_seconds() + seconds;
    kn_lock(&compiles->lock);
    kn_compile_job *job = take_next(compiles);
    compiles->idle += !job;
    if (!job) {
        while (!job && wait_until(compiles, until))
            job = take_next(compiles);
        compiles->idle--;
    }
    kn_unlock(&compiles->lock);
    return job;
}

void kn_jobs_finish(kn_compiles *compiles, kn_compile_job *job)
{
    kn_lock(&compiles->lock);
    job->state = DONE;
    kn_free(job->request);
    job->request = NULL;
    pthread_cond_broadcast(&compiles->changed);
    kn_unlock(&compiles->lock);
}

kn_claim kn_jobs_claim(kn_compiles *compiles, kn_compile_job *job, kn_compile_job **other)
{
    const double until = kn_clock_seconds() + kn_jobs_patience;
    kn_claim claim = KN_CLAIM_NONE;
    *other = NULL;
    kn_lock(&compiles->lock);
    while (job->state == TAKEN && !(*other = take_next(compiles)))
        if (!wait_until(compiles, until))
            job->state = DONE; /* as far as launches are concerned */
    if (*other) {
        claim = KN_CLAIM_OTHER;
    } else if (job->state == WAITING) {
        job->state = TAKEN;
        compiles->waiting--;
        claim = KN_CLAIM_IT;
    }
    kn_unlock(&compiles->lock);
    return claim;
}
