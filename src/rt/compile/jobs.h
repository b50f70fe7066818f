/* rt/compile/jobs.h - the kernels of a device that are to be compiled. Each is compiled once: by one of the device's
 * helpers (rt/compile/helper.h), or by this process. Thread-safe. */
#pragma once

#include "base/text.h"
#include "base/threads.h"
#include "rt/program/cold.h"

typedef struct kn_compile_job kn_compile_job;

extern double kn_jobs_patience; /* changed by tests */

typedef struct kn_compiles {
    kn_cold cold;   /* first: kn_device.cold points to it */
    atomic_int hot; /* launches in a row that found their kernel ready */
    atomic_int most_helpers;
    kn_mutex lock;
    pthread_cond_t changed;
    kn_compile_job *first, *last; /* in the order in which they were asked for */
    int waiting;                  /* jobs that nobody took */
    int helpers, starting, idle;  /* how many there are, of which so many are not ready yet, or have no job */
    int numbered;                 /* helpers so far */
} kn_compiles;

void kn_jobs_init(kn_compiles *compiles);

/* A kernel to be compiled, and its program: a process that has built it has less to do for the next kernel of it. */
typedef struct kn_job_key {
    uint64_t kernel, program;
} kn_job_key;

/* The kernel's job. If there was none (`is_new`), whoever takes it gets a copy of `request`. NULL, without an error:
 * out of memory. */
kn_compile_job *kn_jobs_ask(kn_compiles *compiles, kn_job_key key, const char *request, size_t size, bool *is_new);

/* Takes a job that nobody took, after at most so many seconds; NULL: there is none. Who takes a job finishes it.
 * `process`: 0 is this one, helpers have other numbers. */
kn_compile_job *kn_jobs_take(kn_compiles *compiles, int process, double seconds);
void kn_jobs_finish(kn_compiles *compiles, kn_compile_job *job);

/* What to do first for a launch of the job's kernel. */
typedef enum kn_claim {
    KN_CLAIM_NONE, /* it is compiled; or who took it has not finished for kn_jobs_patience seconds and may never */
    KN_CLAIM_IT,   /* the caller has taken the job: the launch compiles the kernel */
    KN_CLAIM_OTHER /* the caller has taken another job, to be done while somebody else does this one */
} kn_claim;
kn_claim kn_jobs_claim(kn_compiles *compiles, kn_compile_job *job, kn_compile_job **other);

/* Of a job that the caller has taken. */
const char *kn_job_request(const kn_compile_job *job, size_t *size);
