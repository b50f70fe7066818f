/* rt/compile/jobs.c - see rt/compile/jobs.h. */
#include "rt/compile/jobs.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"

double kn_jobs_patience = 60; /* many times what any kernel takes */

typedef enum job_state { WAITING, TAKEN, DONE } job_state;

struct kn_compile_job {
    kn_job_key key;
    job_state state;
    int process;   /* that took it */
    char *request; /* until it is done */
    size_t size;
    kn_compile_job *after; /* in the order */
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

static kn_compile_job *new_job(kn_job_key key, const char *request, size_t size)
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
    if (compiles->last)
        compiles->last->after = job;
    else
        compiles->first = job;
    compiles->last = job;
    compiles->waiting++;
    pthread_cond_broadcast(&compiles->changed);
}

kn_compile_job *kn_jobs_ask(kn_compiles *compiles, kn_job_key key, const char *request, size_t size, bool *is_new)
{
    kn_lock(&compiles->lock);
    kn_compile_job *job = compiles->first;
    while (job && job->key.kernel != key.kernel)
        job = job->after;
    *is_new = !job;
    if (!job && (job = new_job(key, request, size)))
        append(compiles, job);
    kn_unlock(&compiles->lock);
    return job;
}

/* The process that builds the job's program, or has; -1: none does. With the lock held, as in what follows. */
static int builder_of(const kn_compiles *compiles, const kn_compile_job *job)
{
    for (const kn_compile_job *other = compiles->first; other; other = other->after)
        if (other->state != WAITING && other->key.program == job->key.program)
            return other->process;
    return -1;
}

static void take(kn_compiles *compiles, kn_compile_job *job, int process)
{
    job->state = TAKEN;
    job->process = process;
    compiles->waiting--;
}

/* The first whose program no other process builds, else the first. */
static kn_compile_job *take_next(kn_compiles *compiles, int process)
{
    kn_compile_job *best = NULL;
    for (kn_compile_job *job = compiles->waiting > 0 ? compiles->first : NULL; job; job = job->after) {
        if (job->state != WAITING)
            continue;
        const int builder = builder_of(compiles, job);
        if (builder < 0 || builder == process) {
            best = job;
            break;
        }
        if (!best)
            best = job;
    }
    if (best)
        take(compiles, best, process);
    return best;
}

static bool wait_until(kn_compiles *compiles, double time)
{
    const struct timespec until = {(time_t)time, (long)((time - (double)(time_t)time) * 1e9)};
    return pthread_cond_timedwait(&compiles->changed, &compiles->lock, &until) == 0;
}

kn_compile_job *kn_jobs_take(kn_compiles *compiles, int process, double seconds)
{
    const double until = kn_clock_seconds() + seconds;
    kn_lock(&compiles->lock);
    kn_compile_job *job = take_next(compiles, process);
    compiles->idle += !job;
    if (!job) {
        while (!job && wait_until(compiles, until))
            job = take_next(compiles, process);
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
    while (job->state == TAKEN && !(*other = take_next(compiles, 0)))
        if (!wait_until(compiles, until))
            job->state = DONE; /* as far as launches are concerned */
    if (*other) {
        claim = KN_CLAIM_OTHER;
    } else if (job->state == WAITING) {
        take(compiles, job, 0);
        claim = KN_CLAIM_IT;
    }
    kn_unlock(&compiles->lock);
    return claim;
}
