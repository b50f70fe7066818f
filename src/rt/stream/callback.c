/* rt/stream/callback.c - functions called, by a thread of the library, when a stream's work so far is done. */
#include <time.h>

#include "base/fork.h"
#include "base/memory.h"
#include "rt/device/lost.h"
#include "rt/stream/executor.h"
#include "rt/stream/queue.h"

typedef struct callback callback;
struct callback {
    kn_posted posted; /* first, so that it is the callback's address */
    kn_stream *stream;
    cl_event marker;
    kn_stream_callback function;
    void *user;
    bool is_due;    /* the driver has called back */
    callback *next; /* of any stream */
};

static kn_mutex adding = KN_MUTEX_INIT; /* held while a marker is enqueued: drivers' callbacks never wait for it */
static kn_mutex lock = KN_MUTEX_INIT;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER; /* a function has returned */
static callback *first, **end = &first;                /* in the order of their markers; guarded by the lock */

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

/* --- their order; the lock is held ------------------------------------------------------------ */

static void append(callback *call)
{
    *end = call;
    end = &call->next;
}

static callback *take(callback **link)
{
    callback *taken = *link;
    *link = taken->next;
    if (end == &taken->next)
        end = link;
    return taken;
}

/* OpenCL calls back in any order, even for one queue. */
static void post_due(const kn_stream *stream)
{
    for (callback **link = &first; *link;) {
        if ((*link)->stream != stream)
            link = &(*link)->next;
        else if ((*link)->is_due)
            kn_executor_post(KN_EXECUTOR_USER, &take(link)->posted);
        else
            return;
    }
}

/* --- called back ------------------------------------------------------------------------------ */

/* Also after an error, so that no thread waits for the callback forever. */
static void CL_CALLBACK work_done(cl_event marker, cl_int state, void *user)
{
    (void)marker;
    (void)state;
    callback *call = user;
    kn_lock(&lock);
    call->is_due = true;
    post_due(call->stream);
    kn_unlock(&lock);
}

/* A callback that never comes must not hold up the others. */
static void withdraw(callback *call)
{
    kn_lock(&lock);
    callback **link = &first;
    while (*link != call)
        link = &(*link)->next;
    take(link);
    atomic_fetch_sub(&call->stream->callbacks, 1);
    post_due(call->stream);
    kn_unlock(&lock);
}

/* --- the interface ---------------------------------------------------------------------------- */

/* Takes its place in the order when its marker does. */
static cl_int enqueue_marker(callback *call)
{
    kn_lock(&adding);
    cl_int error = kn_stream_mark(call->stream, &call->marker);
    if (error == CL_SUCCESS) {
        kn_lock(&lock);
        append(call);
        atomic_fetch_add(&call->stream->callbacks, 1);
        kn_unlock(&lock);
    }
    kn_unlock(&adding);
    return error;
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
    cl_int error = enqueue_marker(call);
    if (error == CL_SUCCESS) {
        error = clSetEventCallback(call->marker, CL_COMPLETE, work_done, call);
        if (error == CL_SUCCESS) { /* from here on the executor owns the call */
            clFlush(kn_stream_turn(stream).queue);
            return KN_OK;
        }
        withdraw(call);
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
