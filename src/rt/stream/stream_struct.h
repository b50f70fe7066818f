/* rt/stream/stream_struct.h - the stream struct, internal to the runtime. */
#pragma once

#include <koine/stream.h>

#include "rt/device/device_struct.h"

/* How far the host may run ahead of a stream: KN_STREAM_MARKERS times KN_LAUNCHES_PER_MARKER launches. Enough to keep
 * any device busy, few enough to bound the memory held by queued work. */
#define KN_STREAM_MARKERS 16
#define KN_LAUNCHES_PER_MARKER 16

typedef struct kn_capture kn_capture;     /* rt/stream/capturing.h */
typedef struct kn_submitter kn_submitter; /* rt/stream/submit.h */
typedef struct kn_deferral kn_deferral;   /* rt/stream/deferral.h */
typedef struct kn_calls kn_calls;         /* rt/stream/calls.h */

/* A stream's struct is never freed, only reused for another stream: a thread may still have a destroyed one as its
 * current stream, which it detects by the id. The next stream inherits its queue, if no other code has it, and its
 * memory in the pool. */
struct kn_stream {
    kn_device *device;
    /* Plain; with times (rt/stream/queue.h). NULL: not made yet, or was shared and is gone. */
    cl_command_queue queues[2];
    atomic_uint switches; /* between them; see kn_stream_turn */
    kn_calls *calls;      /* kept with the struct; NULL: kernels on the device do not gather arguments */
    atomic_ullong id;     /* unique in the process; 0 once destroyed */
    bool is_default;
    int priority;
    _Atomic(kn_mem_pool *) redirected_to; /* the pool of allocations on the stream; NULL: no redirection */
    kn_stream *next;                      /* the device's list of streams, or of destroyed ones */
    cl_mem fault;                         /* four ints: code, value, limit, operation; see cl/common/koine.clh */
    int *fault_start;                     /* its address in kernels, where they get addresses; else NULL */
    kn_mutex lock;                        /* guards what follows: a stream may be shared by threads */
    unsigned launches;                    /* since the last marker */
    cl_event markers[KN_STREAM_MARKERS];  /* a ring; the oldest is waited for when it is full */
    unsigned next_marker;
    atomic_bool fault_armed;           /* a launch since the last check may have written it */
    _Atomic(kn_capture *) capture;     /* the capture that records commands; NULL: commands run */
    _Atomic(const void *) capturer;    /* identifies the capturing thread, which alone may read `capture` */
    _Atomic(kn_submitter *) submitter; /* enqueues replays; created at the first replay */
    _Atomic(kn_deferral *) deferral;   /* created when a launch is first deferred */
    atomic_int callbacks;              /* not yet called */
    _Atomic(kn_stream *) fault_sources[KN_MAX_DEVICES]; /* by device: a stream from which possibly faulty values came */
    atomic_bool has_fault_sources;                      /* any of them */
    atomic_bool busy;   /* commands were enqueued since it was last known to be idle, or since others began to wait */
    atomic_uint others; /* counts kn_stream_note_others */
    atomic_uint others_over;      /* up to which count those commands are known to be over */
    atomic_int waiting;           /* threads that wait for all commands so far */
    _Atomic(const void *) worker; /* the thread that used it last: kn_this_thread */
    atomic_bool has_workers;      /* several threads have; see kn_stream_begin_block */
    atomic_int blocked;           /* threads in calls that wait until the queue is empty */
    atomic_int entering;          /* threads that enqueue what they will wait for */
    atomic_int ways_given;        /* pauses of threads that gave way to them */
    atomic_bool is_shared;        /* other code uses the queue: it is never known to be idle, and stays the stream's */
};

/* After a command was enqueued, too: the stream may have been found idle between kn_stream_enter and the command. */
static inline void kn_stream_note_busy(kn_stream *stream)
{
    atomic_store_explicit(&stream->busy, true, memory_order_relaxed);
}

/* Before and after a command that waits for other streams is enqueued: a wait that ends between the two may have begun
 * before the command. */
static inline void kn_stream_note_others(kn_stream *stream) { atomic_fetch_add(&stream->others, 1); }
/* May commands in the queue come after those of other streams? */
static inline bool kn_stream_awaits_others(kn_stream *stream)
{
    return atomic_load(&stream->others) != atomic_load(&stream->others_over);
}

/* Around a wait for all commands so far. The stream is marked idle before it, so that commands that other threads
 * enqueue meanwhile mark it busy again. Returns the waits for other streams so far: those that other threads enqueue
 * meanwhile are not over with it. */
static inline unsigned kn_stream_begin_wait(kn_stream *stream)
{
    atomic_fetch_add(&stream->waiting, 1);
    atomic_store(&stream->busy, false);
    return atomic_load(&stream->others);
}
static inline void kn_stream_end_wait(kn_stream *stream, unsigned others, bool done)
{
    if (done)
        atomic_store(&stream->others_over, others);
    else
        atomic_store(&stream->busy, true);
    atomic_fetch_sub(&stream->waiting, 1);
}

/* In this order: `waiting` is counted before `busy` is cleared. */
static inline bool kn_stream_is_known_idle(kn_stream *stream)
{
    return !atomic_load(&stream->busy) && atomic_load(&stream->waiting) == 0 && !atomic_load(&stream->is_shared);
}

/* A stream on an in-order queue created by others. */
kn_stream *kn_stream_adopt_queue(kn_device *device, cl_command_queue queue);

/* --- what destroying a stream needs of the other files ---------------------------------------- */

/* event.c: is all the stream's work done, or will it be within that time? */
kn_status kn_stream_is_idle_within(kn_stream *stream, long nanoseconds, bool *done);

/* callback.c: waits until the stream's callbacks have run; returns at once when called from one. */
void kn_stream_await_callbacks(kn_stream *stream);

/* current.c: the stream is no longer the calling thread's current one. */
void kn_stream_forget_current(const kn_stream *stream);
