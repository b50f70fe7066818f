/* rt/stream/executor.c - see rt/stream/executor.h. */
#include "rt/stream/executor.h"

#include "base/threads.h"

typedef struct executor {
    kn_mutex lock;
    pthread_cond_t arrived;
    kn_posted *first, *last;
    bool has_thread;
} executor;

static executor executors[KN_NUM_EXECUTORS] = {
    {.lock = KN_MUTEX_INIT, .arrived = PTHREAD_COND_INITIALIZER},
    {.lock = KN_MUTEX_INIT, .arrived = PTHREAD_COND_INITIALIZER},
};

static _Thread_local const executor *current;

static void *execute(void *argument)
{
    executor *e = argument;
    current = e;
    kn_lock(&e->lock);
    for (;;) {
        while (!e->first)
            pthread_cond_wait(&e->arrived, &e->lock);
        kn_posted *posted = e->first;
        e->first = posted->next;
        kn_unlock(&e->lock);
        posted->run(posted);
        kn_lock(&e->lock);
    }
    return NULL;
}

kn_status kn_executor_start(kn_executor which)
{
    executor *e = &executors[which];
    kn_lock(&e->lock);
    if (!e->has_thread) {
        pthread_t thread;
        e->has_thread = pthread_create(&thread, NULL, execute, e) == 0;
        if (e->has_thread)
            pthread_detach(thread);
    }
    const bool started = e->has_thread;
    kn_unlock(&e->lock);
    return started ? KN_OK : kn_fail(KN_ERR_MEMORY, "no thread could be started for callbacks of the driver");
}

void kn_executor_post(kn_executor which, kn_posted *posted)
{
    executor *e = &executors[which];
    posted->next = NULL;
    kn_lock(&e->lock);
    if (e->first)
        e->last->next = posted;
    else
        e->first = posted;
    e->last = posted;
    pthread_cond_signal(&e->arrived);
    kn_unlock(&e->lock);
}

bool kn_executor_is_current(kn_executor which) { return current == &executors[which]; }
