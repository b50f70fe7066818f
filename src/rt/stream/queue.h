/* rt/stream/queue.h - called before and after a command is enqueued on a stream.
 *
 * A stream has two queues, because those with CL_QUEUE_PROFILING_ENABLE are slower on some drivers: 1.1 to 1.8 times on
 * Intel's Arc (https://github.com/CHIP-SPV/chipStar/pull/814), a busy thread on ROCm
 * (https://github.com/ROCm/ROCR-Runtime/issues/186). It uses that one only while something is timed, and changes at its
 * next command, which runs after those in the queue that is left. */
#pragma once

#include "rt/stream/stream_struct.h"

/* While anything is timed: an event with times exists, or the profiler records. */
void kn_timing_begin(void);
void kn_timing_end(void);
extern atomic_int kn_timings;
static inline bool kn_timing_is_wanted(void) { return atomic_load_explicit(&kn_timings, memory_order_relaxed) > 0; }

/* An in-order queue of that priority, with CL_QUEUE_PROFILING_ENABLE if `timed`. */
cl_command_queue kn_queue_new(kn_device *device, int priority, bool timed, cl_int *error);

/* Called before every command is enqueued: makes sure that work passed to the submitter is enqueued first. An error if
 * the device is lost, and while the stream is captured: then nothing may bypass the recording, and `what` ("reading a
 * tensor") is for that message. */
kn_status kn_stream_enter(kn_stream *stream, const char *what);

/* The same after kn_stream_settle_for: other deferred launches may stay so. */
kn_status kn_stream_enter_settled(kn_stream *stream, const char *what);

/* Called before the host waits for the stream's work instead. What another thread captures there does not run, so the
 * wait passes over it, whenever its capture begins. */
kn_status kn_stream_enter_wait(kn_stream *stream, const char *what);

/* The same as kn_stream_enter, unless the stream is known to be idle: then it stays so, and nothing may be enqueued. */
kn_status kn_stream_enter_unless_idle(kn_stream *stream, const char *what, bool *idle);

/* Changes to the queue that is wanted now; kn_stream_enter does it. */
kn_status kn_stream_change_queue(kn_stream *stream, bool timed);
static inline kn_status kn_stream_follow_timing(kn_stream *stream)
{
    const bool timed = kn_timing_is_wanted();
    const unsigned switches = atomic_load_explicit(&stream->switches, memory_order_relaxed);
    return (switches >> 1 & 1) == timed ? KN_OK : kn_stream_change_queue(stream, timed);
}

/* The queue for one command, after kn_stream_enter; `switches` is odd while the queue changes, and its next bit says
 * which it is. Threads may share a stream, and enqueueing takes no lock:
 *
 *     const kn_turn turn = kn_stream_turn(stream);
 *     cl_int error = kn_stream_enqueued(stream, turn, clEnqueue...(turn.queue, ...));
 *
 * If another thread changed the queue meanwhile, kn_stream_enqueued orders later commands after this one, too. */
typedef struct kn_turn {
    cl_command_queue queue;
    unsigned switches;
} kn_turn;

/* Does the queue record times (CL_QUEUE_PROFILING_ENABLE)? */
static inline bool kn_turn_is_timed(kn_turn turn) { return turn.switches >> 1 & 1; }

unsigned kn_stream_await_change(kn_stream *stream);
static inline kn_turn kn_stream_turn(kn_stream *stream)
{
    unsigned switches = atomic_load_explicit(&stream->switches, memory_order_acquire);
    if (switches & 1)
        switches = kn_stream_await_change(stream);
    const unsigned which = switches >> 1 & 1;
    return (kn_turn){.queue = stream->queues[which], .switches = switches};
}

cl_int kn_stream_rejoin(kn_stream *stream, kn_turn turn);
static inline cl_int kn_stream_enqueued(kn_stream *stream, kn_turn turn, cl_int error)
{
    return error != CL_SUCCESS || atomic_load(&stream->switches) == turn.switches ? error
                                                                                  : kn_stream_rejoin(stream, turn);
}

/* Enqueues a marker. */
cl_int kn_stream_mark(kn_stream *stream, cl_event *event);

/* The stream's queue, which from now on does not change. */
kn_status kn_stream_share_queue(kn_stream *stream, cl_command_queue *queue);

/* Called after every launch: sometimes flushes the queue (some drivers start nothing before that), and waits if the
 * host is too far ahead. */
kn_status kn_stream_count_launch(kn_stream *stream);

/* Around a copy that the host waits for: begin says whether it may block, which takes less time than waiting for an
 * event; end waits if it did not, unless there was an error, and returns that or its own. PoCL's clFinish and blocking
 * copies return when the queue is empty, and threads that go on enqueueing may see to it that it never is: once
 * several threads have used the stream, events are waited for, and who enqueues gives way to those that still block. */
bool kn_stream_begin_block(kn_stream *stream);
cl_int kn_stream_end_block(kn_stream *stream, cl_command_queue queue, bool blocked, cl_int error);

/* Waits for all the stream's work, replays handed to the submitter included. The stream may be destroyed meanwhile. */
cl_int kn_stream_finish(kn_stream *stream);

/* The same as a call of the host, not counted as a host wait; at once if the stream is known to be idle. */
kn_status kn_stream_come_to_rest(kn_stream *stream, const char *what);
