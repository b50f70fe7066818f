/* rt/stream/callback.c - functions called when a stream's work so far is done. A driver may call back from any of its
 * threads, in which OpenCL allows almost nothing, so our callback only passes the function to our own thread. */
#include <time.h>

#include "base/fork.h"
#include "base/memory.h"
#include "rt/device/inject.h"
#include "rt/device/lost.h"
#include "rt/stream/queue.h"

typedef struct callback {
    kn_stream *stream;
    cl_event marker;
    kn_stream_callback function;
    void *user;
    struct callback *next;
} callback;

static struct {
    kn_mutex lock;
    pthread_cond_t arrived, done;
    callback *first, **last; /* work done, not yet called */
    bool has_thread;
} executor = {.lock = KN_MUTEX_INIT, .arrived = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static _Thread_local bool is_executor;

static void *execute(void *unused)
{
    (void)unused;
    is_executor = true;
    kn_lock(&executor.lock);
    for (;;) {
        while (!executor.first)
            pthread_cond_wait(&executor.arrived, &executor.lock);
        callback *call = executor.first;
        executor.first = call->next;
        if (!executor.first)
            executor.last = &executor.first;
        kn_unlock(&executor.lock);
        call->function(call->user);
        clReleaseEvent(call->marker);
        kn_lock(&executor.lock);
        atomic_fetch_sub(&call->stream->callbacks, 1);
        pthread_cond_broadcast(&executor.done);
        kn_free(call);
    }
    return NULL;
}

static void CL_CALLBACK work_done(cl_event marker, cl_int state, void *user)
{
    (void)marker;
    (void)state; /* also after an error, so that no thread waits for the callback forever */
    callback *call = user;
    call->next = NULL;
    kn_lock(&executor.lock);
    *executor.last = call;
    executor.last = &call->next;
    pthread_cond_signal(&executor.arrived);
    kn_unlock(&executor.lock);
}

static kn_status start_executor(void)
{
    kn_status status = KN_OK;
    kn_lock(&executor.lock);
    if (!executor.has_thread) {
        pthread_t thread;
        executor.last = &executor.first;
        executor.has_thread = pthread_create(&thread, NULL, execute, NULL) == 0;
        if (executor.has_thread)
            pthread_detach(thread);
        else
            status = kn_fail(KN_ERR_MEMORY, "kn_stream_add_callback: no thread could be started");
    }
    kn_unlock(&executor.lock);
    return status;
}

kn_status kn_stream_add_callback(kn_stream *stream, kn_stream_callback function, void *user)
{
    if (!stream || !function)
        return kn_fail_argument_null("kn_stream_add_callback", stream ? "function" : "stream");
    KN_TRY(kn_stream_enter(stream, "a callback"));
    KN_TRY(start_executor());
    callback *call = kn_calloc(1, sizeof *call);
    if (!call)
        return KN_ERR_MEMORY;
    *call = (callback){.stream = stream, .function = function, .user = user};
    cl_int error = KN_CL(KN_CL_MARK, clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &call->marker));
    if (error == CL_SUCCESS) {
        atomic_fetch_add(&stream->callbacks, 1);
        error = clSetEventCallback(call->marker, CL_COMPLETE, work_done, call);
        if (error == CL_SUCCESS) { /* from here on the executor owns the call */
            clFlush(stream->queue);
            return KN_OK;
        }
        atomic_fetch_sub(&stream->callbacks, 1);
    }
    if (call->marker)
        clReleaseEvent(call->marker);
    kn_free(call);
    return kn_cl_fail(error, stream->device, "adding a callback");
}

void kn_stream_await_callbacks(kn_stream *stream)
{
    if (atomic_load(&stream->callbacks) == 0 || is_executor || kn_is_forked())
        return;
    kn_lock(&executor.lock);
    while (atomic_load(&stream->callbacks) > 0 && !kn_device_is_lost(stream->device)) {
        struct timespec soon; /* a driver that lost the device may never call back */
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_sec++;
        pthread_cond_timedwait(&executor.done, &executor.lock, &soon);
    }
    kn_unlock(&executor.lock);
}
