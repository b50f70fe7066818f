/* rt/stream/callback.c - functions called, by a thread of the library, when a stream's work so far is done. */
#include <time.h>

#include "base/fork.h"
#include "base/memory.h"
#include "rt/device/inject.h"
#include "rt/device/lost.h"
#include "rt/stream/executor.h"
#include "rt/stream/queue.h"

typedef struct callback {
    kn_posted posted; /* first, so that it is the callback's address */
    kn_stream *stream;
    cl_event marker;
    kn_stream_callback function;
    void *user;
} callback;

static kn_mutex lock = KN_MUTEX_INIT;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER; /* a function has returned */

static void call_function(kn_posted *posted)
{
    callback *call = (callback *)posted;
    call->function(call->user);
    clReleaseEvent(call->marker);
    kn_lock(&lock);
    atomic_fetch_sub(&call->stream->callbacks, 1);
    pthread_cond_broadcast(&done);
    kn_unlock(&lock);
    kn_free(call);
}

/* Also after an error, so that no thread waits for the callback forever. */
static void CL_CALLBACK work_done(cl_event marker, cl_int state, void *user)
{
    (void)marker;
    (void)state;
    kn_executor_post(KN_EXECUTOR_USER, user);
}

kn_status kn_stream_add_callback(kn_stream *stream, kn_stream_callback function, void *user)
{
    if (!stream || !function)
        return kn_fail_argument_null("kn_stream_add_callback", stream ? "function" : "stream");
    KN_TRY(kn_stream_enter(stream, "a callback"));
    KN_TRY(kn_executor_start(KN_EXECUTOR_USER));
    callback *call = kn_calloc(1, sizeof *call);
    if (!call)
        return KN_ERR_MEMORY;
    *call = (callback){.posted.run = call_function, .stream = stream, .function = function, .user = user};
    cl_int error = kn_stream_mark(stream, &call->marker);
    if (error == CL_SUCCESS) {
        atomic_fetch_add(&stream->callbacks, 1);
        error = clSetEventCallback(call->marker, CL_COMPLETE, work_done, call);
        if (error == CL_SUCCESS) { /* from here on the executor owns the call */
            clFlush(kn_stream_turn(stream).queue);
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
    if (atomic_load(&stream->callbacks) == 0 || kn_executor_is_current(KN_EXECUTOR_USER) || kn_is_forked())
        return;
    kn_lock(&lock);
    while (atomic_load(&stream->callbacks) > 0 && !kn_device_is_lost(stream->device)) {
        struct timespec soon; /* a driver that lost the device may never call back */
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_sec++;
        pthread_cond_timedwait(&done, &lock, &soon);
    }
    kn_unlock(&lock);
}
