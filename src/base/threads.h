/* base/threads.h - the few thread primitives the library uses, over pthreads. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef pthread_mutex_t kn_mutex;
#define KN_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER

static inline void kn_mutex_init(kn_mutex *mutex) { pthread_mutex_init(mutex, NULL); }
static inline void kn_mutex_destroy(kn_mutex *mutex) { pthread_mutex_destroy(mutex); }
static inline void kn_lock(kn_mutex *mutex) { pthread_mutex_lock(mutex); }
static inline bool kn_try_lock(kn_mutex *mutex) { return pthread_mutex_trylock(mutex) == 0; }
static inline void kn_unlock(kn_mutex *mutex) { pthread_mutex_unlock(mutex); }

/* An address that stands for the calling thread. */
const void *kn_this_thread(void);

/* Calls the function when this thread ends, or calls exit: before all that atexit has registered, and so before any
 * library's objects are destroyed. False where the system has no such thing. */
bool kn_at_thread_exit(void (*function)(void *), void *argument);

/* A condition whose time-outs are on CLOCK_MONOTONIC, as base/clock.h is. */
static inline void kn_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}
