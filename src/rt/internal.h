/* rt/internal.h - what the runtime's files share. The only header that includes OpenCL. */
#ifndef KN_RT_INTERNAL_H
#define KN_RT_INTERNAL_H

#include <CL/cl.h>
#include <stdatomic.h>

#include "base/error.h"
#include "base/threads.h"
#include "rt/device/inject.h"
#include "rt/device/quirks.h"
#include "rt/memory/pool.h"
#include "rt/program/program.h"
#include "rt/rt.h"

/* How far the host may run ahead of a stream: KN_STREAM_MARKERS times KN_LAUNCHES_PER_MARKER launches. Enough to keep
 * any device busy, few enough that what the queued work holds stays bounded. */
#define KN_STREAM_MARKERS 16
#define KN_LAUNCHES_PER_MARKER 16

typedef struct kn_capture kn_capture;     /* rt/graph/capture.h */
typedef struct kn_submitter kn_submitter; /* rt/stream/submit.h */
typedef struct kn_staging kn_staging;     /* rt/command/staging.h */

/* A stream's memory is never given back, only used for another stream: a thread may still hold a destroyed one as its
 * current stream, and sees by the id that it is gone. Its queue, if it is ours alone, and what it has of the pool's
 * memory go with it to that other stream. */
struct kn_stream {
    kn_device *device;
    cl_command_queue queue; /* to enqueue: after kn_stream_enter; NULL: of a destroyed stream whose queue was shared */
    atomic_ullong id;       /* unique in the process; 0 once destroyed */
    bool is_default;
    int priority;
    kn_mem_pool *redirected_to;          /* where allocations on the stream come from; NULL: no redirection */
    kn_stream *next;                     /* the device's list of streams, or of destroyed ones */
    cl_mem fault;                        /* four ints: code, value, limit, operation; see cl/common/koine.clh */
    kn_mutex lock;                       /* guards what follows: a stream may be shared by threads */
    unsigned launches;                   /* since the last marker */
    cl_event markers[KN_STREAM_MARKERS]; /* a ring; the oldest is waited for when it is full */
    unsigned next_marker;
    atomic_bool fault_armed;                    /* a launch since the last check may have written it */
    _Atomic(kn_capture *) capture;              /* the recording that takes what is enqueued; NULL: it runs */
    _Atomic(const void *) capturer;             /* a mark of the thread that captures: only it looks into `capture` */
    _Atomic(kn_submitter *) submitter;          /* hands replays to the queue; made at the first replay */
    atomic_int callbacks;                       /* not yet called */
    _Atomic(kn_stream *) heard[KN_MAX_DEVICES]; /* by device: a stream whose values came here and may be faulty */
    atomic_bool hears;                          /* any of them */
    atomic_bool busy;                           /* something was enqueued since it was last known to be idle */
    atomic_bool is_shared;                      /* code that is not ours has the queue: it is never known to be idle */
};

struct kn_device {
    int slot;       /* 0: the host */
    int gpu_rank;   /* 0: the best GPU, ...; -1: not a GPU */
    char label[32]; /* what kn_device_open takes for it: "gpu:0", "cpu:0" */
    kn_device_properties properties;
    kn_limits limits;
    kn_quirks quirks;
    const char *extensions;

    cl_platform_id platform;
    cl_device_id id;

    kn_mutex lock; /* guards opening and the list of streams */
    atomic_bool is_open;
    cl_context context;
    cl_command_queue service; /* for mapping host memory: no user's work is on it */
    kn_stream default_stream;
    kn_stream *streams;   /* all of them, the default one last */
    kn_stream *destroyed; /* for use again */
    kn_pool pool;
    kn_staging *staging; /* rt/command/staging.h; made at the first use */
    kn_mutex staging_lock;
    kn_program_table programs;

    atomic_bool is_lost;   /* rt/device/lost.h; for good */
    atomic_bool is_losing; /* somebody writes what follows */
    char lost_when[192];   /* "running kernel `x` failed with CL_OUT_OF_RESOURCES, -5" */
};

/* A context and a default stream for the device; at first use. Fails for the host, saying to move the tensor. */
kn_status kn_device_ensure_open(kn_device *device);

/* What every command passes before it goes to the stream's queue: work handed to the submitter goes first. `what`
 * ("reading a tensor") is for the messages: of a stream that is being captured, to which nothing can be enqueued past
 * the recording. */
kn_status kn_stream_enter(kn_stream *stream, const char *what);

/* KN_ERR_STATE when the stream is being captured: "WHAT cannot be part of a graph". Fails the capture too. */
kn_status kn_stream_refuse_capture(kn_stream *stream, const char *what);

/* Waits for all that the stream was given, replays handed to the submitter included. */
cl_int kn_stream_finish(kn_stream *stream);

/* May launches so far have found a fault? Asked before waiting for them: launches that other threads enqueue meanwhile
 * are not waited for, so they are left to the next check. */
static inline bool kn_stream_take_armed(kn_stream *stream) { return atomic_exchange(&stream->fault_armed, false); }

/* Reports a fault that kernels of the stream, or of one whose values came here, found; its work so far must be done.
 * Costs nothing when no launch could have found one. */
kn_status kn_stream_check_fault(kn_stream *stream, bool armed);

/* Values of `from` came to `to`: if its kernels may have found a fault, the next check of `to` reports that too. */
void kn_stream_hear_faults(kn_stream *to, kn_stream *from);

/* After a command was enqueued, too: the stream may have been found idle between kn_stream_enter and the command. */
static inline void kn_stream_note_busy(kn_stream *stream)
{
    atomic_store_explicit(&stream->busy, true, memory_order_relaxed);
}

/* Counts a launch: now and then hands the queue to the device (some drivers start nothing before that), and waits when
 * the host is too far ahead. */
kn_status kn_stream_count_launch(kn_stream *stream);

/* Is all the stream's work done, or done within so long a time? */
kn_status kn_stream_is_idle_within(kn_stream *stream, long nanoseconds, bool *done);

/* The device's stream with the smallest id above `*id`, which becomes its id; NULL: none. By the id: places in the list
 * move when other threads make and destroy streams. The struct outlives a concurrent destroy, and may have another
 * queue then; so does `queue` (NULL allowed), which is retained, or NULL where the driver refuses that. No lock is held
 * between two calls: a callback, waited for there, may make streams. */
kn_stream *kn_device_next_stream(kn_device *device, unsigned long long *id, cl_command_queue *queue);

/* Makes the stream's queue and fault record; with `theirs` that is the queue. */
kn_status kn_stream_open(kn_stream *stream, kn_device *device, int priority, cl_command_queue theirs);

/* Undoes kn_stream_open: for a device that could not be opened, whose context goes. */
void kn_stream_close(kn_stream *stream);

/* A stream on an in-order queue that others made. */
kn_status kn_stream_adopt_queue(kn_stream **stream, kn_device *device, cl_command_queue queue);

/* The fault record (rt/stream/fault.c): made with the stream. */
kn_status kn_fault_record_new(cl_mem *record, kn_device *device);

/* Waits until the stream's callbacks have run; at once when called by one. */
void kn_stream_await_callbacks(kn_stream *stream);

/* Counts a call that makes the host wait for a device; an error where kn_set_sync_debug_mode asks for one. */
kn_status kn_note_host_wait(const char *what);

/* "CL_OUT_OF_RESOURCES" for -5. */
const char *kn_cl_error_name(cl_int error);

/* KN_ERR_DEVICE (KN_ERR_MEMORY for the errors that mean it): "WHAT failed on DEVICE: CL_NAME". Marks the device as lost
 * where the error means that (rt/device/lost.h). */
kn_status kn_cl_fail(cl_int error, const kn_device *device, const char *format, ...) KN_PRINTF(3, 4);

/* Does the error mean that memory ran out? */
bool kn_cl_is_out_of_memory(cl_int error);

/* The memory object and byte offset of a buffer. */
cl_mem kn_buffer_memory(const kn_buffer *buffer);
size_t kn_buffer_offset(const kn_buffer *buffer);

/* A small number that stands for an operation's name in fault records. */
int kn_operation_number(const char *name);

/* KN_ERR_DEVICE: there is no device; says which package to install, or which variable hides them. */
kn_status kn_fail_no_device(void);

/* Have the devices been looked for? */
bool kn_devices_are_found(void);

/* Runs through all devices found: fills the table at the first call. */
kn_status kn_devices_find(void);
kn_device *kn_device_slot_at(int slot); /* NULL outside */
int kn_device_slots(void);              /* host included */

#endif
