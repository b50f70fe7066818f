/* dist/group/call.h - a group, and the calls that its thread makes one after another. */
#pragma once

#include <koine/group.h>
#include <koine/stream.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "dist/collective.h"
#include "dist/group/transport.h"
#include "rt/trace/spans.h"

/* How the message of such an error begins; by it the trainer tells an error from its consequences (train/ranks.c). */
#define KN_DIFFERENT_CALLS "the ranks make different calls"

typedef struct kn_call_kind {
    const char *name;
    kn_status (*run)(kn_group *group, kn_work *work); /* on the group's thread */
    bool reduces;                                     /* its operation matters */
    bool pairs;                                       /* between two ranks: the others do not make this call */
    bool sends;                                       /* such a one, and this rank is the sender */
    const char *root;                                 /* " from rank ": what comes before the root in messages */
    int rounds;          /* how often (n - 1) / n of the bytes cross each rank's link; 0: all of them do, once */
    bool has_all_blocks; /* of its one tensor each rank's part is a block */
    bool may_stay;       /* the caller's own thread may make it where the transport notices losses */
} kn_call_kind;

/* A call, from its start until the group's thread has made it and the caller has freed it. */
struct kn_work {
    atomic_int references;
    kn_group *group; /* NULL once the call is done */
    const kn_call_kind *kind;
    kn_reduce_op op;
    int root; /* or the other rank of a message */
    int tag, *sender;
    kn_tensor *memory; /* of a message, while it is on its way: what it is sent from, or received into */
    kn_message_end message;
    int64_t began;
    int color, key; /* of a split, with its result */
    kn_transport **part;
    int64_t *clock;                /* of kn_run_clocks */
    kn_tensor *tensor;             /* one reference, as to the following */
    kn_tensor **inputs, **outputs; /* one per rank; NULL where the kind has none */
    kn_device *device;             /* of all its tensors; NULL: it has none */
    kn_event *ready, *finished;    /* on a device: the inputs are computed; the results are there */
    kn_work *next;
    kn_mutex lock;
    pthread_cond_t changed;
    bool done;
    kn_status status;
    char *reason; /* of an error */
};

struct kn_group {
    kn_transport *transport;
    kn_group_params params;
    uint64_t calls;                     /* collectives that the thread has begun */
    kn_stream *streams[KN_MAX_DEVICES]; /* the thread's, by the slots of devices; NULL: not needed so far */
    kn_tensor *pieces[3];               /* pinned memory for the pieces of a large tensor (pieces.c) */
    kn_mutex lock;
    pthread_cond_t changed;
    kn_work *first, *last; /* calls to be made */
    kn_work *messages;     /* on their way, the oldest first; the thread's */
    bool has_messages;     /* are there any? under the lock */
    pthread_t thread;
    bool is_started, is_ending, has_ended;
    bool is_busy;        /* a thread makes a call */
    atomic_llong waited; /* nanoseconds in waiting parts of calls */
    atomic_llong began;  /* when the thread began its call (clock.h); 0: it makes none */
    char *failure;       /* why no call can be made any more; NULL: all is well */
};

/* --- making calls (work.c) ---------------------------------------------------------------------------------------- */

/* Puts the call into the queue; takes the caller's reference to `work`, which has its kind, operation and tensors. With
 * `result` NULL waits for it, else stores a reference there. */
kn_status kn_work_start(kn_group *group, kn_work *work, kn_work **result);
kn_work *kn_work_new(const kn_call_kind *kind);
/* Retains `count` tensors; KN_ERR_MEMORY. */
kn_status kn_work_keep(kn_tensor ***list, kn_tensor *const *tensors, int count);

/* kn_release of memory that the transport was given, unless a call that has failed may still write to it. */
void kn_group_release(const kn_group *group, kn_tensor *memory);
void kn_transport_release(const kn_transport *transport, void *memory); /* kn_free of it */

/* thread.c: begins the group's thread; on the caller's own, which has made the group busy, makes a call, or none. */
kn_status kn_group_start_thread(kn_group *group);
void kn_group_call_here(kn_group *group, kn_work *work);
void kn_group_end_call(kn_group *group);

/* Waits for the calls in the queue and ends the thread; false: it does not end, as a call does not return. */
bool kn_group_end_thread(kn_group *group);

/* --- on the group's thread ---------------------------------------------------------------------------------------- */

/* Do all ranks make the same call? Else KN_ERR_STATE, on all of them (agree.c). */
kn_status kn_group_agree(kn_group *group, const kn_work *work);

/* No call can be made any more; the first reason stays (thread.c). */
void kn_group_keep_failure(kn_group *group, const char *reason);
kn_status kn_group_check_failure(kn_group *group); /* KN_ERR_DEVICE: it has one */

/* The call is done: its tensors are released, and those who wait for it go on (work.c). */
void kn_work_finish(kn_group *group, kn_work *work, kn_status status);
/* The thread's stream of the call's device, which waits for the inputs. */
kn_status kn_work_stream(kn_group *group, const kn_work *work, kn_stream **stream);

/* A message that has begun is on its way while the thread makes other calls: two ranks may send to each other first and
 * then receive. Waits for this one until another call is to be made (messages.c). */
void kn_messages_add(kn_group *group, kn_work *work);
/* Sees whether messages have arrived, and rests if none has. */
void kn_messages_progress(kn_group *group);
/* One of the library's own, at once. */
kn_status kn_message_exchange(kn_transport *transport, bool sends, kn_message_end message);

/* For the profiler: the call, and at its end its bytes (watch.c). */
kn_span kn_call_span(const kn_work *work);
void kn_call_span_end(kn_span span, const kn_group *group, const kn_work *work);

/* A part that waits for other ranks; counted also without a profiler: KN_WAITING_PART(KN_PART_EXCHANGE); */
#define KN_WAITING_PART(name) KN_GUARD(kn_waiting, kn_waiting_guard_, kn_waiting_begin(name), kn_waiting_end)
typedef struct kn_waiting {
    kn_span span;
    int64_t began;
} kn_waiting;
kn_waiting kn_waiting_begin(const char *part);
void kn_waiting_end(const kn_waiting *waiting);
/* Adds what this thread has counted since the last time to the group's sum. */
void kn_waiting_note(kn_group *group);

/* The calls of each kind (pieces.c: tensors in place; blocks.c: a block per rank; messages.c). */
kn_status kn_run_all_reduce(kn_group *group, kn_work *work);
kn_status kn_run_reduce(kn_group *group, kn_work *work);
kn_status kn_run_broadcast(kn_group *group, kn_work *work);
kn_status kn_run_all_gather(kn_group *group, kn_work *work);
kn_status kn_run_all_gather_whole(kn_group *group, kn_work *work);
kn_status kn_run_gather(kn_group *group, kn_work *work);
kn_status kn_run_scatter(kn_group *group, kn_work *work);
kn_status kn_run_reduce_scatter(kn_group *group, kn_work *work);
kn_status kn_run_all_to_all(kn_group *group, kn_work *work);
kn_status kn_run_barrier(kn_group *group, kn_work *work);
kn_status kn_run_message(kn_group *group, kn_work *work); /* only begins it */
kn_status kn_run_split(kn_group *group, kn_work *work);
kn_status kn_run_clocks(kn_group *group, kn_work *work);
